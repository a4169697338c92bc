//! One file a subcommand.

pub(super) mod devices;
pub(super) mod explain;
pub(super) mod gids;
pub(super) mod info;
pub(super) mod ping;
pub(super) mod run;

use rdma_cli::Failure;

use crate::{Context, Device};

/// The device of that name, or the first one.
fn open(name: Option<&str>) -> Result<Context, Failure> {
    let device = match name {
        Some(name) => Device::by_name(name)?,
        None => crate::devices()
            .devices
            .into_iter()
            .next()
            .ok_or_else(|| crate::Error::NoDevice { name: "*".into() })?,
    };
    Ok(device.open()?)
}
