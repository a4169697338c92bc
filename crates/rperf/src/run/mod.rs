//! Measuring.

mod bandwidth;
mod carrier;
mod latency;
mod plan;
mod setup;
mod wait;

use std::io::{Read, Write};
use std::time::Duration;

use rverbs::Context;
use rverbs::provider::Errno;
use rverbs::qp::{PostError, Rc, Uc, Ud};

pub use plan::{GRH, Plan};
pub use setup::Local;
pub use wait::Watch;

use bandwidth::Part;
use carrier::Carrier;
use setup::{Ends, first, is_latency};
use wait::Patience;

use crate::Error;
use crate::peer::{BandwidthReport, Greeting, Role, Talk};
use crate::result::{Run, Side};
use crate::spec::{Metric, Transport, Verb};
use crate::stats::Throughput;
use crate::whole;

/// What one measurement of one size came to.
#[derive(Debug, Clone)]
pub struct Figures {
    /// Bytes of a message.
    pub size: u32,
    /// What this side saw, and of tests in both directions what the other one did, too. Of a side whose memory
    /// is written or read, what the other one said.
    pub run: Run,
    /// Bytes a second at the best time, where requests were counted.
    pub peak: Option<f64>,
}

/// A whole test.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// What the peer is.
    pub peer: Greeting,
    /// In order.
    pub figures: Vec<Figures>,
}

fn verb_failed(verb: &'static str) -> impl FnOnce(Errno) -> Error {
    move |errno| Error::Verbs(rverbs::Error::Verb { verb, errno })
}

fn post_failed<B>(verb: &'static str) -> impl FnOnce(PostError<B>) -> Error {
    move |error| verb_failed(verb)(error.errno)
}

/// Says to the peer what this side is, and hears what that one is.
///
/// # Errors
///
/// Those of [`Talk::greet`], and what asking the device said.
pub fn greet<S: Read + Write>(
    context: &Context,
    talk: &mut Talk<S>,
    local: &Local,
) -> Result<Greeting, Error> {
    let (page, line, mtu) = setup::greeting_of(context, local)?;
    Ok(talk.greet(page, line, mtu)?)
}

/// Measures with a peer that was greeted: perftest, or this crate, with the same plan. `seen` is told of each size when it is
/// done.
///
/// # Errors
///
/// Why it could not be measured. Nothing is waited for longer than `limit`.
pub fn measure<S: Read + Write>(
    context: &Context,
    talk: Talk<S>,
    greeting: Greeting,
    plan: &Plan,
    local: &Local,
    (watch, limit): (&mut dyn Watch, Duration),
    seen: &mut dyn FnMut(&Figures),
) -> Result<Outcome, Error> {
    check(plan)?;
    let patience = Patience::new(watch, limit);
    match plan.transport {
        Transport::Rc => test::<Rc, S>(context, talk, greeting, plan, local, patience, seen),
        Transport::Uc => test::<Uc, S>(context, talk, greeting, plan, local, patience, seen),
        Transport::Ud => test::<Ud, S>(context, talk, greeting, plan, local, patience, seen),
    }
}

/// What a side of this crate says of itself, once it was greeted by one.
#[derive(Debug, Clone, serde::Serialize, serde::Deserialize)]
pub struct Introduction {
    /// What it is going to do.
    pub plan: Plan,
    /// What it runs on.
    pub side: Side,
}

/// Tells a peer of this crate what is planned and where, and hears it.
///
/// # Errors
///
/// [`Error::Plans`] where it plans something else, [`Error::Spec`] where it says nothing that makes sense, and
/// those of [`Talk::share`].
pub fn introduce<S: Read + Write>(
    talk: &mut Talk<S>,
    own: &Introduction,
) -> Result<Introduction, Error> {
    let wrong = |error: serde_json::Error| Error::Spec {
        what: format!("what the peer says of itself: {error}"),
    };
    let text = serde_json::to_vec(own).map_err(wrong)?;
    let theirs = talk.share("telling what is planned", &text)?;
    let theirs: Introduction = serde_json::from_slice(&theirs).map_err(wrong)?;
    own.plan.fits(&theirs.plan)?;
    Ok(theirs)
}

fn check(plan: &Plan) -> Result<(), Error> {
    let wrong = |what: String| Err(Error::Spec { what });
    if !plan.transport.carries(plan.verb) {
        let (verb, transport) = (plan.verb.name(), plan.transport.name());
        return wrong(format!("{transport} does not carry {verb}"));
    }
    if plan.sizes.is_empty() || plan.qps == 0 {
        return wrong("a test has at least one size and one queue pair".to_owned());
    }
    if plan.verb == Verb::Atomic && plan.sizes != [8] {
        return wrong("atomic operations have 8 bytes".to_owned());
    }
    if plan.metric == Metric::Latency && plan.qps != 1 {
        return wrong("a latency test has one queue pair".to_owned());
    }
    if plan.metric == Metric::Latency && plan.verb == Verb::Write && plan.sizes.contains(&0) {
        return wrong("a write of no bytes is not seen by who waits for it".to_owned());
    }
    Ok(())
}

fn test<T: Carrier, S: Read + Write>(
    context: &Context,
    mut talk: Talk<S>,
    greeting: Greeting,
    plan: &Plan,
    local: &Local,
    mut patience: Patience<'_>,
    seen: &mut dyn FnMut(&Figures),
) -> Result<Outcome, Error> {
    let role = talk.role();
    // Latency tests take completions in bunches, for which there has to be room.
    let mut roomy = plan.clone();
    if is_latency(plan, &[Verb::Send, Verb::Write]) {
        roomy.tx_depth = plan.tx_depth.max(LATENCY_DEPTH);
    }
    let plan = &roomy;
    let mut ends = Ends::<T>::meet(context, &mut talk, &greeting, plan, local)?;
    if T::HEADER && plan.largest() > 128 << ends.mtu {
        return Err(Error::Spec {
            what: format!(
                "a datagram has no more bytes than the MTU, which is {}",
                128 << ends.mtu
            ),
        });
    }
    let key = *first(&ends.own)?;
    let sync = "waiting for the other side";
    let several = plan.sizes.len() > 1 || plan.repeats > 1;
    let mut figures = Vec::with_capacity(plan.sizes.len());
    let part = Part {
        sends: role == Role::Client || plan.bidirectional,
        receives: plan.verb == Verb::Send && (role == Role::Server || plan.bidirectional),
    };
    // Whose memory is read or written without its processor; who waits for a write's last byte sees it.
    let is_passive = !part.sends && !part.receives && !is_latency(plan, &[Verb::Write]);
    let runs = plan
        .sizes
        .iter()
        .flat_map(|size| (0..plan.repeats).map(move |_| *size));
    for size in runs {
        let found = if plan.metric == Metric::Latency {
            if plan.verb == Verb::Send {
                ends.post_receives(plan, size)?;
                talk.keys(sync, &key)?;
            }
            if is_passive {
                continue;
            }
            Figures {
                size,
                run: ends.latency(role, plan, size, &mut patience)?,
                peak: None,
            }
        } else {
            if is_passive {
                continue;
            }
            if part.receives {
                ends.post_receives(plan, size)?;
            }
            if plan.verb == Verb::Send || plan.bidirectional {
                talk.keys(sync, &key)?;
            }
            let (mut run, rate) = ends.bandwidth(part, plan, size, &mut patience)?;
            let peak = rate.map(|rate| rate * f64::from(size));
            if several && plan.bidirectional && plan.verb != Verb::Send {
                talk.keys(sync, &key)?;
            }
            if plan.bidirectional && plan.times().is_none() {
                let peer = talk.reports(report(&run, size, peak))?;
                run.throughput = both(run.throughput, told(peer));
            }
            if several && plan.verb == Verb::Send {
                talk.keys(sync, &key)?;
            }
            Figures { size, run, peak }
        };
        seen(&found);
        figures.push(found);
    }
    if plan.metric == Metric::Bandwidth && plan.verb != Verb::Send && !plan.bidirectional {
        talk.keys(sync, &key)?;
        let last = figures.last().map(|it| report(&it.run, it.size, it.peak));
        let peer = talk.reports(last.unwrap_or_default())?;
        if is_passive {
            const MEBI: f64 = 1_048_576.0;
            let found = Figures {
                size: u32::try_from(peer.size).unwrap_or(u32::MAX),
                run: Run::of(told(peer)),
                peak: (peer.peak > 0.0).then_some(peer.peak * MEBI),
            };
            seen(&found);
            figures.push(found);
        }
    }
    if !is_latency(plan, &[Verb::Write]) {
        talk.close(&key)?;
    }
    Ok(Outcome {
        peer: greeting,
        figures,
    })
}

/// What the other side saw. A rate that no time gives is none.
fn told(peer: BandwidthReport) -> Throughput {
    let seconds = peer.iterations as f64 / (peer.rate * 1e6);
    let known = seconds.is_finite() && seconds > 0.0 && seconds < 1e9;
    Throughput {
        messages: peer.iterations,
        bytes: peer.iterations.saturating_mul(peer.size),
        elapsed: if known { whole(seconds * 1e9) } else { 0 },
    }
}

/// The messages of both directions, in a time that makes their rate the sum of both rates.
fn both(own: Throughput, other: Throughput) -> Throughput {
    let rate = own.message_rate() + other.message_rate();
    let messages = own.messages.saturating_add(other.messages);
    Throughput {
        messages,
        bytes: own.bytes.saturating_add(other.bytes),
        elapsed: if rate > 0.0 {
            whole(messages as f64 / rate * 1e9)
        } else {
            own.elapsed
        },
    }
}

/// Requests of a latency test that may be on their way, answered but not completed.
const LATENCY_DEPTH: u32 = 16;

/// As perftest says it: MiB/s and millions a second.
fn report(run: &Run, size: u32, peak: Option<f64>) -> BandwidthReport {
    BandwidthReport {
        size: size.into(),
        iterations: run.throughput.messages,
        peak: peak.unwrap_or(0.0) / 1_048_576.0,
        average: run.throughput.mebibytes(),
        rate: run.throughput.message_rate() / 1e6,
    }
}
