//! GIDs, and which of them to use.
//!
//! A RoCE port has many: for each address of the interface one of each RoCE version. Both ends must
//! use the same version and, for IP, the same family; picking the first is the commonest reason why two
//! hosts don't talk. [`choose`] picks the best one and says why, and why not the others.

use core::fmt;
use std::net::{IpAddr, Ipv6Addr};

use rverbs_sys::{IBV_GID_TYPE_IB, IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2, ibv_gid_entry};

/// A global identifier: 16 bytes, which read as an IPv6 address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[doc(alias = "ibv_gid")]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// Whether all bytes are zero, or all but the prefix `fe80::`.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0[8..].iter().all(|&byte| byte == 0)
    }

    /// The IP address that it stands for: an IPv4 address where it is mapped.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        let v6 = Ipv6Addr::from(self.0);
        v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
    }

    /// Whether it is valid only on its own link: `fe80::/10`.
    #[must_use]
    pub fn is_link_local(&self) -> bool {
        self.0[0] == 0xfe && self.0[1] & 0xc0 == 0x80
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What packets that use a GID look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GidKind {
    /// InfiniBand.
    Ib,
    /// RoCE version 1: an Ethernet type of its own, not routed.
    RoceV1,
    /// RoCE version 2: over UDP port 4791.
    RoceV2,
    /// Something newer.
    Other(u32),
}

impl GidKind {
    /// The kind of an `ibv_gid_type`.
    #[must_use]
    pub const fn new(value: u32) -> Self {
        match value {
            IBV_GID_TYPE_IB => Self::Ib,
            IBV_GID_TYPE_ROCE_V1 => Self::RoceV1,
            IBV_GID_TYPE_ROCE_V2 => Self::RoceV2,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for GidKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ib => f.write_str("IB"),
            Self::RoceV1 => f.write_str("RoCE v1"),
            Self::RoceV2 => f.write_str("RoCE v2"),
            Self::Other(value) => write!(f, "type {value}"),
        }
    }
}

/// An entry of a port's GID table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(alias = "ibv_gid_entry")]
pub struct GidEntry {
    /// The address.
    pub gid: Gid,
    /// Where in the table it is.
    pub index: u32,
    /// What packets look like.
    pub kind: GidKind,
    /// Index of the network interface, 0 where there is none.
    pub ifindex: u32,
}

impl From<&ibv_gid_entry> for GidEntry {
    fn from(entry: &ibv_gid_entry) -> Self {
        Self {
            gid: Gid(bytes(&entry.gid)),
            index: entry.gid_index,
            kind: GidKind::new(entry.gid_type),
            ifindex: entry.ndev_ifindex,
        }
    }
}

#[expect(unsafe_code, reason = "C's struct is a union")]
fn bytes(gid: &rverbs_sys::ibv_gid) -> [u8; 16] {
    // SAFETY: every bit pattern of the union is 16 bytes.
    unsafe { gid.raw }
}

/// The GID that was chosen, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    /// The entry.
    pub entry: GidEntry,
    /// Why it is the best.
    pub reason: &'static str,
    /// Every other entry, and why not.
    pub rejected: Vec<(GidEntry, &'static str)>,
}

/// What the peer uses, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PeerGid {
    /// Its address.
    pub gid: Option<Gid>,
    /// What its packets look like.
    pub kind: Option<GidKind>,
}

fn rank(entry: &GidEntry, peer: &PeerGid) -> Result<(u8, &'static str), &'static str> {
    if peer.kind.is_some_and(|kind| kind != entry.kind) {
        return Err("the peer's packets are of another kind");
    }
    let v4 = entry.gid.ip().is_ipv4();
    if let Some(gid) = peer.gid {
        if entry.kind != GidKind::Ib && gid.ip().is_ipv4() != v4 {
            return Err("the peer's address is of the other family");
        }
        if gid.is_link_local() != entry.gid.is_link_local() {
            return Err("one of the two addresses is valid on its own link only");
        }
    }
    Ok(match entry.kind {
        GidKind::Ib => (5, "InfiniBand has one address a port"),
        GidKind::RoceV2 if v4 => (4, "RoCE v2 with an IPv4 address is routed and usual"),
        GidKind::RoceV2 if !entry.gid.is_link_local() => (3, "RoCE v2 with an IPv6 address"),
        GidKind::RoceV2 => (2, "RoCE v2 on this link only"),
        GidKind::RoceV1 => (1, "RoCE v1 is on this link only"),
        GidKind::Other(_) => (0, "of a kind that is not known"),
    })
}

/// Picks the best GID of a table for a peer.
///
/// RoCE v2 goes before v1, and IPv4 before IPv6 before link-local; of equals the first is taken.
/// `None` where no entry can reach the peer.
///
/// ```
/// use rverbs::gid::{Gid, GidEntry, GidKind, PeerGid, choose};
/// let entry = |index, kind, gid| GidEntry { gid: Gid(gid), index, kind, ifindex: 2 };
/// let link = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 1];
/// let mapped = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1];
/// let table = [
///     entry(0, GidKind::RoceV1, link),
///     entry(1, GidKind::RoceV2, link),
///     entry(2, GidKind::RoceV1, mapped),
///     entry(3, GidKind::RoceV2, mapped),
/// ];
/// let choice = choose(&table, &PeerGid::default()).unwrap();
/// assert_eq!(choice.entry.index, 3);
/// assert_eq!(choice.rejected.len(), 3);
/// let peer = PeerGid { kind: Some(GidKind::RoceV1), ..PeerGid::default() };
/// assert_eq!(choose(&table, &peer).unwrap().entry.index, 0);
/// ```
#[must_use]
pub fn choose(table: &[GidEntry], peer: &PeerGid) -> Option<Choice> {
    let mut best: Option<(u8, &'static str, GidEntry)> = None;
    for entry in table {
        if let Ok((rank, reason)) = rank(entry, peer)
            && best.is_none_or(|(than, ..)| rank > than)
        {
            best = Some((rank, reason, *entry));
        }
    }
    let (_, reason, entry) = best?;
    let rejected = table
        .iter()
        .filter(|other| **other != entry)
        .map(|other| {
            let why = match rank(other, peer) {
                Ok(_) => "another is better",
                Err(why) => why,
            };
            (*other, why)
        })
        .collect();
    Some(Choice {
        entry,
        reason,
        rejected,
    })
}
