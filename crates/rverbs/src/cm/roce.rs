//! Our own manager, which lives in the port of a RoCEv2 device.

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{is_ready, reason};
use crate::Error;
use crate::device::Context;
use crate::gid::Gid;
use crate::mr::Buf;
use crate::provider::Context as _;
use crate::provider::Errno;
use crate::provider::roce::proto::Time;
use crate::provider::roce::proto::cm::wire::{IpHeader, service_id};
use crate::provider::roce::proto::cm::{CmError, CmEvent, ConnId, Manager, Params};
use crate::provider::roce::{self, Config, Roce, ip_to_gid};
use crate::provider::soft;
use crate::qp::{Address, ConnectAttr, Endpoint, Qp, Rc};

/// The port space of reliable connections.
#[doc(alias = "RDMA_PS_TCP")]
const TCP: u16 = 0x0106;
/// As the kernel chooses it: 67 ms.
const ACK_TIMEOUT: u8 = 14;
/// Where a caller's port numbers come from; they tell the peer nothing.
const EPHEMERAL: u16 = 40_000;

/// The manager of a device.
#[derive(Debug, Clone)]
pub(super) struct Port(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    roce: Arc<soft::Context<Roce>>,
    context: Context,
    addr: IpAddr,
    base_port: u16,
    /// Events that somebody took who waited for others.
    backlog: Mutex<VecDeque<CmEvent>>,
}

/// Takes calls for a port, until it is dropped.
#[derive(Debug)]
pub(super) struct Listener {
    port: Port,
    service: u64,
}

/// A call: [`Port::accept`] it, or drop it to refuse.
#[derive(Debug)]
pub(super) struct Call {
    connection: Connection,
    peer: Params,
}

/// A connection, which ends when it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    port: Port,
    conn: ConnId,
}

impl From<CmError> for Errno {
    fn from(error: CmError) -> Self {
        Self(match error {
            CmError::Taken(_) => libc::EADDRINUSE,
            CmError::Full => libc::ENOMEM,
            _ => libc::EINVAL,
        })
    }
}

impl Port {
    pub(super) fn open(config: &Config) -> Result<Self, Error> {
        let roce = roce::open(config)?;
        Ok(Self(Arc::new(Inner {
            context: Context(Arc::clone(&roce) as Arc<dyn crate::provider::Context>),
            roce,
            addr: config.addr,
            base_port: config.base_port,
            backlog: Mutex::default(),
        })))
    }

    pub(super) fn context(&self) -> &Context {
        &self.0.context
    }

    pub(super) fn is_reached(&self) -> bool {
        self.0.roce.transport.shared().local().port() == self.0.base_port
    }

    fn manager<T>(&self, act: impl FnOnce(&mut Manager, Time) -> T) -> T {
        let mut held = self.0.roce.transport.shared().hold();
        let now = held.now();
        let done = act(&mut held.port().cm, now);
        held.settle();
        done
    }

    /// The first event that `wanted` says yes to, until the time is over.
    fn event(
        &self,
        end: Option<Instant>,
        wanted: impl Fn(&CmEvent) -> bool,
    ) -> Result<Option<CmEvent>, Error> {
        let events = &self.0.roce.transport.shared().cm_events;
        loop {
            let mut backlog = self
                .0
                .backlog
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            // Only who has the backlog takes events, so that none waits here for one that another took.
            while is_ready(events.fd(), 0) {
                let event = events.pop(|_| ());
                backlog.push_back(event.map_err(Error::verb("rdma_get_cm_event"))?);
            }
            let found = backlog.iter().position(&wanted);
            if let Some(event) = found.and_then(|at| backlog.remove(at)) {
                return Ok(Some(event));
            }
            drop(backlog);
            let left = end.map(|end| end.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(None);
            }
            // Others may take what this waits for, so it looks again now and then.
            let slice = left.map_or(50, |left| left.as_millis().min(50));
            is_ready(events.fd(), i32::try_from(slice).unwrap_or(50));
        }
    }

    fn params<S: Buf, R: Buf>(&self, qp: &Qp<Rc, S, R>, psn: u32, how: &ConnectAttr) -> Params {
        let guid = self.0.roce.query_device();
        Params {
            qpn: qp.qpn(),
            psn,
            responder_resources: how.rd_atomic.1,
            initiator_depth: how.rd_atomic.0,
            retry_count: how.retry_cnt & 7,
            rnr_retry: how.rnr_retry & 7,
            mtu: u8::try_from(how.mtu).unwrap_or(3),
            ack_timeout: ACK_TIMEOUT,
            guid: u64::from_be(guid.map_or(0, |attr| attr.orig_attr.node_guid)),
            gid: ip_to_gid(self.0.addr),
            ..Params::default()
        }
    }

    pub(super) fn listen(&self, port: u16) -> Result<Listener, Error> {
        let service = service_id(TCP, port);
        self.manager(|cm, _| cm.listen(service))
            .map_err(Errno::from)
            .map_err(Error::verb("rdma_listen"))?;
        Ok(Listener {
            port: self.clone(),
            service,
        })
    }

    pub(super) fn connect<S: Buf, R: Buf>(
        &self,
        qp: &Qp<Rc, S, R>,
        to: SocketAddr,
        how: &ConnectAttr,
        timeout: Duration,
    ) -> Result<Connection, Error> {
        let psn = first_psn(qp.qpn());
        let mut own = self.params(qp, psn, how);
        own.peer_gid = ip_to_gid(to.ip());
        let destination = self.0.roce.transport.destination_of(to.ip(), 1, 0);
        let destination = destination.map_err(Error::verb("rdma_resolve_addr"))?;
        let header = IpHeader::new(self.0.addr, EPHEMERAL, to.ip());
        let mut private = vec![header.version, header.ip_version];
        private.extend(header.port.to_bytes());
        private.extend(header.src);
        private.extend(header.dst);
        let service = service_id(TCP, to.port());
        let conn = self
            .manager(|cm, now| cm.connect(now, destination, service, &own, &private))
            .map_err(Errno::from)
            .map_err(Error::verb("rdma_connect"))?;
        let connection = Connection {
            port: self.clone(),
            conn,
        };
        let answer = self.event(Some(Instant::now() + timeout), |event| match event {
            CmEvent::Reply { conn, .. }
            | CmEvent::Rejected { conn, .. }
            | CmEvent::Unreachable { conn } => *conn == connection.conn,
            _ => false,
        })?;
        let peer = match answer {
            Some(CmEvent::Reply { peer, .. }) => peer,
            Some(CmEvent::Rejected { reason: why, .. }) => {
                return Err(Error::Refused {
                    to: to.to_string(),
                    why: reason(why.0.get()),
                });
            }
            _ => return Err(Error::Unanswered { to: to.to_string() }),
        };
        self.join(qp, psn, &peer, own.peer_gid, how)?;
        self.manager(|cm, _| cm.confirm(connection.conn, &[]))
            .map_err(Errno::from)
            .map_err(Error::verb("rdma_establish"))?;
        Ok(connection)
    }

    pub(super) fn accept<S: Buf, R: Buf>(
        &self,
        call: Call,
        qp: &Qp<Rc, S, R>,
        how: &ConnectAttr,
        timeout: Duration,
    ) -> Result<Connection, Error> {
        let Call { connection, peer } = call;
        let psn = first_psn(qp.qpn());
        let how = ConnectAttr {
            mtu: how.mtu.min(peer.mtu.into()),
            rd_atomic: (
                how.rd_atomic.0.min(peer.responder_resources),
                how.rd_atomic.1.min(peer.initiator_depth).max(1),
            ),
            ..*how
        };
        self.join(qp, psn, &peer, peer.gid, &how)?;
        let own = self.params(qp, psn, &how);
        self.manager(|cm, now| cm.accept(now, connection.conn, &own, &[]))
            .map_err(Errno::from)
            .map_err(Error::verb("rdma_accept"))?;
        let answer = self.event(Some(Instant::now() + timeout), |event| match event {
            CmEvent::Established { conn }
            | CmEvent::Rejected { conn, .. }
            | CmEvent::Unreachable { conn } => *conn == connection.conn,
            _ => false,
        })?;
        let to = Gid(peer.gid).ip().to_string();
        match answer {
            Some(CmEvent::Established { .. }) => Ok(connection),
            Some(CmEvent::Rejected { reason: why, .. }) => Err(Error::Refused {
                to,
                why: reason(why.0.get()),
            }),
            _ => Err(Error::Unanswered { to }),
        }
    }

    /// Each side says which number the other is to begin with.
    fn join<S: Buf, R: Buf>(
        &self,
        qp: &Qp<Rc, S, R>,
        expected: u32,
        peer: &Params,
        gid: [u8; 16],
        how: &ConnectAttr,
    ) -> Result<(), Error> {
        let address = |gid| Address {
            lid: 0,
            gid: Some(Gid(gid)),
        };
        let own = Endpoint {
            qpn: qp.qpn(),
            psn: peer.psn,
            address: address(ip_to_gid(self.0.addr)),
        };
        let peer = Endpoint {
            qpn: peer.qpn,
            psn: expected,
            address: address(gid),
        };
        qp.connect(&own, &peer, how)
    }
}

/// Different for each queue pair and time, so that packets of an older connection don't fit.
fn first_psn(qpn: u32) -> u32 {
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed();
    let ticks = now.map_or(0, |now| now.subsec_nanos());
    (ticks ^ qpn.wrapping_mul(0x9e37_79b9)) & 0x00ff_ffff
}

impl Listener {
    pub(super) fn next(&self, timeout: Option<Duration>) -> Result<Option<Call>, Error> {
        let end = timeout.map(|timeout| Instant::now() + timeout);
        let event = self.port.event(
            end,
            |event| matches!(event, CmEvent::Request { service_id, .. } if *service_id == self.service),
        )?;
        let Some(CmEvent::Request { conn, peer, .. }) = event else {
            return Ok(None);
        };
        let port = self.port.clone();
        Ok(Some(Call {
            connection: Connection { port, conn },
            peer,
        }))
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.port.manager(|cm, _| cm.unlisten(self.service));
    }
}

impl Call {
    pub(super) fn from(&self) -> IpAddr {
        Gid(self.peer.gid).ip()
    }
}

impl Connection {
    pub(super) fn is_over(&self) -> Result<bool, Error> {
        let event = self
            .port
            .event(Some(Instant::now()), |event| self.ends(event))?;
        Ok(event.is_some())
    }

    fn ends(&self, event: &CmEvent) -> bool {
        matches!(
            event,
            CmEvent::Disconnected { conn }
                | CmEvent::Rejected { conn, .. }
                | CmEvent::Unreachable { conn }
            if *conn == self.conn
        )
    }

    pub(super) fn disconnect(self, timeout: Duration) -> Result<(), Error> {
        let begun = self.port.manager(|cm, now| cm.disconnect(now, self.conn));
        if begun.is_ok() {
            self.port
                .event(Some(Instant::now() + timeout), |event| self.ends(event))?;
        }
        Ok(())
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.port.manager(|cm, now| cm.forget(now, self.conn));
    }
}
