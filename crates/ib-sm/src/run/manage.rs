//! The loop that drives a subnet manager over a port.

use std::time::Duration;

use ib_mad::{MadPort, PortError, Time};

use crate::core::sm::{Event, Sm};
use crate::{Error, Result};

/// Packets that are taken in a row before more are sent.
const BATCH: usize = 8;

/// How long is waited for room in a port that cannot take a packet.
const ROOM: Duration = Duration::from_millis(1);

/// What the loop is to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Go on.
    Go,
    /// End.
    Stop,
}

/// Drives a manager until `control` says to stop. It is called again and again, at least every
/// `every` of the port's clock, and may change the manager; `on_event` is told what happens.
///
/// # Errors
/// Where the port fails.
pub fn manage<P: MadPort + ?Sized>(
    port: &mut P,
    sm: &mut Sm,
    every: Duration,
    mut control: impl FnMut(&mut Sm, Time) -> Next,
    mut on_event: impl FnMut(&Sm, Time, Event),
) -> Result<()> {
    let mut unsent = None;
    let mut answers = 0;
    let failed = |answers: u64, source: PortError| Error::Port { answers, source };
    loop {
        let now = port.now();
        sm.handle_timeout(now);
        while let Some(packet) = unsent.take().or_else(|| sm.poll_transmit(now)) {
            match port.send(&packet) {
                Ok(()) => {}
                Err(PortError::Full) => {
                    unsent = Some(packet);
                    break;
                }
                Err(source) => return Err(failed(answers, source)),
            }
        }
        while let Some(event) = sm.poll_event() {
            on_event(sm, port.now(), event);
        }
        if control(sm, now) == Next::Stop {
            return Ok(());
        }
        let deadline = sm.poll_timeout().unwrap_or(Time::FAR);
        let mut wait = deadline.since(now).min(every);
        if unsent.is_some() {
            wait = wait.min(ROOM);
        }
        for _ in 0..BATCH {
            match port.receive(wait) {
                Ok(Some(packet)) => {
                    answers += 1;
                    sm.handle_mad(port.now(), &packet);
                }
                Ok(None) => break,
                Err(source) => return Err(failed(answers, source)),
            }
            wait = Duration::ZERO;
        }
    }
}
