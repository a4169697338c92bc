//! A pair of queue pairs on one device.

use std::time::{Duration, Instant};

use rverbs::cq::Cq;
use rverbs::mr::{Access, Buf, Piece, RemoteMr, Slice};
use rverbs::provider::Kind;
use rverbs::qp::{Address, ConnectAttr, Connected, Qp, QpBuilder};
use rverbs::wc::{Status, Success, Wc, WcError};
use rverbs::{Context, Pd};

/// A device.
pub(crate) struct Lab {
    pub(crate) context: Context,
    pub(crate) kind: Kind,
}

/// What the specification asks for and a device may lack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Feature {
    /// Local faults have statuses of their own: protection, length. Linux's rxe reports both as an
    /// operation that makes no sense.
    LocalStatus,
    /// A receive request that is posted in ERR is flushed. rxe's is in a queue that the kernel does
    /// not look at again.
    FlushAfterError,
    /// An access that is refused makes an event at the responder. rxe makes none.
    AccessEvent,
}

/// Two connected queue pairs.
pub(crate) struct Pair<T: Connected> {
    pub(crate) a: Side<T>,
    pub(crate) b: Side<T>,
}

/// One of them.
pub(crate) struct Side<T: Connected> {
    pub(crate) pd: Pd,
    pub(crate) cq: Cq,
    pub(crate) qp: Qp<T, Piece>,
    pub(crate) bufs: Vec<Slice>,
    pub(crate) shared: RemoteMr,
}

/// What a poll found.
#[derive(Debug)]
pub(crate) enum Got {
    Sent(Result<Success, WcError>, Option<Piece>),
    Received(Result<Success, WcError>, Piece),
}

impl Lab {
    pub(crate) fn open(kind: Kind) -> Option<Self> {
        let found = rverbs::devices();
        let device = found
            .devices
            .iter()
            .find(|device| device.info().provider == kind);
        let Some(device) = device else {
            let why = found
                .failures
                .iter()
                .find(|(other, _)| *other == kind)
                .map_or_else(|| "no such device".into(), |(_, error)| error.to_string());
            eprintln!("SKIPPED: conformance of {kind}: {why}");
            return None;
        };
        let context = device.open().unwrap();
        Some(Self { context, kind })
    }

    /// Whether the device does that. What it does instead, the case says.
    pub(crate) fn has(&self, feature: Feature) -> bool {
        /// What rxe calls itself, who has no number from the IEEE.
        const RXE: u32 = 0xff_ffff;
        let vendor = self.context.query_device().unwrap().orig_attr.vendor_id;
        let has = vendor != RXE;
        if !has {
            eprintln!("{}: lacks {feature:?}", self.context.name());
        }
        has
    }

    pub(crate) fn address(&self) -> Address {
        let port = self.context.query_port(1).unwrap();
        let gids = self.context.gids(1).unwrap();
        let choice = rverbs::gid::choose(&gids, &rverbs::gid::PeerGid::default());
        Address {
            lid: port.lid,
            gid: (port.link_layer == 2).then(|| choice.unwrap().entry.gid),
        }
    }

    pub(crate) fn how(&self) -> ConnectAttr {
        let gids = self.context.gids(1).unwrap();
        let choice = rverbs::gid::choose(&gids, &rverbs::gid::PeerGid::default());
        ConnectAttr {
            sgid_index: u8::try_from(choice.map_or(0, |choice| choice.entry.index)).unwrap(),
            rd_atomic: (4, 4),
            ..ConnectAttr::default()
        }
    }

    pub(crate) fn pair<T: Connected>(&self) -> Pair<T> {
        self.pair_with(&self.how(), |builder| builder)
    }

    pub(crate) fn pair_with<T: Connected>(
        &self,
        how: &ConnectAttr,
        change: impl Fn(QpBuilder) -> QpBuilder,
    ) -> Pair<T> {
        let side = || {
            let pd = self.context.alloc_pd().unwrap();
            let cq = self.context.create_cq(256).unwrap();
            let builder = pd.qp(&cq).inline(64).depth(16, 16);
            let qp: Qp<T, Piece> = change(builder).build().unwrap();
            let memory = self.context.alloc(256 << 10).unwrap();
            let bufs = pd.register(memory).unwrap().into_slices(16 << 10);
            let memory = self.context.alloc(1 << 20).unwrap();
            let shared = pd.register_remote(memory, Access::ALL).unwrap();
            Side {
                pd,
                cq,
                qp,
                bufs,
                shared,
            }
        };
        let (a, b) = (side(), side());
        self.join(&a.qp, &b.qp, how);
        Pair { a, b }
    }

    /// Connects two fresh queue pairs of this device.
    pub(crate) fn join<T: Connected, B: Buf>(&self, a: &Qp<T, B>, b: &Qp<T, B>, how: &ConnectAttr) {
        let (one, two) = (
            a.endpoint(100, self.address()),
            b.endpoint(200, self.address()),
        );
        a.init(how).unwrap();
        b.init(how).unwrap();
        a.connect(&one, &two, how).unwrap();
        b.connect(&two, &one, how).unwrap();
    }
}

impl<T: Connected> Side<T> {
    pub(crate) fn buf(&mut self, text: &[u8]) -> Piece {
        let mut buf = self.bufs.pop().unwrap();
        buf[..text.len()].copy_from_slice(text);
        let (buf, _) = buf.split_at(u32::try_from(text.len()).unwrap());
        buf.into()
    }

    pub(crate) fn room(&mut self, len: u32) -> Piece {
        self.bufs.pop().unwrap().split_at(len).0.into()
    }

    /// Keeps a buffer for later, as long as it is now.
    pub(crate) fn put_back(&mut self, buf: Piece) {
        if let Piece::Own(slice) = buf {
            self.bufs.push(slice);
        }
    }

    pub(crate) fn poll(&mut self) -> Option<Got> {
        let mut wcs = [Wc::default(); 1];
        let [wc] = self.cq.poll(&mut wcs).unwrap() else {
            return None;
        };
        if let Some(result) = self.qp.send.complete(wc) {
            return Some(Got::Sent(result, self.qp.send.reclaim()));
        }
        let (result, buf) = self.qp.recv.complete(wc).unwrap();
        Some(Got::Received(result, buf))
    }
}

pub(crate) fn wait<R>(mut look: impl FnMut() -> Option<R>) -> R {
    let end = Instant::now() + Duration::from_secs(20);
    loop {
        if let Some(result) = look() {
            return result;
        }
        assert!(Instant::now() < end, "nothing in twenty seconds");
    }
}

impl<T: Connected> Pair<T> {
    /// Waits for a completion on one side, while the other is polled too and must have none.
    pub(crate) fn wait_a(&mut self) -> Got {
        wait(|| self.a.poll())
    }

    pub(crate) fn wait_b(&mut self) -> Got {
        wait(|| self.b.poll())
    }
}

impl Got {
    pub(crate) fn sent(self) -> (Success, Option<Piece>) {
        match self {
            Self::Sent(Ok(success), buf) => (success, buf),
            other => panic!("expected a send, got {other:?}"),
        }
    }

    pub(crate) fn received(self) -> (Success, Piece) {
        match self {
            Self::Received(Ok(success), buf) => (success, buf),
            other => panic!("expected a message, got {other:?}"),
        }
    }

    pub(crate) fn failed(&self) -> Status {
        match self {
            Self::Sent(Err(error), _) | Self::Received(Err(error), _) => error.status,
            other => panic!("expected an error, got {other:?}"),
        }
    }
}

pub(crate) fn bytes(piece: &Piece) -> Vec<u8> {
    match piece {
        Piece::Own(slice) => slice.to_vec(),
        Piece::Shared(shared) => {
            let mut bytes = vec![0; shared.len()];
            shared.read(0, &mut bytes);
            bytes
        }
    }
}

pub(crate) fn len(piece: &Piece) -> u64 {
    Buf::len(piece)
}
