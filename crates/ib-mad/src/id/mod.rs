//! What names a port, a node and a partition.

mod gid;
mod guid;
mod lid;
mod pkey;

pub use gid::Gid;
pub use guid::{Guid, ParseGuidError};
pub use lid::{Lid, LidKind};
pub use pkey::PKey;
