//! Exit codes and hints of this crate's errors.

use std::io::ErrorKind;

use rdma_cli::{Exit, Explain};

use crate::Error;

impl Explain for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::NoSimulator { .. }
            | Self::UnknownNode { .. }
            | Self::NoDevice
            | Self::NoUmad
            | Self::UnknownDevice { .. }
            | Self::Ethernet { .. }
            | Self::OnlyEthernet => Exit::Missing,
            Self::NodeNameTooLong { .. } => Exit::Usage,
            Self::Denied { .. } => Exit::Denied,
            Self::SimulatorSilent { .. }
            | Self::SimulatorFull { .. }
            | Self::Simulator { .. }
            | Self::Register { .. } => Exit::Device,
            Self::File { source, .. } => match source.kind() {
                ErrorKind::NotFound => Exit::Missing,
                ErrorKind::PermissionDenied => Exit::Denied,
                _ => Exit::Device,
            },
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::NoSimulator { .. } => "no-simulator",
            Self::SimulatorSilent { .. } => "simulator-silent",
            Self::SimulatorFull { .. } => "simulator-full",
            Self::UnknownNode { .. } => "unknown-node",
            Self::NodeNameTooLong { .. } => "node-name-too-long",
            Self::Simulator { .. } => "simulator",
            Self::NoDevice => "no-device",
            Self::NoUmad => "no-umad",
            Self::UnknownDevice { .. } => "unknown-device",
            Self::Ethernet { .. } => "ethernet",
            Self::OnlyEthernet => "only-ethernet",
            Self::Denied { .. } => "denied",
            Self::Register { .. } => "register",
            Self::File { .. } => "file",
        }
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::NoSimulator { simulator, .. } if simulator.starts_with("ibsim:udp") => {
                "start one with: ibsim -s -n -r -l PORT NETFILE".to_owned()
            }
            Self::NoSimulator { simulator, .. } => {
                let name = simulator.trim_start_matches("ibsim:");
                format!("start one with: IBSIM_SOCKNAME={name} ibsim -s -n NETFILE")
            }
            Self::SimulatorSilent { .. } => {
                "without -s ibsim answers only after `start` on its console".to_owned()
            }
            Self::SimulatorFull { .. } => {
                "a client that was killed keeps its place: `attached` and `x NUMBER` on ibsim's \
                 console list and free them"
                    .to_owned()
            }
            Self::UnknownNode { first, .. } => format!(
                "a node is named by its id in the net file or by its description, such as \
                 {first:?}; without one, that first node is used"
            ),
            Self::NoDevice => {
                "an adapter is listed by `ls /sys/class/infiniband`; without one, look at a \
                 simulated fabric with --sim fat-tree:108"
                    .to_owned()
            }
            Self::NoUmad => "load it with: modprobe ib_umad".to_owned(),
            Self::UnknownDevice { have, .. } if have.is_empty() => return None,
            Self::UnknownDevice { have, .. } => format!("there are: {}", have.join(", ")),
            Self::Ethernet { .. } | Self::OnlyEthernet => {
                "an Ethernet port has no subnet to be discovered; a VPI adapter's port may be \
                 set to InfiniBand with mlx-cfg"
                    .to_owned()
            }
            Self::Denied { path, .. } => format!(
                "run as root, or give your group access to {} by a udev rule",
                path.display()
            ),
            Self::Register { source, .. } if source.kind() == ErrorKind::PermissionDenied => {
                "run as root".to_owned()
            }
            _ => return None,
        };
        Some(text)
    }
}
