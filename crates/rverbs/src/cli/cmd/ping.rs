//! `rverbs ping`.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rdma_cli::{Context, Exit, Failure, printable};

use crate::cli::render;
use crate::cm::{self, Cm};
use crate::ping::{self, Link, Pings, Round};
use crate::provider::roce::{Config, RoceProvider};
use crate::report::PingReport;
use crate::{Device, Error};

/// Pings by every means of a reliable connection, as rping does, with which it interoperates
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Both ends meet by the communication manager, so the other one may be rping on any adapter: by \
the system's on devices of libibverbs, by our own on soft-roce. Over shared memory, and where the system \
has none, they meet by TCP, and the other one is `rverbs ping`, too."
)]
#[command(group = clap::ArgGroup::new("role").required(true).args(["server", "client", "loopback"]))]
pub(in crate::cli) struct Ping {
    /// Wait for a client, and answer it
    #[arg(short, long)]
    server: bool,
    /// Ping a server
    #[arg(short, long)]
    client: bool,
    /// Do both, on one device of this host
    #[arg(long)]
    loopback: bool,
    /// Address: of the server, or where to wait
    #[arg(short, long, value_name = "ADDRESS", required_if_eq("client", "true"))]
    address: Option<IpAddr>,
    /// Port
    #[arg(short, long, default_value_t = ping::PORT)]
    port: u16,
    /// How many rounds; a server without it answers until the client leaves
    #[arg(short = 'C', long)]
    count: Option<u64>,
    /// Bytes of the text
    #[arg(short = 'S', long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(i64::from(ping::MIN_SIZE)..=i64::from(ping::MAX_SIZE)))]
    size: u32,
    /// Compare what comes back
    #[arg(short = 'V', long)]
    validate: bool,
    /// Say what is being done
    #[arg(short, long)]
    debug: bool,
    /// Name of the device; the one that reaches the address, if not said
    #[arg(long)]
    device: Option<String>,
    /// Seconds to wait for an answer
    #[arg(long, default_value_t = 20, value_name = "SECONDS")]
    timeout: u64,
}

/// Rounds of a client that does not say how many.
const COUNT: u64 = 10;
/// The most times that are kept to say what most were like.
const SAMPLES: usize = 1 << 20;

/// The times of rounds, and their texts where they are wanted.
struct Log {
    nanos: Vec<u64>,
    verbose: bool,
    server: bool,
    text: String,
}

impl Log {
    const fn new(server: bool, verbose: bool) -> Self {
        Self {
            nanos: Vec::new(),
            verbose,
            server,
            text: String::new(),
        }
    }

    fn add(&mut self, round: &Round<'_>) {
        if self.nanos.len() < SAMPLES {
            let nanos = u64::try_from(round.took.as_nanos()).unwrap_or(u64::MAX);
            self.nanos.push(nanos);
        }
        if self.verbose {
            let who = if self.server {
                "server ping data"
            } else {
                "ping data"
            };
            let text = String::from_utf8_lossy(round.text);
            let _ = writeln!(self.text, "{who}: {}", printable(&text));
        }
    }
}

/// How the two ends meet.
enum Way {
    /// By our own communication manager.
    Roce(Config),
    /// By the system's, on the device that has the address.
    System(Device, IpAddr),
    Tcp(Device),
}

impl Way {
    fn device(self) -> Result<Device, Error> {
        match self {
            Self::Roce(config) => Device::by_name(&config.name),
            Self::System(device, _) | Self::Tcp(device) => Ok(device),
        }
    }
}

/// What the system says of an address; none where it cannot be asked.
fn system(source: IpAddr) -> Option<Way> {
    let device = cm::device_at(source).ok()?;
    Some(Way::System(device, source))
}

impl Ping {
    pub(in crate::cli) fn run(self, ctx: &mut Context, verbose: bool) -> Result<Exit, Failure> {
        let way = self.way()?;
        let role = match (self.loopback, self.server) {
            (true, _) => "loopback",
            (_, true) => "server",
            _ => "client",
        };
        let timeout = Duration::from_secs(self.timeout);
        let mut log = Log::new(self.server, verbose);
        let pings = Pings {
            count: self.count.unwrap_or(COUNT),
            size: self.size,
            validate: self.validate || self.loopback,
        };
        let mut by_cm = |cm: Cm, source| {
            let (peer, rounds) = self.by_cm(ctx, &cm, source, &pings, timeout, &mut log)?;
            Ok::<_, Failure>((cm.context().clone(), peer, rounds))
        };
        let (context, peer, rounds) = match way {
            Way::Roce(config) if !self.loopback => by_cm(Cm::open(&config)?, config.addr)?,
            Way::System(device, source) if !self.loopback => {
                by_cm(Cm::system(device.open()?, source), source)?
            }
            way => {
                let context = way.device()?.open()?;
                let (peer, rounds) = if self.loopback {
                    (None, both(&context, &pings, timeout, &mut log)?)
                } else {
                    self.by_tcp(ctx, &context, &pings, timeout, &mut log)?
                };
                (context, peer, rounds)
            }
        };
        let report = PingReport::new(
            (context.kind(), context.name().to_owned()),
            (role, peer),
            (rounds, pings.size, pings.validate && !self.server),
            log.nanos,
        );
        let text = log.text;
        ctx.emit(&report, |report, out| {
            out.write_str(&text)?;
            render::ping(report, out)
        })?;
        Ok(Exit::Ok)
    }

    fn way(&self) -> Result<Way, Error> {
        let configs = RoceProvider::default().configs();
        let local = match self.address {
            Some(address) if self.client => Some(source(address)?),
            Some(address) if !address.is_unspecified() => Some(address),
            _ => None,
        };
        let mut candidates = configs
            .iter()
            .map(|config| config.addr)
            .filter(|addr| local.is_none_or(|local| local == *addr));
        if let Some(name) = &self.device {
            let named = |way: &Way| matches!(way, Way::System(device, _) if device.name() == name);
            let config = configs.iter().find(|config| config.name == *name);
            return Ok(match config {
                Some(config) => Way::Roce(config.clone()),
                None => match candidates.filter_map(system).find(named) {
                    Some(way) => way,
                    None => Way::Tcp(Device::by_name(name)?),
                },
            });
        }
        if let Some(way) = candidates.find_map(system) {
            return Ok(way);
        }
        let found = configs
            .into_iter()
            .find(|config| local.is_none_or(|local| config.addr == local));
        found.map(Way::Roce).ok_or_else(|| Error::NoDevice {
            name: local.map_or_else(|| "roce".to_owned(), |local| local.to_string()),
        })
    }

    fn by_cm(
        &self,
        ctx: &Context,
        cm: &Cm,
        source: IpAddr,
        pings: &Pings,
        timeout: Duration,
        log: &mut Log,
    ) -> Result<(Option<String>, u64), Failure> {
        if !self.server {
            let to = SocketAddr::new(self.address.unwrap_or(source), self.port);
            self.say(ctx, &format!("calling {to} from {source}"));
            let mut link = Link::dial(cm, to, timeout)?;
            let rounds = link.ping(pings, |round| log.add(round))?;
            link.end()?;
            return Ok((Some(to.ip().to_string()), rounds));
        }
        if !cm.is_reached() {
            ctx.warn(format_args!(
                "another process has the UDP port of RoCE of {source}, so only peers of this crate can call"
            ));
        }
        let listener = cm.listen(self.port)?;
        self.say(ctx, &format!("waiting on {source} port {}", self.port));
        let Some((mut link, from)) = Link::take(cm, &listener, None, timeout)? else {
            return Ok((None, 0));
        };
        self.say(ctx, &format!("{from} has called"));
        let rounds = link.serve(self.count, |round| log.add(round))?;
        link.end()?;
        Ok((Some(from.to_string()), rounds))
    }

    fn by_tcp(
        &self,
        ctx: &Context,
        context: &crate::Context,
        pings: &Pings,
        timeout: Duration,
        log: &mut Log,
    ) -> Result<(Option<String>, u64), Failure> {
        let any = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
        let at = SocketAddr::new(self.address.unwrap_or(any), self.port);
        if !self.server {
            self.say(ctx, &format!("calling {at} by TCP"));
            let stream =
                TcpStream::connect_timeout(&at, timeout).map_err(Error::io("connecting"))?;
            let mut link = Link::by_tcp(context, stream, timeout)?;
            let rounds = link.ping(pings, |round| log.add(round))?;
            return Ok((Some(at.ip().to_string()), rounds));
        }
        let listener = TcpListener::bind(at).map_err(Error::io("listening"))?;
        self.say(ctx, &format!("waiting on {at} by TCP"));
        let (stream, from) = listener
            .accept()
            .map_err(Error::io("waiting for a client"))?;
        let mut link = Link::by_tcp(context, stream, timeout)?;
        let rounds = link.serve(self.count, |round| log.add(round))?;
        Ok((Some(from.ip().to_string()), rounds))
    }

    fn say(&self, ctx: &Context, what: &str) {
        if self.debug {
            ctx.note(what);
        }
    }
}

/// The address of this host that packets to another one come from.
fn source(to: IpAddr) -> Result<IpAddr, Error> {
    let any: IpAddr = if to.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        std::net::Ipv6Addr::UNSPECIFIED.into()
    };
    let look = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((to, 9))?;
        Ok(socket.local_addr()?.ip())
    };
    look().map_err(Error::io("looking for a way to the address"))
}

/// Both ends, on two threads.
fn both(
    context: &crate::Context,
    pings: &Pings,
    timeout: Duration,
    log: &mut Log,
) -> Result<u64, Error> {
    let (ours, theirs) = UnixStream::pair().map_err(Error::io("making a pair of sockets"))?;
    std::thread::scope(|scope| {
        let server = scope
            .spawn(|| Link::by_unix(context, theirs, timeout)?.serve(Some(pings.count), |_| ()));
        let mut link = Link::by_unix(context, ours, timeout)?;
        let rounds = link.ping(pings, |round| log.add(round));
        drop(link);
        let served = server.join();
        let rounds = rounds?;
        match served {
            Ok(served) => served.map(|_| rounds),
            Err(panic) => std::panic::resume_unwind(panic),
        }
    })
}
