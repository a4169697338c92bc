//! Why the host has no port for us.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// A result of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the host has no port for us.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens there.
    #[error("no simulator listens at {simulator}")]
    NoSimulator {
        /// Where.
        simulator: String,
        /// What the system said.
        source: Option<io::Error>,
    },
    /// The simulator is there and does not answer.
    #[error("the simulator at {simulator} did not answer within {} s", waited.as_secs())]
    SimulatorSilent {
        /// Where.
        simulator: String,
        /// How long was waited.
        waited: Duration,
    },
    /// All places are taken.
    #[error("the simulator at {simulator} has no place left: ten clients are connected to it")]
    SimulatorFull {
        /// Where.
        simulator: String,
    },
    /// The simulated fabric has no such node.
    #[error("the fabric at {simulator} has no node {node:?}")]
    UnknownNode {
        /// Where.
        simulator: String,
        /// What was asked for.
        node: String,
        /// The fabric's first node.
        first: String,
    },
    /// A node's name has more bytes than the simulator's protocol has room for.
    #[error("the node name {node:?} is longer than the 31 bytes that ibsim takes")]
    NodeNameTooLong {
        /// The name.
        node: String,
    },
    /// A simulator's socket failed.
    #[error("the simulator at {simulator} failed while {doing}")]
    Simulator {
        /// Where.
        simulator: String,
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The host has no RDMA device.
    #[error("this host has no InfiniBand device")]
    NoDevice,
    /// The host has devices, and their MADs cannot be reached.
    #[error("the kernel module ib_umad is not loaded")]
    NoUmad,
    /// There are devices, and none is called that.
    #[error("this host has no InfiniBand device {name:?}")]
    UnknownDevice {
        /// What was asked for.
        name: String,
        /// What there is.
        have: Vec<String>,
    },
    /// The port speaks Ethernet and has no subnet.
    #[error("{device} port {port} is an Ethernet port")]
    Ethernet {
        /// The device.
        device: String,
        /// The port.
        port: u8,
    },
    /// All ports that were looked at speak Ethernet.
    #[error("this host has no InfiniBand port: all its RDMA ports are Ethernet ports")]
    OnlyEthernet,
    /// The device file may not be opened.
    #[error("{} may not be opened", path.display())]
    Denied {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The kernel would not register us for a class of MADs.
    #[error("{device} port {port} does not take a client for management class {class:#04x}")]
    Register {
        /// The device.
        device: String,
        /// The port.
        port: u8,
        /// The class.
        class: u8,
        /// What the system said.
        source: io::Error,
    },
    /// A file could not be read or used.
    #[error("{doing} {} failed", path.display())]
    File {
        /// What was being done.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
