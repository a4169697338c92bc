//! RoCEv2 in user space, over UDP: no kernel module, no privilege.
//!
//! | module | what |
//! |---|---|
//! | [`proto`] | the protocol, without sockets, threads or clock |
//! | [`udp`] | the socket |
//! | [`port`] | the protocol on a socket: progress by polling, and by a thread |
//! | [`device`] | the device that software providers are made of |
//!
//! # Ports and queue pair numbers
//!
//! The standard port is 4791, and one socket can have it. Processes of one host that use the same
//! address therefore take the first free port from there on, and put its distance into the upper
//! seven bits of their queue pair numbers; who sends to a queue pair adds it again. Kernel drivers
//! and adapters use small numbers, so to them this is plain RoCEv2, as long as our process is the
//! one with the standard port.
//!
//! # Progress
//!
//! Posting sends at once, polling receives. A thread does it where the program does neither:
//! for one-sided requests of peers, timers, and programs that wait for events.

mod calibrate;
pub mod device;
mod holding;
pub mod port;
pub mod proto;
pub mod udp;

use core::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use super::soft::Context as SoftContext;
use super::{Context, DeviceInfo, Errno, Kind};
use crate::Error;

pub use device::Roce;

/// The port that RoCEv2 has (IANA).
pub const PORT: u16 = 4791;

/// Where a device is.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the device.
    pub name: String,
    /// The address that it is reached by, and its one GID.
    pub addr: IpAddr,
    /// The network interface, for its MTU; 0 if unknown.
    pub ifindex: u32,
    /// MTU of the network in bytes.
    pub link_mtu: u32,
    /// The first port to try: [`PORT`], or another one for peers of our own kind where the kernel's
    /// rxe has the standard one.
    pub base_port: u16,
    /// How many ports to try.
    pub ports: u8,
    /// Bytes that a queue pair may have under way; 0 for what the socket's buffer suggests.
    pub window: u32,
}

impl Config {
    /// A device on an address, with the defaults for everything else.
    #[must_use]
    pub fn new(name: &str, addr: IpAddr) -> Self {
        let loopback = addr.is_loopback();
        Self {
            name: name.to_owned(),
            addr,
            ifindex: 0,
            link_mtu: if loopback { 65_536 } else { 1500 },
            base_port: PORT,
            ports: 128,
            window: 0,
        }
    }
}

/// Names another first port than [`PORT`], for programs that cannot say it themselves.
pub const PORT_VARIABLE: &str = "RVERBS_ROCE_PORT";

/// Names the one address whose device there is to be, of the network interfaces' addresses.
pub const ADDRESS_VARIABLE: &str = "RVERBS_ROCE_ADDRESS";

fn address_wished() -> Option<IpAddr> {
    std::env::var(ADDRESS_VARIABLE).ok()?.parse().ok()
}

fn port_wished() -> u16 {
    let wish = std::env::var(PORT_VARIABLE).ok();
    wish.and_then(|text| text.parse().ok()).unwrap_or(PORT)
}

/// The provider: a device for each address of each network interface that is up.
#[derive(Debug, Clone, Default)]
pub struct RoceProvider {
    /// The first port to try, if not [`PORT`].
    pub base_port: Option<u16>,
}

impl RoceProvider {
    /// What [`super::Provider::devices`] finds, as it would be opened.
    #[must_use]
    pub fn configs(&self) -> Vec<Config> {
        let mut configs: Vec<Config> = Vec::new();
        for found in port::interfaces() {
            let suffix = if found.addr.is_ipv4() { "" } else { "_v6" };
            let mut name = format!("roce_{}{suffix}", found.name);
            let same = configs
                .iter()
                .filter(|config| config.name.starts_with(&name))
                .count();
            if same > 0 {
                name = format!("{name}_{same}");
            }
            configs.push(Config {
                ifindex: found.ifindex,
                link_mtu: found.mtu,
                base_port: self.base_port.unwrap_or_else(port_wished),
                ..Config::new(&name, found.addr)
            });
        }
        if let Some(wish) = address_wished() {
            configs.retain(|config| config.addr == wish);
        }
        // What reaches other hosts first, IPv4 before IPv6.
        configs.sort_by_key(|config| (config.addr.is_loopback(), config.addr.is_ipv6()));
        configs
    }
}

impl super::Provider for RoceProvider {
    fn kind(&self) -> Kind {
        Kind::Roce
    }

    fn devices(&self) -> Result<Vec<DeviceInfo>, Error> {
        Ok(self
            .configs()
            .into_iter()
            .map(|config| DeviceInfo {
                guid: device::guid(config.addr),
                name: config.name,
                provider: Kind::Roce,
                node_type: rverbs_sys::IBV_NODE_CA,
                transport: rverbs_sys::IBV_TRANSPORT_IB,
            })
            .collect())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn Context>, Error> {
        let config = self
            .configs()
            .into_iter()
            .find(|config| config.name == name);
        let config = config.ok_or_else(|| Error::NoDevice {
            name: name.to_owned(),
        })?;
        Ok(open(&config)?)
    }
}

/// Opens a device of the caller's choice.
///
/// # Errors
///
/// What binding the socket or making descriptors said: `EADDRINUSE` where all ports are in use.
pub fn open(config: &Config) -> Result<Arc<SoftContext<Roce>>, Error> {
    let open = || SoftContext::new(Roce::new(config)?);
    open().map_err(Error::verb("ibv_open_device"))
}

/// The address in a GID.
#[must_use]
pub fn gid_to_ip(gid: [u8; 16]) -> IpAddr {
    let v6 = core::net::Ipv6Addr::from(gid);
    v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
}

/// The GID of an address.
#[must_use]
pub fn ip_to_gid(addr: IpAddr) -> [u8; 16] {
    match addr {
        IpAddr::V4(v4) => Ipv4Addr::to_ipv6_mapped(&v4).octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

impl From<proto::QpError> for Errno {
    fn from(error: proto::QpError) -> Self {
        use proto::QpError;
        Self(match error {
            QpError::TooMany(_) => libc::ENOMEM,
            _ => libc::EINVAL,
        })
    }
}
