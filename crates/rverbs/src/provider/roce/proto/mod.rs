//! The RoCEv2 protocol, without a world: bytes and time in, bytes and completions out.
//!
//! An [`Engine`] is one port with its queue pairs. The driver that owns the sockets and the
//! clock calls five verbs:
//!
//! - [`Engine::handle_packet`]: a UDP payload arrived;
//! - [`Engine::handle_timeout`]: the time of [`Engine::poll_timeout`] has come;
//! - [`Engine::poll_transmit`]: fill a [`Burst`], until it stays empty;
//! - [`Engine::poll_timeout`]: when to call again at the latest;
//! - [`Engine::poll_completion`] and [`Engine::poll_event`]: what the user is to be told.
//!
//! Memory is reached only through [`Memory`], by key, with every access checked there; the
//! engine holds no pointer. After a queue pair has been made, nothing allocates.
//!
//! Sources: InfiniBand Architecture Specification volume 1 chapter 9 (transport) and annex A17
//! (RoCEv2).
//!
//! **Not here**: sockets, threads, clocks.

#![warn(clippy::indexing_slicing)]

mod burst;
pub mod cm;
mod completion;
mod engine;
mod inbound;
mod memory;
pub mod packet;
mod psn;
mod qp;
mod queue;
mod rc;
mod time;
mod uc;
mod ud;
mod work;

pub use burst::{Burst, Destination};
pub use completion::{Completion, CompletionOp, Status};
pub use engine::{Counters, Engine, EngineConfig, Event, GSI_Q_KEY, MAD_LEN, Mad, Meta};
pub use memory::{Access, AtomicOp, Fault, Memory};
pub use psn::Psn;
pub use qp::{Peer, QpConfig, QpError, QpState, Receive, Send, Transport};
pub use queue::RecvWqe;
pub use time::Time;
pub use ud::GRH_LEN;
pub use work::{
    AddressHandle, Datagram, PostError, RecvRequest, SendFlags, SendOp, SendRequest, Sge,
};
