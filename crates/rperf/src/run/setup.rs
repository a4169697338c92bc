//! Queue pairs, memory and the way to the peer.

use std::io::{Read, Write};

use rverbs::Context;
use rverbs::cq::Cq;
use rverbs::gid::{self, Gid, PeerGid};
use rverbs::mr::{Access, RemoteMr, RemoteRegion, Shared};
use rverbs::qp::{Address, ConnectAttr, Endpoint};

use super::carrier::{Carrier, Lane, Target};
use super::plan::{GRH, Plan};
use crate::Error;
use crate::peer::{Greeting, Key, PSN_MASK, Talk};
use crate::spec::{Metric, Verb};

/// `IBV_LINK_LAYER_ETHERNET`.
const ETHERNET: u8 = 2;
/// Bytes of a page.
const PAGE: u32 = 4096;
/// Bytes of a cache line.
const CACHE_LINE: u32 = 64;

/// What a side decides for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Local {
    /// Port of the device.
    pub port: u8,
    /// Entry of the GID table; the best one where it is not said.
    pub gid_index: Option<u8>,
    /// `ibv_mtu`; the port's where it is not said.
    pub mtu: Option<u32>,
    /// Answers are waited for 4.096 µs times two to this power.
    pub timeout: u8,
    /// Reads and atomic operations at a time; as many as the device can, where it is not said.
    pub outstanding: Option<u8>,
}

impl Default for Local {
    fn default() -> Self {
        Self {
            port: 1,
            gid_index: None,
            mtu: None,
            timeout: 14,
            outstanding: None,
        }
    }
}

/// One side, connected.
pub(super) struct Ends<T: Carrier> {
    pub(super) lanes: Vec<Lane<T>>,
    pub(super) targets: Vec<Target>,
    pub(super) send_cq: Cq,
    pub(super) recv_cq: Cq,
    pub(super) own: Vec<Key>,
    peers: Vec<Key>,
    mr: RemoteMr,
    area: u32,
    pub(super) mtu: u32,
}

/// Where this side is.
fn here(context: &Context, local: &Local) -> Result<(Address, u8), Error> {
    let port = context.query_port(local.port)?;
    let lid = port.lid;
    let table = context.gids(local.port)?;
    let choice = match local.gid_index {
        Some(index) => {
            let entry = table.iter().find(|entry| entry.index == u32::from(index));
            Some(*entry.ok_or_else(|| Error::Spec {
                what: format!("port {} has no GID {index}", local.port),
            })?)
        }
        None if port.link_layer == ETHERNET => {
            gid::choose(&table, &PeerGid::default()).map(|choice| choice.entry)
        }
        None => None,
    };
    let index = choice.map_or(0, |entry| u8::try_from(entry.index).unwrap_or(0));
    let gid = choice.map(|entry| entry.gid);
    Ok((Address { lid, gid }, index))
}

impl<T: Carrier> Ends<T> {
    /// Makes what a test needs and meets the peer, as perftest does it.
    pub(super) fn meet<S: Read + Write>(
        context: &Context,
        talk: &mut Talk<S>,
        greeting: &Greeting,
        plan: &Plan,
        local: &Local,
    ) -> Result<Self, Error> {
        let (address, sgid_index) = here(context, local)?;
        let qps = usize::try_from(plan.qps).unwrap_or(1);
        let depths = (plan.tx_depth.max(1), receives(plan));
        let entries = |each: u32| each.saturating_mul(plan.qps).max(1);
        let send_cq = context.create_cq(entries(depths.0))?;
        let recv_cq = context.create_cq(entries(depths.1))?;
        let pd = context.alloc_pd()?;
        // An area for sending and one for receiving for each queue pair, in this order.
        let header = if T::HEADER { GRH } else { 0 };
        let area = (plan.largest() + header)
            .max(greeting.cycle_buffer)
            .next_multiple_of(CACHE_LINE);
        let len = usize::try_from(area).unwrap_or(0) * qps * 2;
        let mr = pd.register_remote(context.alloc(len)?, Access::ALL)?;

        let attr = context.query_device()?.orig_attr;
        let most = u8::try_from(attr.max_qp_rd_atom).unwrap_or(u8::MAX);
        let reads = match plan.verb {
            Verb::Read | Verb::Atomic => local.outstanding.unwrap_or(most).min(most),
            _ => 1,
        };
        let mut how = ConnectAttr {
            port: local.port,
            sgid_index,
            mtu: greeting.mtu,
            timeout: local.timeout,
            rd_atomic: (reads, reads),
            ..ConnectAttr::default()
        };
        let region = mr.export();
        let mut lanes = Vec::with_capacity(qps);
        let mut own = Vec::with_capacity(qps);
        for at in 0..qps {
            let builder = pd.qp(&send_cq).recv_cq(&recv_cq);
            let builder = builder.depth(depths.0, depths.1).inline(plan.inline);
            let lane: Lane<T> = builder.build()?;
            T::init(&lane, &how)?;
            own.push(Key {
                lid: address.lid,
                out_reads: reads.into(),
                qpn: lane.qpn(),
                psn: random() & PSN_MASK,
                rkey: region.rkey,
                vaddr: region.addr + u64::from(area) * (qps + at) as u64,
                gid: address.gid.map(|gid| gid.0),
                srqn: 0,
            });
            lanes.push(lane);
        }

        if is_latency(plan, &[Verb::Write, Verb::Read, Verb::Atomic]) {
            talk.keys("exchanging addresses", first(&own)?)?;
        }
        let mut peers = Vec::with_capacity(qps);
        for key in &own {
            peers.push(talk.keys("exchanging addresses", key)?);
        }
        let mut targets = Vec::with_capacity(qps);
        for ((lane, own), peer) in lanes.iter().zip(&own).zip(&peers) {
            how.rd_atomic.0 = u8::try_from(peer.out_reads).unwrap_or(u8::MAX).min(most);
            let (here, there) = (endpoint(own), endpoint(peer));
            targets.push(T::connect(&pd, lane, (&here, &there), &how)?);
        }
        let ready = "waiting until the peer is ready";
        if plan.verb == Verb::Send {
            talk.keys(ready, first(&own)?)?;
        }
        for key in &own {
            talk.keys("exchanging addresses", key)?;
        }
        if plan.verb != Verb::Send {
            talk.keys(ready, first(&own)?)?;
        }
        Ok(Self {
            lanes,
            targets,
            send_cq,
            recv_cq,
            own,
            peers,
            mr,
            area,
            mtu: greeting.mtu,
        })
    }

    /// Memory of a queue pair to send from.
    pub(super) fn source(&self, at: usize, size: u32) -> Option<Shared> {
        self.mr.slice(at * usize::try_from(self.area).ok()?, size)
    }

    /// Memory of a queue pair that the peer sends and writes to.
    pub(super) fn sink(&self, at: usize, size: u32) -> Option<Shared> {
        let header = if T::HEADER { GRH } else { 0 };
        let areas = self.lanes.len() + at;
        self.mr
            .slice(areas * usize::try_from(self.area).ok()?, size + header)
    }

    /// Memory of the peer's queue pair.
    pub(super) fn remote(&self, at: usize) -> RemoteRegion {
        self.peers.get(at).map_or(
            RemoteRegion {
                addr: 0,
                len: 0,
                rkey: 0,
            },
            |peer| RemoteRegion {
                addr: peer.vaddr,
                len: self.area.into(),
                rkey: peer.rkey,
            },
        )
    }
}

/// The page and cache line that a side says, and its MTU.
pub(super) fn greeting_of(context: &Context, local: &Local) -> Result<(u32, u32, u32), Error> {
    let port = context.query_port(local.port)?;
    Ok((PAGE, CACHE_LINE, local.mtu.unwrap_or(port.active_mtu)))
}

/// How many receive requests a queue pair has.
fn receives(plan: &Plan) -> u32 {
    if plan.verb == Verb::Send {
        plan.rx_depth.max(1)
    } else {
        1
    }
}

pub(super) fn is_latency(plan: &Plan, verbs: &[Verb]) -> bool {
    plan.metric == Metric::Latency && verbs.contains(&plan.verb)
}

pub(super) fn first(keys: &[Key]) -> Result<&Key, Error> {
    keys.first().ok_or_else(|| Error::Spec {
        what: "a test has at least one queue pair".to_owned(),
    })
}

fn endpoint(key: &Key) -> Endpoint {
    Endpoint {
        qpn: key.qpn,
        psn: key.psn,
        address: Address {
            lid: key.lid,
            gid: key.gid.map(Gid),
        },
    }
}

/// Different each time, so that packets of an older connection don't fit.
fn random() -> u32 {
    use std::hash::{BuildHasher as _, RandomState};
    let bits = RandomState::new().hash_one(0);
    u32::try_from(bits >> 32).unwrap_or(0)
}
