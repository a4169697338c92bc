//! Devices, and what an open one says about itself.

use std::sync::Arc;

use rverbs_sys::ibv_port_attr;

use crate::Error;
use crate::gid::GidEntry;
use crate::provider::roce::RoceProvider;
use crate::provider::shm::ShmProvider;
use crate::provider::verbs::VerbsProvider;
use crate::provider::{self, DeviceInfo, Kind, Provider};

/// A device that can be opened.
#[derive(Debug, Clone)]
pub struct Device {
    provider: Arc<dyn Provider>,
    info: DeviceInfo,
}

/// What was found, and why a provider found nothing.
#[derive(Debug)]
pub struct Found {
    /// Devices, of libibverbs first.
    pub devices: Vec<Device>,
    /// Providers that could not look, and why.
    pub failures: Vec<(Kind, Error)>,
}

/// The providers of this crate.
#[must_use]
pub fn providers() -> Vec<Arc<dyn Provider>> {
    vec![
        Arc::new(VerbsProvider::default()),
        Arc::new(ShmProvider),
        Arc::new(RoceProvider::default()),
    ]
}

/// All devices of all providers.
#[must_use]
pub fn devices() -> Found {
    let mut found = Found {
        devices: Vec::new(),
        failures: Vec::new(),
    };
    for provider in providers() {
        match provider.devices() {
            Ok(infos) => found.devices.extend(infos.into_iter().map(|info| Device {
                provider: Arc::clone(&provider),
                info,
            })),
            Err(error) => found.failures.push((provider.kind(), error)),
        }
    }
    found
}

impl Device {
    /// The device of that name, of any provider.
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] where there is none.
    pub fn by_name(name: &str) -> Result<Self, Error> {
        devices()
            .devices
            .into_iter()
            .find(|device| device.name() == name)
            .ok_or_else(|| Error::NoDevice { name: name.into() })
    }

    /// The software device for processes of one user on one host.
    ///
    /// # Errors
    ///
    /// Why it is not there.
    pub fn shm() -> Result<Self, Error> {
        Self::by_name(provider::shm::DEVICE)
    }

    /// Its name, such as `mlx5_0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// What is known before it is opened.
    #[must_use]
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Opens it.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn open(&self) -> Result<Context, Error> {
        Ok(Context(self.provider.open(&self.info.name)?))
    }
}

/// An open device. Clones are the same one; it is closed when the last thing made from it is gone.
#[derive(Debug, Clone)]
pub struct Context(pub(crate) Arc<dyn provider::Context>);

impl Context {
    /// Which provider this is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// Name of the device.
    #[must_use]
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The provider's own interface, which is C's.
    #[must_use]
    pub fn provider(&self) -> &Arc<dyn provider::Context> {
        &self.0
    }

    /// Attributes of the device.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn query_device(&self) -> Result<rverbs_sys::ibv_device_attr_ex, Error> {
        self.0
            .query_device()
            .map_err(Error::verb("ibv_query_device_ex"))
    }

    /// Attributes of a port; ports count from 1.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn query_port(&self, port: u8) -> Result<ibv_port_attr, Error> {
        self.0
            .query_port(port)
            .map_err(Error::verb("ibv_query_port"))
    }

    /// The GIDs of a port that are not empty.
    ///
    /// # Errors
    ///
    /// What the provider said.
    pub fn gids(&self, port: u8) -> Result<Vec<GidEntry>, Error> {
        let len = u32::try_from(self.query_port(port)?.gid_tbl_len).unwrap_or(0);
        Ok((0..len)
            .filter_map(|index| self.0.query_gid(port, index).ok())
            .map(|entry| GidEntry::from(&entry))
            .filter(|entry| !entry.gid.is_empty())
            .collect())
    }
}
