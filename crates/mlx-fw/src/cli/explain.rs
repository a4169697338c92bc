//! How an error of this crate is told to a person.

use rdma_cli::{Exit, Explain};

use crate::Error;
use crate::image::Container;

impl Explain for Error {
    fn exit(&self) -> Exit {
        match self {
            Self::NoPsid { .. } => Exit::Missing,
            Self::WrongKind { .. }
            | Self::Decode(_)
            | Self::UnknownVersion { .. }
            | Self::NoSection(_)
            | Self::OutOfFile { .. }
            | Self::Count { .. }
            | Self::Digest { .. }
            | Self::Decompress { .. }
            | Self::Limit { .. }
            | Self::Component { .. }
            | Self::NoComponent { .. }
            | Self::TooLarge { .. } => Exit::Input,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::WrongKind { .. } => "wrong-kind",
            Self::Decode(_) => "malformed",
            Self::UnknownVersion { .. } => "unknown-version",
            Self::NoSection(_) => "no-section",
            Self::OutOfFile { .. } => "out-of-file",
            Self::Count { .. } => "count",
            Self::Digest { .. } => "bad-digest",
            Self::Decompress { .. } => "decompress",
            Self::Limit { .. } => "limit",
            Self::Component { .. } => "bad-component",
            Self::NoComponent { .. } => "no-component",
            Self::NoPsid { .. } => "no-psid",
            Self::TooLarge { .. } => "too-large",
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::WrongKind { found, .. } => match found {
                Container::Empty => "the download or copy may have failed; get the file again",
                Container::Blank(_) => "an erased flash has no firmware; burn an image first",
                Container::Image(..) => "query and verify read an image as it is",
                Container::Mfa2 => {
                    "an archive holds images of many boards: see them with `mlx-fw list`, choose \
                     one with --psid"
                }
                Container::Fs2(_) | Container::Fs5(_) | Container::Mfa1 | Container::Pldm => {
                    "the vendor's mstflint reads it"
                }
                Container::Masked(_) => {
                    "it is the payload of an update; take the image out of its archive with \
                     `mlx-fw extract`, which restores its head"
                }
                Container::UnknownImage(..) => "it may be newer than this program",
                Container::Unknown => {
                    "a firmware image starts with MTFW, an archive with MLNX.MFA2; is it packed \
                     (zip, tar, xz)?"
                }
            },
            Self::Decode(_) | Self::OutOfFile { .. } => {
                "the file is cut short or corrupt; compare its length and checksum with the source"
            }
            Self::UnknownVersion { .. } => "it is corrupt, or newer than this program",
            Self::NoSection(_) => "see what is there with `mlx-fw verify`",
            Self::Digest { .. }
            | Self::Decompress { .. }
            | Self::Count { .. }
            | Self::Component { .. }
            | Self::NoComponent { .. } => "get the archive again and compare its checksum",
            Self::Limit { .. } => {
                "no firmware is that large; the archive is corrupt or made to exhaust memory"
            }
            Self::NoPsid { near, .. } => {
                if near.is_empty() {
                    return Some("the archive is empty".to_owned());
                }
                let near: Vec<String> = near.iter().map(ToString::to_string).collect();
                return Some(format!(
                    "the nearest are {}; see all with `mlx-fw list`",
                    near.join(", ")
                ));
            }
            Self::TooLarge { .. } => return None,
        };
        Some(hint.to_owned())
    }
}
