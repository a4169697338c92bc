//! `ib-sm run`.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use ib_mad::smp::SmState;
use rdma_cli::{Context, Exit, Failure, Global, Report, read_file, write_file};
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::device::{Device, Opened};
use crate::core::sm::{Config, Event, Fallback, LidMap, PortSettings, Sm, Work};
use crate::routing::{self, Engine};
use crate::run::manage::{Next, manage};

/// The longest file of LIDs: 49 151 lines of 40 bytes, twice.
const MAX_LIDS: u64 = 4 << 20;

/// Manages a subnet: finds who is there, gives LIDs, routes, and keeps that up
///
/// Tells what happens, one line an event, or one JSON object a line with --json. SIGHUP looks at
/// everything anew. SIGTERM and SIGINT end it; the subnet stays routed.
#[derive(Debug, Args)]
pub(crate) struct Run {
    #[command(flatten)]
    device: Device,
    /// End when the subnet is up; exits with 6 where it does not get so far
    #[arg(long)]
    once: bool,
    /// End after so many seconds
    #[arg(long = "for", value_name = "SECONDS")]
    duration: Option<f64>,
    /// Who is to rule where there are several managers, 0 to 15
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=15))]
    priority: u8,
    /// Give 2^LMC LIDs to each end port
    #[arg(long, value_name = "LMC", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=7))]
    lmc: u8,
    /// The file in which LIDs are remembered, as OpenSM's guid2lid
    #[arg(long, value_name = "FILE")]
    lids: Option<PathBuf>,
    /// How to route
    #[arg(long, value_name = "NAME", default_value = DEFAULT_ENGINE)]
    engine: String,
    /// Requests in flight at once
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..=4096))]
    window: u16,
    /// How long an answer may take, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=600_000))]
    timeout: u32,
    /// How often a request is repeated after that
    #[arg(long, value_name = "N", default_value_t = 3)]
    retries: u8,
    /// Seconds between light sweeps; 0: only traps are heeded
    #[arg(long, value_name = "SECONDS", default_value_t = 10.0)]
    sweep: f64,
    /// Seconds between full sweeps that check everything; 0: none
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    full_sweep: f64,
    /// Milliseconds between a standby's questions to the master
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    poll: u32,
    /// Failures after which a standby takes over
    #[arg(long, value_name = "N", default_value_t = 4)]
    poll_failures: u8,
    /// Rule whatever other managers there are
    #[arg(long)]
    ignore_others: bool,
    /// The key of all ports, hexadecimal
    #[arg(long, value_name = "KEY", default_value = "0x0", value_parser = number)]
    m_key: u64,
    /// Threads that routing may use
    #[arg(long, value_name = "N", default_value_t = 0)]
    workers: usize,
}

/// Until a better one is there, the one that never fails.
const DEFAULT_ENGINE: &str = "auto";

fn number(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|error| error.to_string())
}

fn seconds(value: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(value)
        .ok()
        .filter(|it| !it.is_zero())
}

/// The engine of a name. `fallback` is ours; `auto`, where routing has none yet, too.
fn engine(name: &str) -> Result<&'static dyn Engine, Failure> {
    if let Some(engine) = routing::engine(name) {
        return Ok(engine);
    }
    if name == "fallback" || name == "auto" {
        return Ok(&Fallback);
    }
    let known: Vec<&str> = routing::ENGINES.iter().map(|it| it.name()).collect();
    let failure = Failure::new(
        Exit::Usage,
        "engine",
        format!("{name:?} is no way of routing"),
    );
    Err(failure.with_hint(format!("there are: auto, fallback, {}", known.join(", "))))
}

/// Something that has happened.
#[derive(Debug, Clone, Serialize, schemars::JsonSchema)]
pub(crate) struct EventReport {
    /// Microseconds on the port's clock.
    time: u64,
    /// What: `state`, `sweep`, `found`, `routed`, `up`, `trap`, …
    event: &'static str,
    /// The same for people.
    text: String,
    /// With `up`: what was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    work: Option<WorkReport>,
}

/// What was done until the subnet was up.
#[derive(Debug, Clone, Copy, Serialize, schemars::JsonSchema)]
pub(crate) struct WorkReport {
    /// Whether everything was looked at.
    full: bool,
    /// Nodes that there are.
    nodes: usize,
    /// Switches among them.
    switches: usize,
    /// The highest LID.
    top_lid: u16,
    /// Packets sent.
    smps: u64,
    /// Settings of ports written.
    ports: u64,
    /// Blocks of forwarding tables read back.
    blocks_read: u64,
    /// Blocks of forwarding tables written.
    blocks_written: u64,
    /// Of those, written twice so that no packet goes in a circle.
    blocks_scrubbed: u64,
    /// Ports made active.
    activated: u64,
    /// Microseconds on the port's clock until it was known what there is.
    looking_us: u64,
    /// Microseconds on the port's clock in all.
    total_us: u64,
}

impl Report for EventReport {
    const SCHEMA: &'static str = "ib-sm/event/1";
}

impl WorkReport {
    fn new(work: &Work) -> Self {
        let micros = |it: Duration| u64::try_from(it.as_micros()).unwrap_or(u64::MAX);
        Self {
            full: work.reason == crate::core::sm::Reason::Full,
            nodes: work.nodes,
            switches: work.switches,
            top_lid: work.top_lid,
            smps: work.sent,
            ports: work.ports,
            blocks_read: work.read,
            blocks_written: work.blocks,
            blocks_scrubbed: work.scrubbed,
            activated: work.activated,
            looking_us: micros(work.looking),
            total_us: micros(work.total),
        }
    }
}

impl EventReport {
    fn new(time: ib_mad::Time, event: &Event) -> Self {
        let (name, text) = super::super::render::event::words(event);
        Self {
            time: time.as_micros(),
            event: name,
            text,
            work: match event {
                Event::Up(work) => Some(WorkReport::new(work)),
                _ => None,
            },
        }
    }
}

impl Run {
    fn config(&self) -> Config {
        Config {
            priority: self.priority,
            ports: PortSettings {
                lmc: self.lmc,
                m_key: self.m_key,
                ..PortSettings::default()
            },
            window: self.window,
            timeout: Duration::from_millis(self.timeout.into()),
            retries: self.retries,
            light_sweep: seconds(self.sweep),
            full_sweep: seconds(self.full_sweep),
            poll: Duration::from_millis(self.poll.into()),
            poll_failures: self.poll_failures,
            ignore_others: self.ignore_others,
            routing: routing::Options {
                workers: self.workers,
                ..routing::Options::default()
            },
            ..Config::default()
        }
    }

    fn remembered(&self, ctx: &Context) -> Result<LidMap, Failure> {
        let Some(path) = self.lids.as_ref().filter(|it| it.exists()) else {
            return Ok(LidMap::default());
        };
        let bytes = read_file(path, MAX_LIDS)?;
        let (map, faults) = LidMap::parse(&String::from_utf8_lossy(&bytes));
        for fault in faults.iter().take(10) {
            ctx.warn(format_args!("{}: {fault}", path.display()));
        }
        Ok(map)
    }

    pub(crate) fn run(self, ctx: &mut Context, global: &Global) -> Result<Exit, Failure> {
        let engine = engine(&self.engine)?;
        let lids = self.remembered(ctx)?;
        let Opened { mut port, label } = self.device.open(ctx)?;
        let failed = |error| {
            Failure::from(crate::Error::Port {
                answers: 0,
                source: error,
            })
        };
        port.announce_sm(true).map_err(failed)?;
        let stop = Arc::new(AtomicBool::new(false));
        let again = Arc::new(AtomicBool::new(false));
        for (signal, flag) in [(SIGTERM, &stop), (SIGINT, &stop), (SIGHUP, &again)] {
            signal_hook::flag::register(signal, Arc::clone(flag)).map_err(|error| {
                Failure::new(
                    Exit::Bug,
                    "signal",
                    format!("signals cannot be handled: {error}"),
                )
            })?;
        }
        let mut sm = Sm::new(self.config(), engine, lids);
        let started = Instant::now();
        let limit = self.duration.and_then(seconds);
        let mut outcome: Result<(), Failure> = Ok(());
        let mut up = false;
        let ended = {
            let up = &mut up;
            let problem = std::cell::Cell::new(false);
            let begin = port.now();
            manage(
                &mut *port,
                &mut sm,
                Duration::from_millis(100),
                |sm, now| {
                    if again.swap(false, Ordering::Relaxed) {
                        sm.sweep();
                    }
                    let over = limit.is_some_and(|it| now.since(begin) >= it);
                    let done = self.once
                        && (sm.is_up() || (sm.state() == SmState::STANDBY && sm.is_idle()));
                    if stop.load(Ordering::Relaxed) || over || done || problem.get() {
                        Next::Stop
                    } else {
                        Next::Go
                    }
                },
                |sm, time, event| {
                    *up |= matches!(event, Event::Up(_));
                    // What goes wrong for good with the local port ends it, where it is to end.
                    if self.once && event == Event::LocalSilent {
                        problem.set(true);
                    }
                    let told = self.tell(ctx, global, time, &event);
                    let saved = self.remember(sm, &event);
                    if let Err(failure) = told.and(saved) {
                        problem.set(true);
                        outcome = Err(failure);
                    }
                },
            )
        };
        // The port says no longer that a manager is here, if it still can.
        let _ = port.announce_sm(false);
        outcome?;
        ended?;
        if let Some(path) = &self.lids {
            write_file(path, sm.lids().to_text().as_bytes(), true)?;
        }
        tracing::info!(
            port = label,
            seconds = started.elapsed().as_secs_f64(),
            "ended"
        );
        Ok(if self.once && !up {
            Exit::Device
        } else {
            Exit::Ok
        })
    }

    /// LIDs are on the disk before they are in a port.
    fn remember(&self, sm: &Sm, event: &Event) -> Result<(), Failure> {
        match (&self.lids, event) {
            (Some(path), Event::Lids { .. }) => {
                write_file(path, sm.lids().to_text().as_bytes(), true)
            }
            _ => Ok(()),
        }
    }

    fn tell(
        &self,
        ctx: &mut Context,
        global: &Global,
        time: ib_mad::Time,
        event: &Event,
    ) -> Result<(), Failure> {
        let report = EventReport::new(time, event);
        if global.json {
            let mut line = serde_json::to_string(&report).map_err(|error| {
                Failure::new(
                    Exit::Bug,
                    "json",
                    format!("an event could not be told: {error}"),
                )
            })?;
            line.push('\n');
            return ctx.print_raw(&line);
        }
        let seconds = Duration::from_micros(report.time).as_secs_f64();
        ctx.print_raw(&format!(
            "{seconds:12.6} {:<10} {}\n",
            report.event, report.text
        ))
    }
}
