//! `rperf send`, `write`, `read` and `atomic`.

use std::net::{TcpListener, TcpStream, ToSocketAddrs as _};
use std::num::{NonZeroU32, NonZeroU64};
use std::time::{Duration, Instant, SystemTime};

use rdma_cli::{Context, Exit, Failure};
use rdma_host::SysRoot;
use rverbs::Device;
use rverbs::provider::Kind;
use rverbs::provider::roce::RoceProvider;

use crate::Error;
use crate::cli::host;
use crate::cli::render;
use crate::peer::{PORT, Role, Talk};
use crate::result::{Measurement, Results, Run, Side};
use crate::run::{self, Figures, Introduction, Local, Outcome, Plan, Watch};
use crate::spec::{Amount, Metric, Transport, Verb};

/// Whose device to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Provider {
    /// Adapters, and the kernel's software devices
    Verbs,
    /// Shared memory: both sides on one host
    Shm,
    /// RoCEv2 over UDP
    Roce,
}

/// What the figures look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Compat {
    /// As perftest prints them, with its definitions of the typical value and of percentiles
    Perftest,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Without HOST it waits for a client. The other side may be perftest's program of that \
name, of version 5.70 or later, with the same options. Without -d it takes an adapter where there is one, else \
shared memory where both sides are on one host, else RoCEv2 over UDP."
)]
pub(in crate::cli) struct Measure {
    /// What is wanted of it
    #[arg(value_enum)]
    metric: Metric,
    /// The server: host name or address
    host: Option<String>,
    /// Both sides in this process
    #[arg(long, conflicts_with = "host")]
    loopback: bool,
    /// Name of the device: see `rverbs devices`
    #[arg(short, long, value_name = "NAME", conflicts_with = "provider")]
    device: Option<String>,
    /// Whose device to take
    #[arg(long)]
    provider: Option<Provider>,
    /// Port of the device
    #[arg(short = 'i', long, default_value_t = 1, value_name = "N")]
    ib_port: u8,
    /// TCP port that both sides meet at
    #[arg(short, long, default_value_t = PORT)]
    port: u16,
    /// What carries it
    #[arg(short, long, default_value = "RC", ignore_case = true)]
    connection: Transport,
    /// Bytes of a message; 2 for latency, 65536 for bandwidth, datagrams the MTU, if not said
    #[arg(short, long, value_parser = size, conflicts_with = "all")]
    size: Option<u32>,
    /// All sizes: powers of two from 2 to 8 MiB, datagrams up to the MTU
    #[arg(short, long, conflicts_with = "duration")]
    all: bool,
    /// Requests of each queue pair; 1000, writes for bandwidth 5000, if not said
    #[arg(short = 'n', long, conflicts_with = "duration")]
    iters: Option<NonZeroU64>,
    /// Seconds to measure, instead of counting
    #[arg(short = 'D', long, value_name = "SECONDS")]
    duration: Option<NonZeroU32>,
    /// Seconds at either end of the duration that do not count; a quarter of it, if not said
    #[arg(short = 'f', long, value_name = "SECONDS", requires = "duration")]
    margin: Option<u32>,
    /// Queue pairs
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16_384))]
    qp: u32,
    /// Requests of a queue pair on their way at most
    #[arg(short, long)]
    tx_depth: Option<NonZeroU32>,
    /// Receive requests of a queue pair
    #[arg(short, long)]
    rx_depth: Option<NonZeroU32>,
    /// Every which request has a completion
    #[arg(short = 'Q', long)]
    cq_mod: Option<NonZeroU32>,
    /// Up to how many bytes travel inside the request
    #[arg(short = 'I', long, value_name = "BYTES")]
    inline_size: Option<u32>,
    /// Both sides send
    #[arg(short, long)]
    bidirectional: bool,
    /// Bytes of a packet at most: 256, 512, 1024, 2048 or 4096
    #[arg(short, long, value_parser = mtu)]
    mtu: Option<u32>,
    /// Entry of the GID table
    #[arg(short = 'x', long, value_name = "INDEX")]
    gid_index: Option<u8>,
    /// Reads or atomic operations at a time
    #[arg(long)]
    outs: Option<u8>,
    /// Answers are waited for 4.096 µs times two to this power
    #[arg(short = 'u', long, default_value_t = 14, value_name = "N")]
    qp_timeout: u8,
    /// How often each size is measured: what differs between them says how sure a figure is. Not with perftest
    #[arg(long, default_value = "1", value_name = "N")]
    repeat: NonZeroU32,
    /// Which atomic operation
    #[arg(short = 'A', long, default_value = "FETCH_AND_ADD", value_parser = ["FETCH_AND_ADD", "CMP_AND_SWAP"])]
    atomic_type: String,
    /// Seconds to wait for something to arrive
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    timeout: u64,
    /// Print as another program does
    #[arg(long)]
    compat: Option<Compat>,
}

/// `4K`, `1M` or a number.
fn size(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.trim_end_matches(['k', 'K', 'm', 'M']) {
        all if all.len() == text.len() => (all, 1),
        digits if text.ends_with(['k', 'K']) => (digits, 1 << 10),
        digits => (digits, 1 << 20),
    };
    let number: u32 = digits.parse().map_err(|error| format!("{error}"))?;
    let bytes = number.checked_mul(unit).filter(|bytes| *bytes <= 1 << 30);
    bytes.ok_or_else(|| "a message has at most 1 GiB".to_owned())
}

/// As `ibv_mtu`.
fn mtu(text: &str) -> Result<u32, String> {
    let found = (1..=5).find(|mtu| (128_u32 << mtu).to_string() == text);
    found.ok_or_else(|| "256, 512, 1024, 2048 or 4096".to_owned())
}

/// The socket beside the measurement: when it ends, so does the peer.
struct Socket(TcpStream);

impl Watch for Socket {
    fn is_gone(&mut self) -> bool {
        let looked = self
            .0
            .set_nonblocking(true)
            .and_then(|()| self.0.peek(&mut [0]));
        let _ = self.0.set_nonblocking(false);
        match looked {
            Ok(count) => count == 0,
            Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

impl Measure {
    fn plan(&self, verb: Verb) -> Result<Plan, Error> {
        let mut plan = Plan::new(verb, self.metric, self.connection);
        if let Some(size) = self.size {
            plan.sizes = vec![size];
        }
        if self.all && verb != Verb::Atomic {
            let most = if self.connection == Transport::Ud {
                12
            } else {
                23
            };
            plan.sizes = (1..=most).map(|bits| 1 << bits).collect();
        }
        if let Some(count) = self.iters {
            plan.amount = Amount::Iterations(count);
        }
        if let Some(seconds) = self.duration {
            let whole = Duration::from_secs(seconds.get().into());
            plan.margin = self
                .margin
                .map_or(whole / 4, |margin| Duration::from_secs(margin.into()));
            if plan.margin * 2 >= whole {
                return Err(Error::Spec {
                    what: "the margins leave nothing of the duration".to_owned(),
                });
            }
            plan.amount = Amount::Duration(whole);
        }
        plan.repeats = self.repeat.get();
        plan.qps = self.qp;
        plan.bidirectional = self.bidirectional && self.metric == Metric::Bandwidth;
        let set = |to: &mut u32, from: Option<NonZeroU32>| *to = from.map_or(*to, NonZeroU32::get);
        set(&mut plan.tx_depth, self.tx_depth);
        set(&mut plan.rx_depth, self.rx_depth);
        set(&mut plan.cq_mod, self.cq_mod);
        plan.inline = self.inline_size.unwrap_or(plan.inline);
        plan.compare_swap = self.atomic_type == "CMP_AND_SWAP";
        Ok(plan)
    }

    /// The device to use with a peer.
    fn device(&self, stream: &TcpStream) -> Result<Device, Error> {
        if let Some(name) = &self.device {
            return Ok(Device::by_name(name)?);
        }
        let (ours, theirs) = (stream.local_addr(), stream.peer_addr());
        let ours = ours
            .map_err(Error::io("looking at the connection"))?
            .ip()
            .to_canonical();
        let theirs = theirs
            .map_err(Error::io("looking at the connection"))?
            .ip()
            .to_canonical();
        let first = |kind| {
            let found = rverbs::devices().devices;
            found
                .into_iter()
                .find(|device| device.info().provider == kind)
        };
        let provider = match self.provider {
            Some(provider) => provider,
            None if first(Kind::Verbs).is_some() => Provider::Verbs,
            None if ours == theirs => Provider::Shm,
            None => Provider::Roce,
        };
        let none = |name: &str| rverbs::Error::NoDevice {
            name: name.to_owned(),
        };
        Ok(match provider {
            Provider::Verbs => first(Kind::Verbs).ok_or_else(|| none("verbs"))?,
            Provider::Shm => Device::shm()?,
            Provider::Roce => {
                let configs = RoceProvider::default().configs();
                let config = configs.iter().find(|config| config.addr == ours);
                Device::by_name(config.map_or("roce", |config| config.name.as_str()))?
            }
        })
    }

    fn meet(&self, ctx: &Context) -> Result<(TcpStream, Role), Error> {
        let limit = Duration::from_secs(self.timeout);
        let Some(host) = &self.host else {
            let listener = TcpListener::bind(("::", self.port))
                .or_else(|_| TcpListener::bind(("0.0.0.0", self.port)))
                .map_err(Error::io(format!("listening on port {}", self.port)))?;
            if self.compat.is_none() {
                ctx.note(format_args!("waiting for a client on port {}", self.port));
            }
            let (stream, _) = listener
                .accept()
                .map_err(Error::io("waiting for a client"))?;
            return Ok((stream, Role::Server));
        };
        let doing = || format!("connecting to {host} port {}", self.port);
        let addrs = (host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(Error::io(doing()))?;
        let mut last = std::io::ErrorKind::AddrNotAvailable.into();
        let begin = Instant::now();
        // A server that is started beside may need a moment.
        while begin.elapsed() < Duration::from_secs(1) {
            for addr in addrs.clone() {
                match TcpStream::connect_timeout(&addr, limit) {
                    Ok(stream) => return Ok((stream, Role::Client)),
                    Err(error) => last = error,
                }
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Err(Error::io(doing())(last))
    }

    /// Both sides in this process: the other one on a thread of its own.
    fn loopback(&self, plan: &Plan, seen: &mut dyn FnMut()) -> Result<Done, Error> {
        let doing = || Error::io("connecting with itself");
        let listener = TcpListener::bind(("127.0.0.1", 0)).map_err(doing())?;
        let port = listener.local_addr().map_err(doing())?.port();
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let (stream, _) = listener.accept().map_err(doing())?;
                self.conversation(stream, Role::Server, plan.clone(), &mut || ())
            });
            let client = TcpStream::connect(("127.0.0.1", port)).map_err(doing());
            let client = client
                .and_then(|stream| self.conversation(stream, Role::Client, plan.clone(), seen));
            match server.join() {
                Ok(served) => client.and_then(|done| served.map(|_| done)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// All that is said and measured with a peer.
    fn conversation(
        &self,
        stream: TcpStream,
        role: Role,
        mut plan: Plan,
        seen: &mut dyn FnMut(),
    ) -> Result<Done, Error> {
        let limit = Duration::from_secs(self.timeout);
        let setting = || Error::io("setting up the connection");
        stream.set_nodelay(true).map_err(setting())?;
        stream.set_read_timeout(Some(limit)).map_err(setting())?;
        let mut watch = Socket(stream.try_clone().map_err(setting())?);
        let context = self.device(&stream)?.open()?;
        let local = Local {
            port: self.ib_port,
            gid_index: self.gid_index,
            mtu: self.mtu,
            timeout: self.qp_timeout,
            outstanding: self.outs,
        };
        let mut talk = Talk::new(stream, role);
        let greeting = run::greet(&context, &mut talk, &local)?;
        let mtu = 128 << greeting.mtu;
        if plan.transport == Transport::Ud {
            if self.all {
                plan.sizes.retain(|size| *size <= mtu);
            } else if self.size.is_none() {
                plan.sizes = vec![plan.largest().min(mtu)];
            }
        }
        let side = host::side(&SysRoot::default(), &context, &local, mtu);
        let own = Introduction { plan, side };
        let remote = if greeting.is_rperf {
            Some(run::introduce(&mut talk, &own)?.side)
        } else if own.plan.repeats > 1 {
            return Err(Error::Spec {
                what: "perftest measures each size once".to_owned(),
            });
        } else {
            None
        };
        let Introduction { plan, side } = own;
        let how = (&mut watch as &mut dyn Watch, limit);
        let outcome = run::measure(&context, talk, greeting, &plan, &local, how, &mut |_| {
            seen();
        })?;
        Ok(Done {
            plan,
            local: side,
            remote,
            outcome,
        })
    }

    pub(in crate::cli) fn run(self, verb: Verb, ctx: &mut Context) -> Result<Exit, Failure> {
        let started = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let plan = self.plan(verb)?;
        let met = if self.loopback {
            None
        } else {
            Some(self.meet(ctx)?)
        };
        let times = plan.sizes.len() * usize::try_from(plan.repeats).unwrap_or(1);
        let progress = ctx.progress("measuring");
        progress.set_total(times as u64);
        let mut count = 0;
        let mut seen = || {
            count += 1;
            progress.set(count);
        };
        let done = match met {
            Some((stream, role)) => self.conversation(stream, role, plan, &mut seen)?,
            None => self.loopback(&plan, &mut seen)?,
        };
        drop(progress);
        let Done {
            plan,
            local,
            remote,
            outcome,
        } = done;
        if self.compat == Some(Compat::Perftest) {
            ctx.print_raw(&render::perftest::table(&plan, &outcome))?;
            return Ok(Exit::Ok);
        }
        let results = Results {
            rperf: env!("CARGO_PKG_VERSION").to_owned(),
            started,
            local,
            remote,
            measurements: measurements(&plan, outcome.figures),
            warnings: Vec::new(),
        }
        .warned();
        ctx.emit(&results, render::measure::measure)?;
        Ok(Exit::Ok)
    }
}

/// A conversation that is over.
struct Done {
    plan: Plan,
    local: Side,
    remote: Option<Side>,
    outcome: Outcome,
}

/// The runs of each size together.
fn measurements(plan: &Plan, figures: Vec<Figures>) -> Vec<Measurement> {
    let mut all: Vec<(u32, Vec<Run>)> = Vec::new();
    for Figures { size, run, .. } in figures {
        match all.last_mut() {
            Some((last, runs)) if *last == size => runs.push(run),
            _ => all.push((size, vec![run])),
        }
    }
    let all = all.into_iter();
    all.map(|(size, runs)| Measurement::of(plan.spec(size), runs))
        .collect()
}
