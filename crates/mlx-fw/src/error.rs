//! What can be wrong with firmware files.

use rdma_wire::DecodeError;

use crate::Psid;
use crate::image::{Container, SectionType};

/// Why firmware could not be read. Offsets count from the start of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes are not what was asked for.
    #[error("not {wanted}: it is {found}")]
    WrongKind {
        /// What would have been read.
        wanted: &'static str,
        /// What the bytes are.
        found: Container,
    },
    /// The bytes end too soon, or a field can't be right.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A structure's version is not known.
    #[error("{what} at offset {offset:#x} has version {major}.{minor}, which is not known")]
    UnknownVersion {
        /// The structure.
        what: &'static str,
        /// Where it stands.
        offset: u64,
        /// Its major version.
        major: u8,
        /// Its minor version.
        minor: u8,
    },
    /// The image has no such section.
    #[error("the image has no {0} section")]
    NoSection(SectionType),
    /// A section lies outside of the file.
    #[error(
        "section {section} at offset {offset:#x} with {size:#x} bytes ends beyond the file's {len:#x} bytes"
    )]
    OutOfFile {
        /// The section.
        section: SectionType,
        /// Where it starts.
        offset: u64,
        /// How long it says that it is.
        size: u64,
        /// How long the file is.
        len: u64,
    },
    /// The archive counts differently from what is in it.
    #[error("the archive announces {announced} {what} and holds {found}")]
    Count {
        /// What is counted.
        what: &'static str,
        /// The number in the package descriptor.
        announced: u16,
        /// The number of descriptors.
        found: usize,
    },
    /// A digest of the archive is wrong.
    #[error("the archive's SHA-256 digest of {what} does not match: it is corrupt or was changed")]
    Digest {
        /// What the digest is over.
        what: &'static str,
    },
    /// The compressed block can't be decompressed.
    #[error("the compressed block at offset {offset:#x} is broken after {done} bytes: {reason}")]
    Decompress {
        /// Where the block starts in the file.
        offset: u64,
        /// How many bytes came out of it.
        done: u64,
        /// What the decompressor says.
        reason: String,
    },
    /// Something is larger than we are willing to hold; sizes are in bytes, lists in entries.
    #[error("{what} takes {size}, more than the limit of {limit}")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// How large it is, as far as it is known.
        size: u64,
        /// What is allowed.
        limit: u64,
    },
    /// A component lies where the previous one still is, or beyond what was decompressed.
    #[error("component {index} at offset {offset:#x} of the decompressed block {problem}")]
    Component {
        /// The number of the component.
        index: usize,
        /// Where it should start.
        offset: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A device points to a component that is not there.
    #[error("PSID {psid} points to component {index}, and there are {count}")]
    NoComponent {
        /// The device.
        psid: Psid,
        /// The number of the component.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// The archive has nothing for a PSID.
    #[error("the archive has nothing for PSID {psid}")]
    NoPsid {
        /// What was asked for.
        psid: Psid,
        /// The PSIDs that look most like it, nearest first.
        near: Vec<Psid>,
    },
    /// What is to be built does not fit.
    #[error("{what} does not fit: it needs {needed:#x} bytes, and {room:#x} are there")]
    TooLarge {
        /// What does not fit.
        what: &'static str,
        /// What it takes.
        needed: u64,
        /// What there is.
        room: u64,
    },
}

/// A result of reading firmware.
pub type Result<T, E = Error> = core::result::Result<T, E>;
