//! Firmware of ConnectX, BlueField, Spectrum and Quantum: images and archives, without a device.
//!
//! Bytes go in, values come out; nothing here knows a file, a clock or a device.
//!
//! ```
//! use mlx_fw::image::{Image, build::Builder};
//!
//! // A complete FS4 flash image of our own making.
//! let bytes = Builder::fs4().psid("MT_0000000013").flash(1 << 22).build()?;
//!
//! let image = Image::parse(&bytes)?;
//! assert!(mlx_fw::verify(&image).ok);
//!
//! let report = mlx_fw::query(&image, false)?;
//! assert_eq!(report.format, "FS4");
//! assert_eq!(report.psid, "MT_0000000013");
//! # Ok::<(), mlx_fw::Error>(())
//! ```
//!
//! - [`image::Image`]: one image, FS3 or FS4, complete as in a flash or reduced as in an update.
//! - [`archive::mfa2::Archive`]: an MFA2 archive, images of many boards in one compressed block.
//! - [`query`](query()), [`verify`](verify()), [`checksum`](checksum()): the questions.
//!   [`report`]: their answers.
//! - [`image::build`] and [`archive::mfa2::Builder`]: images and archives of our own, for tests and
//!   demonstrations.
//!
//! **Not here**: devices. The formats FS2, FS5, MFA and PLDM are recognised and not yet read.
#![warn(clippy::indexing_slicing)]

pub mod archive;
mod checksum;
#[cfg(feature = "cli")]
pub mod cli;
mod error;
pub mod image;
mod psid;
mod query;
pub mod report;
mod verify;
mod version;

pub use checksum::checksum;
pub use error::{Error, Result};
pub use psid::Psid;
pub use query::query;
pub use verify::verify;
pub use version::{BcdDate, FwVersion, NotAVersion};

/// Reads any bytes as an image, asks it everything, and throws the answer away: what a fuzzer
/// calls.
pub fn exercise_image(bytes: &[u8]) {
    if let Ok(image) = image::Image::parse(bytes) {
        let _ = verify(&image);
        let _ = query(&image, true);
        let _ = checksum(&image);
    }
}

/// Reads any bytes as an archive, unpacks it within small limits, and throws the answer away:
/// what a fuzzer calls.
pub fn exercise_archive(bytes: &[u8]) {
    if let Ok(archive) = archive::mfa2::Archive::parse(bytes) {
        let _ = archive.list(&archive::mfa2::Limits::SMALL);
        if let Some(device) = archive.devices().first() {
            let _ = archive.extract(device.psid, &archive::mfa2::Limits::SMALL);
        }
    }
}
