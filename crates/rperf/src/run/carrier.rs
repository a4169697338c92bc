//! What the transports do differently.

use rverbs::ah::Ah;
use rverbs::mr::{RemoteRegion, Shared};
use rverbs::qp::{
    ConnectAttr, Connected, Endpoint, PostError, Qp, Rc, Repeat, SendQueue, Transport, Uc, Ud,
};
use rverbs::{Error, Pd};

use super::plan::Plan;
use crate::peer::Q_KEY;
use crate::spec::Verb;

/// A queue pair as it is used here.
pub(super) type Lane<T> = Qp<T, Shared>;

/// Where datagrams go; other transports know it.
#[derive(Debug)]
pub(super) struct Target {
    ah: Option<Ah>,
    qpn: u32,
}

type Request<'q, T> = Result<Repeat<'q, T, Shared>, PostError<Shared>>;

/// A transport.
pub(super) trait Carrier: Transport + Sized {
    /// Whether received messages have a route header before them.
    const HEADER: bool = false;

    /// To the state in which receive requests can be posted.
    fn init(lane: &Lane<Self>, how: &ConnectAttr) -> Result<(), Error>;

    /// To the state in which it sends and receives.
    fn connect(
        pd: &Pd,
        lane: &Lane<Self>,
        ends: (&Endpoint, &Endpoint),
        how: &ConnectAttr,
    ) -> Result<Target, Error>;

    /// The request that a test repeats.
    fn request<'q>(
        queue: &'q mut SendQueue<Self, Shared>,
        plan: &Plan,
        buf: Shared,
        to: RemoteRegion,
        target: &Target,
    ) -> Request<'q, Self>;
}

/// Connects this end with the peer's.
fn join<T: Connected>(
    lane: &Lane<T>,
    (own, peer): (&Endpoint, &Endpoint),
    how: &ConnectAttr,
) -> Result<Target, Error> {
    lane.connect(own, peer, how)?;
    Ok(Target {
        ah: None,
        qpn: peer.qpn,
    })
}

impl Carrier for Rc {
    fn init(lane: &Lane<Self>, how: &ConnectAttr) -> Result<(), Error> {
        lane.init(how)
    }

    fn connect(
        _: &Pd,
        lane: &Lane<Self>,
        ends: (&Endpoint, &Endpoint),
        how: &ConnectAttr,
    ) -> Result<Target, Error> {
        join(lane, ends, how)
    }

    fn request<'q>(
        queue: &'q mut SendQueue<Self, Shared>,
        plan: &Plan,
        buf: Shared,
        to: RemoteRegion,
        _: &Target,
    ) -> Request<'q, Self> {
        match plan.verb {
            Verb::Send => queue.repeat_send(buf),
            Verb::Write => queue.repeat_write(buf, to),
            Verb::Read => queue.repeat_read(buf, to),
            Verb::Atomic if plan.compare_swap => queue.repeat_compare_swap(buf, to, 0, 0),
            Verb::Atomic => queue.repeat_fetch_add(buf, to, 1),
        }
    }
}

impl Carrier for Uc {
    fn init(lane: &Lane<Self>, how: &ConnectAttr) -> Result<(), Error> {
        lane.init(how)
    }

    fn connect(
        _: &Pd,
        lane: &Lane<Self>,
        ends: (&Endpoint, &Endpoint),
        how: &ConnectAttr,
    ) -> Result<Target, Error> {
        join(lane, ends, how)
    }

    fn request<'q>(
        queue: &'q mut SendQueue<Self, Shared>,
        plan: &Plan,
        buf: Shared,
        to: RemoteRegion,
        _: &Target,
    ) -> Request<'q, Self> {
        match plan.verb {
            Verb::Write => queue.repeat_write(buf, to),
            _ => queue.repeat_send(buf),
        }
    }
}

impl Carrier for Ud {
    const HEADER: bool = true;

    fn init(lane: &Lane<Self>, how: &ConnectAttr) -> Result<(), Error> {
        lane.activate(how.port, Q_KEY)
    }

    fn connect(
        pd: &Pd,
        _: &Lane<Self>,
        (_, peer): (&Endpoint, &Endpoint),
        how: &ConnectAttr,
    ) -> Result<Target, Error> {
        let ah = pd.create_ah(&peer.address, how.port, how.sgid_index)?;
        Ok(Target {
            ah: Some(ah),
            qpn: peer.qpn,
        })
    }

    fn request<'q>(
        queue: &'q mut SendQueue<Self, Shared>,
        _: &Plan,
        buf: Shared,
        _: RemoteRegion,
        target: &Target,
    ) -> Request<'q, Self> {
        match &target.ah {
            Some(ah) => queue.repeat_send_to(buf, ah, target.qpn, Q_KEY),
            None => Err(PostError {
                errno: rverbs::provider::Errno(22),
                buf,
            }),
        }
    }
}
