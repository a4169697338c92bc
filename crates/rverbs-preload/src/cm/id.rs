//! Identifiers: `rdma_cm_id`, its state, and what it does with what it hears.

use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::fmt;
use core::ptr::null_mut;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use rverbs::provider::Errno;
use rverbs_sys::{
    IBV_QPT_UD, RDMA_CM_EVENT_CONNECT_ERROR, RDMA_CM_EVENT_CONNECT_REQUEST,
    RDMA_CM_EVENT_CONNECT_RESPONSE, RDMA_CM_EVENT_DISCONNECTED, RDMA_CM_EVENT_ESTABLISHED,
    RDMA_CM_EVENT_REJECTED, RDMA_CM_EVENT_UNREACHABLE, ibv_ah_attr, ibv_gid, ibv_global_route,
    ibv_qp_init_attr, ibv_qp_type, ibv_sa_path_rec, rdma_cm_event_type, rdma_cm_id,
    rdma_event_channel, rdma_port_space,
};

use super::address;
use super::channel::{Channel, Incoming, Param, Queue, next};
use super::message::{Kind, Message};
use super::wire::{Listening, Reservation, Talk, device_for};
use crate::device::{Device, Open};

/// How far an identifier is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// New, or bound to an address.
    Idle,
    /// It knows its device.
    Resolved,
    /// It takes requests.
    Listening,
    /// It sent a request, or a lookup.
    Requested,
    /// The reply is here, and was not answered yet.
    Replied,
    /// A request is here, and was not answered yet.
    Asked,
    /// It sent a reply.
    Accepted,
    /// Both sides are ready.
    Connected,
    /// It said that the connection ends.
    Disconnecting,
    /// Nothing more will happen.
    Ended,
}

/// What changes while an identifier lives.
pub(crate) struct State {
    /// Where its events go.
    pub(crate) queue: Arc<Queue>,
    /// Whether the channel is its own, and each function waits for its event.
    pub(crate) sync: bool,
    pub(crate) phase: Phase,
    pub(crate) device: Option<&'static Device>,
    pub(crate) reservation: Option<Arc<dyn Reservation>>,
    pub(crate) listening: Vec<Box<dyn Listening>>,
    pub(crate) talk: Option<Arc<dyn Talk>>,
    /// What the other side said of itself.
    pub(crate) peer: Option<Message>,
    /// What this side said of itself.
    pub(crate) own: Option<Message>,
    /// What the other side's first packet is to be numbered: known before this side says it, to who moves a
    /// queue pair of his own before he accepts.
    pub(crate) first_psn: u32,
    pub(crate) responder_resources: u8,
    pub(crate) initiator_depth: u8,
    /// Moving the queue pair failed, so what the other side says of it is no news.
    pub(crate) connect_failed: bool,
    /// The event that it ended was given.
    disconnected: bool,
    /// What `rdma_get_request` makes queue pairs with.
    pub(crate) qp_init_attr: Option<ibv_qp_init_attr>,
    /// Private data that `rdma_getaddrinfo` put before the user's.
    pub(crate) connect_data: Vec<u8>,
    /// Multicast groups: address, GID.
    pub(crate) groups: Vec<(SocketAddr, ibv_ah_attr)>,
}

/// A first packet sequence number that others cannot know beforehand.
fn new_psn() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut bytes = [0; 4];
    // SAFETY: writes four bytes of our own.
    let got = unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) };
    let random = u32::from_ne_bytes(bytes);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let psn = if got == 4 {
        random
    } else {
        std::process::id() ^ count << 12
    };
    psn & 0xff_ffff
}

/// What an identifier hears from the other side.
pub(crate) enum Heard {
    Message(Message),
    /// The other side hung up, or its process ended.
    End,
}

#[derive(Default)]
struct Events {
    reported: u64,
    acknowledged: u64,
}

/// An identifier. C holds the address of its first field.
#[repr(C)]
pub(crate) struct Id {
    raw: UnsafeCell<rdma_cm_id>,
    state: Mutex<State>,
    events: Mutex<Events>,
    all_acknowledged: Condvar,
}

// SAFETY: C's struct is the program's to use from one thread at a time, as with the C library; the
// rest is behind locks, and the pointers in it are to objects that may be used from any thread.
unsafe impl Send for Id {}
// SAFETY: as above.
unsafe impl Sync for Id {}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Id")
            .field("phase", &self.state().phase)
            .finish_non_exhaustive()
    }
}

impl Id {
    /// A new identifier with events on `channel`, or on one of its own.
    pub(crate) fn new(
        channel: *mut rdma_event_channel,
        user: *mut c_void,
        space: rdma_port_space,
        qp_type: ibv_qp_type,
    ) -> Result<Arc<Self>, Errno> {
        let sync = channel.is_null();
        let channel = if sync {
            Channel::new()?.into_raw()
        } else {
            channel
        };
        // SAFETY: the caller's channel is live, or it is the new one.
        let queue = Arc::clone(unsafe { &Channel::of(channel).queue });
        // SAFETY: integers and null pointers: zero is a value of each.
        let mut raw: rdma_cm_id = unsafe { core::mem::zeroed() };
        raw.channel = channel;
        raw.context = user;
        raw.ps = space;
        raw.qp_type = qp_type;
        Ok(Arc::new(Self {
            raw: UnsafeCell::new(raw),
            state: Mutex::new(State {
                queue,
                sync,
                phase: Phase::Idle,
                device: None,
                reservation: None,
                listening: Vec::new(),
                talk: None,
                peer: None,
                own: None,
                first_psn: new_psn(),
                responder_resources: 0,
                initiator_depth: 0,
                connect_failed: false,
                disconnected: false,
                qp_init_attr: None,
                connect_data: Vec::new(),
                groups: Vec::new(),
            }),
            events: Mutex::default(),
            all_acknowledged: Condvar::new(),
        }))
    }

    /// C's struct.
    pub(crate) fn raw(&self) -> *mut rdma_cm_id {
        self.raw.get()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a reference to C.
    pub(crate) fn into_raw(this: Arc<Self>) -> *mut rdma_cm_id {
        Arc::into_raw(this).cast_mut().cast()
    }

    /// Another reference to the identifier that C holds.
    ///
    /// # Safety
    ///
    /// The pointer came from [`Id::into_raw`] and was not destroyed.
    pub(crate) unsafe fn share(raw: *mut rdma_cm_id) -> Result<Arc<Self>, Errno> {
        let this = raw.cast::<Self>().cast_const();
        if this.is_null() {
            return Err(Errno(libc::EINVAL));
        }
        // SAFETY: C still owns a count.
        unsafe { Arc::increment_strong_count(this) };
        // SAFETY: it is the count that was just added.
        Ok(unsafe { Arc::from_raw(this) })
    }

    /// Gives an event.
    pub(crate) fn give(self: &Arc<Self>, event: rdma_cm_event_type, status: c_int, param: Param) {
        let state = self.state();
        self.give_in(&state, event, status, param);
    }

    fn give_in(
        self: &Arc<Self>,
        state: &State,
        event: rdma_cm_event_type,
        status: c_int,
        param: Param,
    ) {
        state.queue.push(Incoming {
            owner: Arc::clone(self),
            child: None,
            event,
            status,
            param,
        });
    }

    pub(crate) fn reported(&self) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.reported += 1;
    }

    pub(crate) fn acknowledged(&self) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.acknowledged += 1;
        self.all_acknowledged.notify_all();
    }

    /// Waits until the program has acknowledged every event it took.
    pub(crate) fn wait_acknowledged(&self) {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        while events.acknowledged < events.reported {
            events = self
                .all_acknowledged
                .wait(events)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it is for datagrams.
    pub(crate) fn is_datagram(&self) -> bool {
        // SAFETY: the field is written when the identifier is made.
        unsafe { (*self.raw()).qp_type == IBV_QPT_UD }
    }

    pub(crate) fn space(&self) -> u32 {
        // SAFETY: the field is written when the identifier is made.
        unsafe { (*self.raw()).ps }
    }

    /// Tells C the address of this side.
    pub(crate) fn set_source(&self, source: &SocketAddr) {
        // SAFETY: the program's thread is the only one that looks.
        address::write_source(unsafe { &mut (*self.raw()).route.addr }, source);
    }

    /// Tells C the address of the other side.
    pub(crate) fn set_destination(&self, destination: &SocketAddr) {
        // SAFETY: the program's thread is the only one that looks.
        address::write_destination(unsafe { &mut (*self.raw()).route.addr }, destination);
    }

    pub(crate) fn source(&self) -> Option<SocketAddr> {
        // SAFETY: the struct is ours, and the family says what is in it.
        unsafe { address::read(&raw const (*self.raw()).route.addr.src.src_addr) }
    }

    pub(crate) fn destination(&self) -> Option<SocketAddr> {
        // SAFETY: the struct is ours, and the family says what is in it.
        unsafe { address::read(&raw const (*self.raw()).route.addr.dst.dst_addr) }
    }

    /// Binds it to a device.
    pub(crate) fn attach(&self, device: &'static Device) -> Result<(), Errno> {
        let mut state = self.state();
        if state.device.is_some() {
            return Ok(());
        }
        let (context, pd) = device.shared()?;
        // SAFETY: the shared context is never closed.
        let open = unsafe { Open::of(context.as_ptr()) };
        let gid = open.provider.query_gid(1, 0)?.gid;
        state.device = Some(device);
        // SAFETY: the program's thread is the only one that looks.
        unsafe {
            let raw = self.raw();
            (*raw).verbs = context.as_ptr();
            (*raw).pd = pd.as_ptr();
            (*raw).port_num = 1;
            (*raw).route.addr.addr.ibaddr.sgid = gid;
            (*raw).route.addr.addr.ibaddr.pkey = 0xffff;
        }
        Ok(())
    }

    /// The open device of an identifier that has one.
    pub(crate) fn open(&self) -> Result<&'static Open, Errno> {
        let device = self.state().device.ok_or(Errno(libc::EINVAL))?;
        let (context, _) = device.shared()?;
        // SAFETY: the shared context is never closed.
        Ok(unsafe { Open::of(context.as_ptr()) })
    }

    /// Fills the path in, which programs look at after their route is resolved.
    pub(crate) fn set_path(&self) -> Result<(), Errno> {
        let open = self.open()?;
        let port = open.provider.query_port(1)?;
        // SAFETY: makes memory and touches nothing else.
        let path =
            unsafe { libc::calloc(1, size_of::<ibv_sa_path_rec>()) }.cast::<ibv_sa_path_rec>();
        if path.is_null() {
            return Err(Errno(libc::ENOMEM));
        }
        // SAFETY: the memory is new; the program's thread is the only one that looks at the struct.
        unsafe {
            let raw = self.raw();
            libc::free((*raw).route.path_rec.cast());
            (*path).sgid = (*raw).route.addr.addr.ibaddr.sgid;
            (*path).dgid = (*raw).route.addr.addr.ibaddr.dgid;
            (*path).slid = port.lid.to_be();
            (*path).dlid = port.lid.to_be();
            (*path).reversible = 1;
            (*path).numb_path = 1;
            (*path).pkey = 0xffff;
            (*path).mtu_selector = 2;
            (*path).mtu = u8::try_from(port.active_mtu).unwrap_or(0);
            (*path).rate_selector = 2;
            (*path).packet_life_time_selector = 2;
            (*raw).route.path_rec = path;
            (*raw).route.num_paths = 1;
        }
        Ok(())
    }

    /// What this side says of itself, beside what the user says.
    pub(crate) fn introduce(&self, kind: Kind) -> Result<Message, Errno> {
        let open = self.open()?;
        let port = open.provider.query_port(1)?;
        let gid = open.provider.query_gid(1, 0)?.gid;
        let mut message = Message::new(kind);
        message.space = self.space();
        // SAFETY: all bytes of the union are in `raw`.
        message.gid = unsafe { gid.raw };
        message.lid = port.lid;
        message.mtu = u8::try_from(port.active_mtu).unwrap_or(1);
        if let Some(source) = self.source() {
            message.source = source;
        }
        if let Some(destination) = self.destination() {
            message.destination = destination;
        }
        Ok(message)
    }

    /// Somebody called this identifier, which listens. Gives the new identifier that is about it.
    pub(crate) fn called(
        self: &Arc<Self>,
        talk: Arc<dyn Talk>,
        message: Message,
    ) -> Option<Arc<Self>> {
        let device = device_for(message.destination.ip()).ok()?;
        self.called_at(device, talk, message)
    }

    /// As [`Id::called`], by a certain device.
    pub(crate) fn called_at(
        self: &Arc<Self>,
        device: &'static Device,
        talk: Arc<dyn Talk>,
        message: Message,
    ) -> Option<Arc<Self>> {
        let wanted = if self.is_datagram() {
            Kind::Lookup
        } else {
            Kind::Request
        };
        let listens = self.state().phase == Phase::Listening;
        if message.kind != wanted || !listens {
            return None;
        }
        // SAFETY: the fields are written before an identifier listens, and stay.
        let (channel, user, space, qp_type) = unsafe {
            let raw = self.raw();
            ((*raw).channel, (*raw).context, (*raw).ps, (*raw).qp_type)
        };
        let child = Self::new(channel, user, space, qp_type).ok()?;
        child.set_source(&message.destination);
        child.set_destination(&message.source);
        child.attach(device).ok()?;
        // SAFETY: nobody else has seen the new identifier.
        unsafe { (*child.raw()).route.addr.addr.ibaddr.dgid.raw = message.gid };
        child.set_path().ok()?;
        {
            let mut state = child.state();
            state.phase = Phase::Asked;
            state.talk = Some(talk);
            // What the other side starts, this one answers.
            state.responder_resources = message.initiator_depth;
            state.initiator_depth = message.responder_resources;
            state.peer = Some(message.clone());
        }
        let param = if self.is_datagram() {
            Param::Datagram(message, ibv_ah_attr::default())
        } else {
            Param::Connection(message)
        };
        self.state().queue.push(Incoming {
            owner: Arc::clone(self),
            child: Some(Arc::clone(&child)),
            event: RDMA_CM_EVENT_CONNECT_REQUEST,
            status: 0,
            param,
        });
        Some(child)
    }

    /// Whether it still waits for somebody to answer its call.
    pub(crate) fn calls(&self) -> bool {
        let state = self.state();
        state.phase == Phase::Requested && state.talk.is_none()
    }

    /// Forgets whom it called, to call again; false where it does not want to any more.
    pub(crate) fn restart_call(&self) -> bool {
        let mut state = self.state();
        state.talk = None;
        state.phase == Phase::Requested
    }

    /// Somebody is there to talk to.
    pub(crate) fn answered(&self, talk: Arc<dyn Talk>) {
        let mut state = self.state();
        if matches!(state.phase, Phase::Ended) && state.talk.is_none() && state.peer.is_none() {
            // The identifier was destroyed meanwhile.
            drop(state);
            talk.close();
            return;
        }
        state.talk = Some(talk);
    }

    /// Nobody listens there.
    pub(crate) fn refused(self: &Arc<Self>) {
        let mut state = self.state();
        state.phase = Phase::Ended;
        let message = Message::new(Kind::Reject);
        if self.is_datagram() {
            let param = Param::Datagram(message, ibv_ah_attr::default());
            let status = -libc::ETIMEDOUT;
            self.give_in(&state, RDMA_CM_EVENT_UNREACHABLE, status, param);
        } else {
            let status = c_int::from(INVALID_SERVICE);
            let param = Param::Connection(message);
            self.give_in(&state, RDMA_CM_EVENT_REJECTED, status, param);
        }
    }

    /// The other side said something, or hung up.
    pub(crate) fn hear(self: &Arc<Self>, heard: Heard) {
        let mut state = self.state();
        let message = match heard {
            Heard::Message(message) => message,
            Heard::End => return self.end(&mut state),
        };
        match (state.phase, message.kind) {
            (Phase::Requested, Kind::Reply) => {
                state.phase = Phase::Replied;
                state.responder_resources = message.initiator_depth;
                state.initiator_depth = message.responder_resources;
                state.peer = Some(message.clone());
                let param = Param::Connection(message);
                self.give_in(&state, RDMA_CM_EVENT_CONNECT_RESPONSE, 0, param);
            }
            (Phase::Accepted, Kind::Ready) => {
                state.phase = Phase::Connected;
                let param = Param::Connection(message);
                self.give_in(&state, RDMA_CM_EVENT_ESTABLISHED, 0, param);
            }
            (Phase::Requested | Phase::Accepted, Kind::Reject) => {
                state.phase = Phase::Ended;
                let status = c_int::from(message.reason);
                let param = Param::Connection(message);
                self.give_in(&state, RDMA_CM_EVENT_REJECTED, status, param);
            }
            (Phase::Requested, Kind::Found) if message.reason == 0 => {
                state.phase = Phase::Connected;
                let address = toward(&message);
                let param = Param::Datagram(message, address);
                self.give_in(&state, RDMA_CM_EVENT_ESTABLISHED, 0, param);
            }
            (Phase::Requested, Kind::Found) => {
                state.phase = Phase::Ended;
                let status = c_int::from(message.reason);
                let param = Param::Datagram(message, ibv_ah_attr::default());
                self.give_in(&state, RDMA_CM_EVENT_UNREACHABLE, status, param);
            }
            (
                Phase::Accepted | Phase::Replied | Phase::Connected | Phase::Disconnecting,
                Kind::Disconnect,
            ) => {
                if let Some(talk) = &state.talk {
                    // A side that is gone needs no answer.
                    let _ = talk.send(&Message::new(Kind::Disconnected));
                }
                self.ended(&mut state);
            }
            (Phase::Disconnecting, Kind::Disconnected) => self.ended(&mut state),
            // Late or out of order: it changes nothing.
            _ => {}
        }
    }

    fn end(self: &Arc<Self>, state: &mut State) {
        match state.phase {
            // A lookup needs no conversation after its answer.
            Phase::Connected if self.is_datagram() => {}
            Phase::Connected | Phase::Disconnecting | Phase::Replied => self.ended(state),
            Phase::Requested => {
                state.phase = Phase::Ended;
                self.give_in(
                    state,
                    RDMA_CM_EVENT_UNREACHABLE,
                    -libc::ETIMEDOUT,
                    Param::None,
                );
            }
            Phase::Accepted if !self.is_datagram() => {
                state.phase = Phase::Ended;
                let status = -libc::ETIMEDOUT;
                self.give_in(state, RDMA_CM_EVENT_CONNECT_ERROR, status, Param::None);
            }
            _ => {}
        }
    }

    /// The connection is over, which is told once.
    fn ended(self: &Arc<Self>, state: &mut State) {
        state.phase = Phase::Ended;
        if !state.disconnected {
            state.disconnected = true;
            self.give_in(state, RDMA_CM_EVENT_DISCONNECTED, 0, Param::None);
        }
    }

    /// Sends a message to the other side.
    pub(crate) fn say(&self, message: &Message) -> Result<(), Errno> {
        let talk = self.state().talk.clone();
        talk.ok_or(Errno(libc::ENOTCONN))?.send(message)
    }

    /// Hangs up, with what politeness the phase asks for.
    pub(crate) fn hang_up(&self) {
        let mut state = self.state();
        let talk = state.talk.take();
        let phase = core::mem::replace(&mut state.phase, Phase::Ended);
        let listening = core::mem::take(&mut state.listening);
        let reservation = state.reservation.take();
        drop(state);
        drop(listening);
        drop(reservation);
        let Some(talk) = talk else { return };
        let last = match phase {
            Phase::Connected | Phase::Accepted if !self.is_datagram() => Some(Kind::Disconnect),
            Phase::Asked if self.is_datagram() => Some(Kind::Found),
            Phase::Asked | Phase::Replied => Some(Kind::Reject),
            _ => None,
        };
        if let Some(kind) = last {
            let mut message = Message::new(kind);
            message.reason = CONSUMER_REJECT;
            // A side that is gone needs no goodbye.
            let _ = talk.send(&message);
        }
        talk.close();
    }

    /// Moves to another channel, or to one of its own; the events that wait move along.
    pub(crate) fn migrate(
        self: &Arc<Self>,
        to: Option<*mut rdma_event_channel>,
    ) -> Result<(), Errno> {
        let (channel, sync) = match to {
            Some(channel) => (channel, false),
            None => (Channel::new()?.into_raw(), true),
        };
        // SAFETY: the caller's channel is live, or it is the new one.
        let queue = Arc::clone(unsafe { &Channel::of(channel).queue });
        let mut state = self.state();
        for incoming in state.queue.extract(self) {
            queue.push(incoming);
        }
        state.queue = queue;
        let own = core::mem::replace(&mut state.sync, sync);
        drop(state);
        // SAFETY: the program's thread is the only one that looks.
        let old = unsafe { core::mem::replace(&mut (*self.raw()).channel, channel) };
        if own {
            // SAFETY: the channel was this identifier's own.
            drop(unsafe { Box::from_raw(old.cast::<Channel>()) });
        }
        Ok(())
    }

    /// Ends the life that C gave it.
    ///
    /// # Safety
    ///
    /// C's reference is given up: the pointer is not used again.
    pub(crate) unsafe fn destroy(raw: *mut rdma_cm_id) -> Result<(), Errno> {
        // SAFETY: as the caller promises.
        let this = unsafe { Self::share(raw) }?;
        this.hang_up();
        // SAFETY: the struct is live until the end of this function.
        let event = unsafe { core::mem::replace(&mut (*raw).event, null_mut()) };
        if !event.is_null() {
            // SAFETY: the event was left there by a function that waited for it.
            unsafe { super::channel::acknowledge(event) };
        }
        let queue = Arc::clone(&this.state().queue);
        for incoming in queue.extract(&this) {
            if let Some(child) = incoming.child {
                child.hang_up();
            }
        }
        this.wait_acknowledged();
        // SAFETY: the struct is live, and the path was made by `set_path`.
        unsafe {
            libc::free((*raw).route.path_rec.cast());
            (*raw).route.path_rec = null_mut();
        }
        if this.state().sync {
            // SAFETY: the channel is this identifier's own.
            drop(unsafe { Box::from_raw((*raw).channel.cast::<Channel>()) });
        }
        // SAFETY: the count is the one that C owned.
        drop(unsafe { Arc::from_raw(raw.cast::<Self>().cast_const()) });
        Ok(())
    }

    /// Waits for the event that ends what a synchronous identifier began.
    ///
    /// # Safety
    ///
    /// As for `rdma_get_cm_event`.
    pub(crate) unsafe fn complete(&self) -> Result<(), Errno> {
        let queue = {
            let state = self.state();
            if !state.sync {
                return Ok(());
            }
            Arc::clone(&state.queue)
        };
        let raw = self.raw();
        // SAFETY: the program's thread is the only one that looks.
        let before = unsafe { core::mem::replace(&mut (*raw).event, null_mut()) };
        if !before.is_null() {
            // SAFETY: the event was left there by this function.
            unsafe { super::channel::acknowledge(before) };
        }
        // SAFETY: as the caller promises.
        let event = unsafe { next(&queue) }?;
        // SAFETY: as above; the event is live until it is acknowledged.
        let (kind, status) = unsafe {
            (*raw).event = event;
            ((*event).event, (*event).status)
        };
        match status {
            0 => Ok(()),
            _ if kind == RDMA_CM_EVENT_REJECTED => Err(Errno(libc::ECONNREFUSED)),
            status => Err(Errno(status.saturating_abs())),
        }
    }
}

/// The code of a rejection by the program (IBTA table 110).
pub(crate) const CONSUMER_REJECT: u16 = 28;

/// The code of a rejection because nobody listens there.
const INVALID_SERVICE: u16 = 8;

/// The address of whoever sent a message.
pub(crate) fn toward(message: &Message) -> ibv_ah_attr {
    ibv_ah_attr {
        grh: ibv_global_route {
            dgid: ibv_gid { raw: message.gid },
            flow_label: 0,
            sgid_index: 0,
            hop_limit: 64,
            traffic_class: 0,
        },
        dlid: message.lid,
        is_global: 1,
        port_num: 1,
        ..ibv_ah_attr::default()
    }
}
