//! The reliable connection: requester and responder (IBTA 9.7).

mod requester;
mod responder;
mod window;

pub(super) use requester::{Filled, Outcome, Requester, pad_bits};
pub(super) use responder::Responder;
