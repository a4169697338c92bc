//! Connections by the InfiniBand communication manager's messages, for the provider `roce`: what
//! kernels and adapters speak, too.
//!
//! Requests go to the standard port of the address. Where the process that listens has another one,
//! since several processes of a host share the address, it is found by a local socket instead
//! ([`super::local`]).
//!
//! One thread for each device hears what its manager of connections says.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::time::{Duration, Instant};

use rverbs::provider::roce::proto::Time;
use rverbs::provider::roce::proto::cm::wire::{IpHeader, Reason, service_id};
use rverbs::provider::roce::proto::cm::{
    CmError, CmEvent, ConnId, Manager, Params, Private, SidrReply,
};
use rverbs::provider::roce::{Roce, ip_to_gid};
use rverbs::provider::soft::Context;
use rverbs::provider::{Context as _, Errno};

use super::address::is_local;
use super::id::{Heard, Id};
use super::local;
use super::message::{Kind, Message};
use super::wire::{Listening, Talk};
use crate::device::Device;

/// How long a refusal may only mean that the other side is not ready yet: see [`local::PATIENCE`].
const PATIENCE: Duration = local::PATIENCE;
/// How long to wait before asking again.
const AGAIN: Duration = Duration::from_millis(20);
/// Bytes that rdma_cm puts before the user's in a request.
const IP_HEADER: usize = 36;
/// What a question about a datagram service is answered that nobody has: "service ID not supported" (IBTA 12.11).
const NO_SUCH_SERVICE: u8 = 1;
/// About 67 ms: how long an acknowledgement may take.
const ACK_TIMEOUT: u8 = 14;

fn errno(error: CmError) -> Errno {
    Errno(match error {
        CmError::Taken(_) => libc::EADDRINUSE,
        CmError::Full => libc::ENOMEM,
        _ => libc::EINVAL,
    })
}

/// What is known of a connection beside the manager's own state.
struct Known {
    id: Arc<Id>,
    /// What was asked, to be asked again.
    call: Option<(SocketAddr, Message, Instant)>,
}

/// The connections and services of a device.
#[derive(Default)]
struct Table {
    connections: HashMap<ConnId, Known>,
    services: HashMap<u64, Arc<Id>>,
}

/// A device and who hears its manager.
struct Hub {
    device: &'static Device,
    roce: Arc<Context<Roce>>,
    table: Mutex<Table>,
}

impl fmt::Debug for Hub {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hub")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

/// The hubs of this process, by the addresses of their devices.
static HUBS: LazyLock<Mutex<HashMap<usize, &'static Hub>>> = LazyLock::new(Mutex::default);

/// Tells the other sides of what is still connected that this process is gone, as a kernel does when
/// its file is closed.
extern "C" fn hang_up() {
    // Nobody may wait here for long: a thread that holds a lock may not run any more.
    let Ok(hubs) = HUBS.try_lock() else { return };
    for hub in hubs.values() {
        let Ok(table) = hub.table.try_lock() else {
            continue;
        };
        let open: Vec<ConnId> = table.connections.keys().copied().collect();
        drop(table);
        for conn in open {
            hub.manager(|cm, now| cm.forget(now, conn));
        }
    }
}

/// The hub of a device, which lives as long as the process.
fn hub(device: &'static Device) -> Result<&'static Hub, Errno> {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function touches only what lives as long as the process.
        unsafe { libc::atexit(hang_up) };
    });
    let mut hubs = HUBS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = core::ptr::from_ref(device).addr();
    if let Some(hub) = hubs.get(&key) {
        return Ok(hub);
    }
    let hub: &'static Hub = Box::leak(Box::new(Hub {
        device,
        roce: device.roce()?,
        table: Mutex::default(),
    }));
    std::thread::Builder::new()
        .name("rverbs-cm-roce".to_owned())
        .spawn(|| hub.run())?;
    hubs.insert(key, hub);
    Ok(hub)
}

/// Whether requests that come to the device's address by the standard port reach this process.
pub(crate) fn is_reached(device: &'static Device) -> Result<bool, Errno> {
    let hub = hub(device)?;
    let port = hub.roce.transport.shared().local().port();
    Ok(device.roce_port().is_none_or(|first| first == port))
}

fn service(space: u32, port: u16) -> u64 {
    service_id(u16::try_from(space).unwrap_or(0), port)
}

/// Takes requests for `id`.
pub(crate) fn listen(
    device: &'static Device,
    id: &Arc<Id>,
    port: u16,
) -> Result<Box<dyn Listening>, Errno> {
    let hub = hub(device)?;
    let service = service(id.space(), port);
    hub.manager(|cm, _| cm.listen(service)).map_err(errno)?;
    hub.table().services.insert(service, Arc::clone(id));
    Ok(Box::new(Service { hub, service }))
}

#[derive(Debug)]
struct Service {
    hub: &'static Hub,
    service: u64,
}

impl Listening for Service {}

impl Drop for Service {
    fn drop(&mut self) {
        self.hub.manager(|cm, _| cm.unlisten(self.service));
        let id = self.hub.table().services.remove(&self.service);
        drop(id);
    }
}

/// Calls whoever listens at an address.
pub(crate) fn dial(
    device: &'static Device,
    id: &Arc<Id>,
    to: SocketAddr,
    message: Message,
) -> Result<(), Errno> {
    hub(device)?.call(id, to, message, Instant::now())
}

/// The bytes of the header that rdma_cm puts before the user's, and the user's.
fn with_addresses(message: &Message) -> Vec<u8> {
    let header = IpHeader::new(
        message.source.ip(),
        message.source.port(),
        message.destination.ip(),
    );
    let mut bytes = vec![header.version, header.ip_version];
    bytes.extend(message.source.port().to_be_bytes());
    bytes.extend(header.src);
    bytes.extend(header.dst);
    bytes.extend(&message.data);
    bytes
}

/// The addresses in a request, and the user's bytes.
fn addresses(private: &[u8]) -> Option<(IpAddr, u16, IpAddr, &[u8])> {
    let (header, data) = private.split_at_checked(IP_HEADER)?;
    let (fixed, rest) = header.split_first_chunk::<4>()?;
    let (source, rest) = rest.split_first_chunk::<16>()?;
    let destination = rest.first_chunk::<16>()?;
    let [version, family, port @ ..] = *fixed;
    let mut from = IpHeader::new(IpAddr::from(*source), 0, IpAddr::from(*destination));
    (from.version, from.ip_version) = (version, family);
    let (source, destination) = from.addresses()?;
    Some((source, u16::from_be_bytes(port), destination, data))
}

impl Hub {
    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the manager do something, and sends what comes of it.
    fn manager<T>(&self, act: impl FnOnce(&mut Manager, Time) -> T) -> T {
        let mut held = self.roce.transport.shared().hold();
        let now = held.now();
        let done = act(&mut held.port().cm, now);
        held.settle();
        done
    }

    fn params(&self, message: &Message) -> Params {
        let guid = self
            .roce
            .query_device()
            .map_or(0, |attr| attr.orig_attr.node_guid);
        Params {
            qpn: message.qpn,
            psn: message.psn,
            responder_resources: message.responder_resources,
            initiator_depth: message.initiator_depth,
            retry_count: message.retry_count & 7,
            rnr_retry: message.rnr_retry_count & 7,
            srq: message.srq != 0,
            mtu: message.mtu,
            ack_timeout: ACK_TIMEOUT,
            unreliable: false,
            guid: u64::from_be(guid),
            gid: message.gid,
            peer_gid: ip_to_gid(message.destination.ip()),
            traffic_class: 0,
        }
    }

    fn call(
        &'static self,
        id: &Arc<Id>,
        to: SocketAddr,
        message: Message,
        since: Instant,
    ) -> Result<(), Errno> {
        let destination = self.roce.transport.destination_of(to.ip(), 1, 0)?;
        let service = service(message.space, to.port());
        let data = with_addresses(&message);
        let params = self.params(&message);
        // The table is locked first, so that the answer finds the connection in it.
        let mut table = self.table();
        let conn = self.manager(|cm, now| match message.kind {
            Kind::Lookup => cm.ask(now, destination, service, &data),
            _ => cm.connect(now, destination, service, &params, &data),
        });
        let conn = conn.map_err(errno)?;
        table.connections.insert(
            conn,
            Known {
                id: Arc::clone(id),
                call: Some((to, message, since)),
            },
        );
        drop(table);
        id.answered(Arc::new(Line { hub: self, conn }));
        Ok(())
    }

    fn run(&'static self) {
        let events = &self.roce.transport.shared().cm_events;
        loop {
            match events.pop(|_| ()) {
                Ok(event) => self.serve(event),
                Err(Errno(libc::EINTR)) => {}
                Err(error) => {
                    tracing::error!(%error, "connections are not heard any more");
                    return;
                }
            }
        }
    }

    fn id_of(&self, conn: ConnId) -> Option<Arc<Id>> {
        let table = self.table();
        table
            .connections
            .get(&conn)
            .map(|known| Arc::clone(&known.id))
    }

    fn tell(&self, conn: ConnId, message: Message) {
        if let Some(id) = self.id_of(conn) {
            id.hear(Heard::Message(message));
        }
    }

    fn serve(&'static self, event: CmEvent) {
        tracing::debug!(?event, "roce cm");
        match event {
            CmEvent::Request {
                conn,
                service_id,
                peer,
                private,
                ..
            } => self.asked(conn, service_id, Some(&peer), &private),
            CmEvent::Question {
                conn,
                service_id,
                private,
                ..
            } => self.asked(conn, service_id, None, &private),
            CmEvent::Reply {
                conn,
                peer,
                private,
            } => {
                let mut message = said(Kind::Reply, &peer, private.bytes());
                if let Some(to) = self.id_of(conn).and_then(|id| id.destination()) {
                    // A reply does not say again where it comes from.
                    message.gid = ip_to_gid(to.ip());
                }
                self.tell(conn, message);
            }
            CmEvent::Established { conn } => self.tell(conn, Message::new(Kind::Ready)),
            CmEvent::Answer {
                conn,
                reply,
                private,
            } => {
                if reply.status == NO_SUCH_SERVICE && self.call_again(conn) {
                    return;
                }
                let mut message = Message::new(Kind::Found);
                message.reason = reply.status.into();
                message.qpn = reply.qpn;
                message.qkey = reply.q_key;
                message.data = user_data(Kind::Found, private.bytes());
                if let Some(to) = self.id_of(conn).and_then(|id| id.destination()) {
                    message.gid = ip_to_gid(to.ip());
                }
                self.tell(conn, message);
            }
            CmEvent::Rejected {
                conn,
                reason,
                private,
            } => self.refused(conn, reason, &private),
            CmEvent::Unreachable { conn } => {
                if let Some(id) = self.id_of(conn) {
                    id.hear(Heard::End);
                }
            }
            CmEvent::Disconnected { conn } => {
                // Whoever began it: the manager has answered already.
                self.tell(conn, Message::new(Kind::Disconnected));
                self.tell(conn, Message::new(Kind::Disconnect));
            }
            _ => {}
        }
    }

    /// Makes a call again that nobody was there to take, for a while: the listener may not be ready yet.
    /// False where it has been tried long enough.
    fn call_again(&'static self, conn: ConnId) -> bool {
        let mut table = self.table();
        let Some(known) = table.connections.get_mut(&conn) else {
            return false;
        };
        let Some((to, message, since)) = known.call.take() else {
            return false;
        };
        if since.elapsed() >= PATIENCE {
            return false;
        }
        let id = Arc::clone(&known.id);
        table.connections.remove(&conn);
        drop(table);
        std::thread::sleep(AGAIN);
        if !id.restart_call() {
            id.refused();
            return true;
        }
        // Who listened meanwhile may have found the standard port taken, perhaps by us.
        if is_local(to.ip())
            && let Ok(talk) = local::dial(&id, to, &message)
        {
            id.answered(talk);
        } else if self.call(&id, to, message, since).is_err() {
            id.refused();
        }
        true
    }

    fn refused(&'static self, conn: ConnId, reason: Reason, private: &Private) {
        if reason == Reason::INVALID_SERVICE_ID && self.call_again(conn) {
            return;
        }
        let known = self.table().connections.remove(&conn);
        let Some(known) = known else { return };
        let mut message = Message::new(Kind::Reject);
        message.reason = reason.0.get();
        message.data = user_data(Kind::Reject, private.bytes());
        known.id.hear(Heard::Message(message));
    }

    fn asked(&'static self, conn: ConnId, service: u64, peer: Option<&Params>, private: &Private) {
        let listener = self.table().services.get(&service).cloned();
        let talk: Arc<dyn Talk> = Arc::new(Line { hub: self, conn });
        let request = addresses(private.bytes());
        let (Some(listener), Some((source, port, destination, data))) = (listener, request) else {
            talk.close();
            return;
        };
        let mut message = match peer {
            Some(peer) => said(Kind::Request, peer, data),
            None => {
                let mut message = Message::new(Kind::Lookup);
                message.gid = ip_to_gid(source);
                message.data = user_data(Kind::Lookup, data);
                message
            }
        };
        message.space = u32::try_from(service >> 16).unwrap_or(0);
        message.source = SocketAddr::new(source, port);
        // The low half of a service's number is the port.
        let to_port = u16::try_from(service & 0xffff).unwrap_or(0);
        message.destination = SocketAddr::new(destination, to_port);
        // This thread is the only one that tells the connection's events, so none is lost.
        match listener.called_at(self.device, Arc::clone(&talk), message) {
            Some(id) => {
                let known = Known { id, call: None };
                self.table().connections.insert(conn, known);
            }
            None => talk.close(),
        }
    }
}

/// What the other side said of itself.
fn said(kind: Kind, peer: &Params, data: &[u8]) -> Message {
    let mut message = Message::new(kind);
    message.qpn = peer.qpn;
    message.psn = peer.psn;
    message.gid = peer.gid;
    message.mtu = peer.mtu;
    message.responder_resources = peer.responder_resources;
    message.initiator_depth = peer.initiator_depth;
    message.retry_count = peer.retry_count;
    message.rnr_retry_count = peer.rnr_retry;
    message.srq = peer.srq.into();
    message.data = user_data(kind, data);
    message
}

/// As many bytes as the kind has room for.
fn user_data(kind: Kind, data: &[u8]) -> Vec<u8> {
    data.iter().take(kind.room()).copied().collect()
}

/// One connection.
struct Line {
    hub: &'static Hub,
    conn: ConnId,
}

impl fmt::Debug for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Line")
            .field("conn", &self.conn)
            .finish_non_exhaustive()
    }
}

impl Talk for Line {
    fn send(&self, message: &Message) -> Result<(), Errno> {
        let (conn, data) = (self.conn, &message.data);
        let params = self.hub.params(message);
        self.hub
            .manager(|cm, now| match message.kind {
                Kind::Reply => cm.accept(now, conn, &params, data),
                Kind::Ready => cm.confirm(conn, data),
                Kind::Reject => cm.reject(now, conn, Reason::CONSUMER, data),
                Kind::Disconnect => cm.disconnect(now, conn),
                Kind::Found => {
                    let reply = SidrReply {
                        status: u8::try_from(message.reason).unwrap_or(1),
                        qpn: message.qpn,
                        q_key: message.qkey,
                    };
                    cm.answer(now, conn, &reply, data)
                }
                // The manager answers these by itself, and asks by `call`.
                Kind::Disconnected | Kind::Request | Kind::Lookup => Ok(()),
            })
            .map_err(errno)
    }

    fn close(&self) {
        let known = self.hub.table().connections.remove(&self.conn);
        self.hub.manager(|cm, now| cm.forget(now, self.conn));
        drop(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_addresses_of_a_request_come_back() {
        for (from, to) in [
            ("192.0.2.1:4000", "192.0.2.2:7471"),
            ("[2001:db8::1]:1", "[::1]:2"),
        ] {
            let mut message = Message::new(Kind::Request);
            message.source = from.parse().unwrap();
            message.destination = to.parse().unwrap();
            message.data = b"hello".to_vec();
            let bytes = with_addresses(&message);
            let (source, port, destination, data) = addresses(&bytes).unwrap();
            assert_eq!(SocketAddr::new(source, port), message.source);
            assert_eq!(destination, message.destination.ip());
            assert_eq!(data, b"hello");
        }
        assert_eq!(addresses(&[0; 35]), None);
        assert_eq!(addresses(&[0; 92]), None, "neither IPv4 nor IPv6");
    }
}
