//! The loop that drives a state machine over a port.

use std::time::Duration;

use ib_mad::{MadPort, PortError};

use crate::core::discovery::{Config, Discovered, Discovery, Event, NoStart};
use crate::{Error, Result};

/// Packets that are taken in a row before more are sent: few, so that the other side has always
/// something to do.
const BATCH: usize = 8;

/// How long is waited for room in a port that cannot take a packet.
const ROOM: Duration = Duration::from_millis(1);

/// Walks the fabric that a port is connected to. `on_event` is told how far it is.
///
/// # Errors
/// Where the port fails, and where the local node does not say who it is. What is wrong in the
/// fabric is in [`Discovered::warnings`].
pub fn discover<P: MadPort + ?Sized>(
    port: &mut P,
    config: Config,
    mut on_event: impl FnMut(Event),
) -> Result<Discovered> {
    let mut walk = Discovery::new(config);
    let mut unsent = None;
    loop {
        let now = port.now();
        walk.handle_timeout(now);
        while let Some(packet) = unsent.take().or_else(|| walk.poll_transmit(now)) {
            match port.send(&packet) {
                Ok(()) => {}
                Err(PortError::Full) => {
                    unsent = Some(packet);
                    break;
                }
                Err(source) => return Err(port_failed(&walk, source)),
            }
        }
        while let Some(event) = walk.poll_event() {
            on_event(event);
        }
        if walk.is_done() {
            break;
        }
        let deadline = walk.poll_timeout().unwrap_or(now);
        let mut wait = deadline.since(now);
        if unsent.is_some() {
            wait = wait.min(ROOM);
        }
        for _ in 0..BATCH {
            match port.receive(wait) {
                Ok(Some(packet)) => walk.handle_mad(port.now(), &packet),
                Ok(None) => break,
                Err(source) => return Err(port_failed(&walk, source)),
            }
            wait = Duration::ZERO;
        }
    }
    walk.finish().map_err(|no_start| {
        let device = port.local().device.clone();
        match no_start {
            NoStart::Silent { attempts } => Error::LocalSilent {
                device,
                attempts,
                timeout: config.timeout,
            },
            NoStart::Refused { status } => Error::LocalRefuses { device, status },
        }
    })
}

fn port_failed(walk: &Discovery, source: PortError) -> Error {
    Error::Port {
        answers: walk.stats().answered,
        source,
    }
}
