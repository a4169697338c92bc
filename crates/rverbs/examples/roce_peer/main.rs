//! A peer for programs that speak verbs, over RoCEv2 in user space.
//!
//! ```text
//! roce_peer pingpong rc|uc|ud [--addr IP] [--mtu CODE] [--size N] [--iters N] [HOST]   as ibv_rc_pingpong and its sisters
//! roce_peer verify [--device NAME --gid INDEX | --addr IP] [--mtu CODE] [--iters N] [HOST]   every operation, every byte
//! roce_peer ops rc|uc|ud [--device NAME --gid INDEX | --addr IP] [--mtu CODE] [--iters N] [HOST]   one after the other, from the client to the server
//! roce_peer rping --addr IP [--mtu CODE] [--iters N] [HOST]   as rping, over connection management of our own
//! roce_peer bench [--addr IP] [--seconds N]                                            loopback figures, with bare UDP beside them
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]
#![expect(unsafe_code, reason = "it uses the C structures as C does")]
#![expect(
    clippy::cast_possible_truncation,
    clippy::multiple_unsafe_ops_per_block,
    reason = "its numbers are small, and each block has one reason"
)]

mod bench;
mod ops;
mod pingpong;
mod rping;
mod side;
mod verify;

use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::sync::Arc;

use rverbs::provider::Context;
use rverbs::provider::roce::{self, Config};

/// What the command line says.
#[derive(Debug, Clone)]
struct Options {
    addr: IpAddr,
    base_port: u16,
    link_mtu: u32,
    mtu: u32,
    size: usize,
    iters: u32,
    seconds: u32,
    port: u16,
    host: Option<String>,
    device: Option<String>,
    gid_index: u32,
}

impl Options {
    fn open(&self) -> Result<Arc<dyn Context>, rverbs::Error> {
        if let Some(name) = &self.device {
            let context = rverbs::Device::by_name(name)?.open()?;
            return Ok(Arc::clone(context.provider()));
        }
        Ok(self.device()?)
    }

    fn device(&self) -> Result<Arc<rverbs::provider::soft::Context<roce::Roce>>, rverbs::Error> {
        let config = Config {
            base_port: self.base_port,
            link_mtu: self.link_mtu,
            ..Config::new("roce_peer", self.addr)
        };
        roce::open(&config)
    }
}

fn parse(mut args: std::env::Args) -> Result<(Vec<String>, Options), String> {
    let mut options = Options {
        addr: IpAddr::V4(Ipv4Addr::LOCALHOST),
        base_port: roce::PORT,
        link_mtu: 65_536,
        mtu: 3,
        size: 4096,
        iters: 1000,
        seconds: 2,
        port: 18_515,
        host: None,
        device: None,
        gid_index: 0,
    };
    let mut words = Vec::new();
    args.next();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        let number = |text: String| {
            text.parse::<u32>()
                .map_err(|error| format!("{text}: {error}"))
        };
        match arg.as_str() {
            "--addr" => {
                options.addr = value()?
                    .parse()
                    .map_err(|error| format!("--addr: {error}"))?;
            }
            "--base-port" => {
                options.base_port =
                    u16::try_from(number(value()?)?).map_err(|error| error.to_string())?;
            }
            "--port" => {
                options.port =
                    u16::try_from(number(value()?)?).map_err(|error| error.to_string())?;
            }
            "--device" => options.device = Some(value()?),
            "--gid" => options.gid_index = number(value()?)?,
            "--link-mtu" => options.link_mtu = number(value()?)?,
            "--mtu" => options.mtu = number(value()?)?,
            "--size" => options.size = number(value()?)? as usize,
            "--iters" => options.iters = number(value()?)?,
            "--seconds" => options.seconds = number(value()?)?,
            _ => words.push(arg),
        }
    }
    Ok((words, options))
}

fn main() -> ExitCode {
    let result = parse(std::env::args()).and_then(|(words, mut options)| {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            ["pingpong", kind, ref host @ ..] => {
                options.host = host.first().map(|host| (*host).to_owned());
                pingpong::run(kind, &options).map_err(|error| format!("{error:?}"))
            }
            ["verify", ref host @ ..] => {
                options.host = host.first().map(|host| (*host).to_owned());
                verify::run(&options).map_err(|error| format!("{error:?}"))
            }
            ["ops", kind, ref host @ ..] => {
                options.host = host.first().map(|host| (*host).to_owned());
                ops::run(kind, &options).map_err(|error| format!("{error:?}"))
            }
            ["rping", ref host @ ..] => {
                options.host = host.first().map(|host| (*host).to_owned());
                rping::run(&options).map_err(|error| format!("{error:?}"))
            }
            ["bench"] => bench::run(&options).map_err(|error| format!("{error:?}")),
            _ => Err("usage: roce_peer pingpong|ops rc|uc|ud [HOST] | verify [HOST] | rping [HOST] | bench".to_owned()),
        }
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
