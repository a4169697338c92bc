//! perftest's way of finding each other: text over a socket, as its version 6.06 speaks it and later
//! ones still understand (`perftest_communication.c`).
//!
//! Nothing here knows a socket: [`Talk`] speaks over anything that reads and writes. In every exchange the
//! client says its part first; both parts have the same length. A part is written at once, for perftest
//! reads it at once.

mod key;
mod report;
mod talk;

pub use key::{Key, PSN_MASK};
pub use report::BandwidthReport;
pub use talk::{Error, Greeting, Role, Talk};

/// The TCP port that perftest meets at.
pub const PORT: u16 = 18_515;

/// What this crate says it is: what Debian 12 has, and what every later perftest speaks too.
pub const VERSION: &str = "6.06";

/// The key of datagrams' queue pairs.
#[doc(alias = "DEF_QKEY")]
pub const Q_KEY: u32 = 0x1111_1111;
