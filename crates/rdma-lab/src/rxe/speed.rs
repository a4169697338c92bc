//! How fast soft-roce is beside rxe: the same unmodified programs, on the same wire, in turns.
//!
//! Both kinds have a device on each end of the veth pair `v0`, `v1`. Both ends are in the guest's first network namespace, since Linux 6.1's rxe works
//! in no other; rules of routing see to it that what is sent from one end's address to the other's crosses the pair rather than be looped back.
//!
//! Each end has a processor of its own: both spin, and where the scheduler once puts them together, a figure is that of its time slices.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::{Lab, script};
use crate::preload::{Expect, figure};
use crate::qemu::{Guest, pair};

/// Whose devices a program runs on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// The preloaded library's.
    Soft,
    /// The kernel's.
    Rxe,
}

/// What is measured.
#[derive(Debug)]
pub struct Measure {
    /// The program of perftest.
    pub program: &'static str,
    /// Bytes of a message.
    pub size: u32,
    expect: Expect,
    iterations: u32,
}

/// All of them.
pub static MEASURES: &[Measure] = &[
    Measure {
        program: "ib_send_bw",
        size: 65_536,
        expect: Expect::Bandwidth,
        iterations: 1000,
    },
    latency("ib_send_lat", 2),
    latency("ib_send_lat", 8),
    latency("ib_write_lat", 2),
    latency("ib_write_lat", 8),
];

const fn latency(program: &'static str, size: u32) -> Measure {
    Measure {
        program,
        size,
        expect: Expect::Latency,
        iterations: 2000,
    }
}

impl Measure {
    /// The command line of an end, on a reliable connection.
    fn command(&self, maker: Maker, is_client: bool, port: u16) -> String {
        let Self {
            program,
            size,
            iterations,
            ..
        } = self;
        let end = u8::from(!is_client);
        let device = match maker {
            Maker::Soft => format!("-d rverbs_roce_v{end} -x 0"),
            Maker::Rxe => format!("-d rxe{end} -x 1"),
        };
        let host = if is_client { "10.9.0.2" } else { "" };
        format!("{program} {device} -m 4096 -p {port} -F -n {iterations} -s {size} {host}")
    }
}

/// What was measured, of both makers in turns.
#[derive(Debug)]
pub struct Compared {
    /// What it is.
    pub measure: &'static Measure,
    /// In MiB/s, or microseconds one way.
    pub soft: Vec<f64>,
    /// The same of rxe.
    pub rxe: Vec<f64>,
}

impl Compared {
    /// soft-roce's median over rxe's.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        median(&self.soft) / median(&self.rxe)
    }

    /// Whether it is as fast as it should be: twice the bandwidth, and the latency at most.
    #[must_use]
    pub fn is_reached(&self) -> bool {
        match self.measure.expect {
            Expect::Bandwidth => self.ratio() >= 2.0,
            _ => self.ratio() <= 1.0,
        }
    }
}

fn median(figures: &[f64]) -> f64 {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, goal) = match self.measure.expect {
            Expect::Bandwidth => ("MiB/s", ">= 2.00"),
            _ => ("us", "<= 1.00"),
        };
        let said = |figures: &[f64]| {
            let all: Vec<_> = figures
                .iter()
                .map(|figure| format!("{figure:.1}"))
                .collect();
            all.join(" ")
        };
        write!(
            f,
            "{:<12} {:>6} B  soft-roce {:>8.1}  rxe {:>8.1} {unit:<5}  {:>5.2}x (goal {goal})  [{} | {}]  software under emulation",
            self.measure.program,
            self.measure.size,
            median(&self.soft),
            median(&self.rxe),
            self.ratio(),
            said(&self.soft),
            said(&self.rxe)
        )
    }
}

/// A guest with both kinds of devices on both ends of the pair.
#[derive(Debug)]
pub struct Speed {
    lab: Lab,
}

impl Speed {
    /// Boots it with `librverbs_preload.so` at that path.
    ///
    /// # Errors
    /// As [`crate::qemu::Builder::boot`].
    pub fn boot(library: &Path, limit: Duration) -> Result<Self> {
        let mut builder = Guest::builder()
            .rxe(true)
            .program(library)
            .program("taskset");
        for measure in MEASURES {
            builder = builder.program(measure.program);
        }
        let mut lab = Lab::of(builder.boot()?, limit);
        // The table of local addresses comes first for what comes in, and last for what goes out.
        lab.must(
            "set -e; rdma link add rxe1 type rxe netdev v1\n\
             for v in v0 v1; do echo 1 >/proc/sys/net/ipv4/conf/$v/accept_local; ip rule add pref 10 iif $v lookup local; done\n\
             for f in all v0 v1; do echo 0 >/proc/sys/net/ipv4/conf/$f/rp_filter; done\n\
             ip route add 10.9.0.2 dev v0 src 10.9.0.1 table 100; ip rule add pref 20 from 10.9.0.1 to 10.9.0.2 lookup 100\n\
             ip route add 10.9.0.1 dev v1 src 10.9.0.2 table 101; ip rule add pref 20 from 10.9.0.2 to 10.9.0.1 lookup 101\n\
             ip rule add pref 30 lookup local; ip rule del pref 0\n\
             for _ in $(seq 100); do grep -q ACTIVE /sys/class/infiniband/rxe1/ports/1/state && ping -I 10.9.0.1 -c 1 -W 1 10.9.0.2 >/dev/null && exit 0; sleep 0.1; done; exit 1",
        )?;
        Ok(Self { lab })
    }

    /// The guest.
    pub const fn guest(&mut self) -> &mut Guest {
        self.lab.guest()
    }

    /// Bytes that have left `v0`.
    fn crossed(&mut self) -> Result<u64> {
        let said = self.lab.must("cat /sys/class/net/v0/statistics/tx_bytes")?;
        said.stdout_text().trim().parse().context("counting bytes")
    }

    /// Measures once, and makes sure that the bytes crossed the pair.
    ///
    /// # Errors
    /// A guest that does not answer any more, a program that fails, and messages that took another way.
    pub fn measure(&mut self, measure: &Measure, maker: Maker) -> Result<f64> {
        let before = self.crossed()?;
        self.lab.port += 1;
        let port = self.lab.port;
        let limit = self.lab.limit;
        let line = |is_client: bool| {
            let command = measure.command(maker, is_client, port);
            let library = match maker {
                // rxe has the standard port.
                Maker::Soft => {
                    "env LD_PRELOAD=/usr/bin/librverbs_preload.so RVERBS_PROVIDER=roce RVERBS_ROCE_PORT=4900 "
                }
                Maker::Rxe => "",
            };
            let processor = u8::from(is_client);
            let limit = limit.as_secs();
            format!("timeout {limit} taskset -c {processor} {library}{command}")
        };
        let listens =
            format!("cat /proc/net/tcp /proc/net/tcp6 | grep -qi ':{port:04X} [0-9A-F:]* 0A '");
        let script = script(&line(false), &line(true), &listens);
        let output = self.lab.guest.run(&script, limit * 3)?;
        let (client, server) = pair::parts(&output)?;
        let client = client.success()?;
        server.context("no server")?.success()?;
        let text = client.stdout_text();
        let figure = figure(measure.expect, &text).with_context(|| format!("it said {text:?}"))?;
        let number = figure.split(' ').next().unwrap_or_default();
        let value = number.parse().with_context(|| figure.clone())?;
        let crossed = self.crossed()?.saturating_sub(before);
        let least = u64::from(measure.size) * u64::from(measure.iterations);
        ensure!(
            crossed >= least,
            "{crossed} bytes crossed the wire of {least}"
        );
        Ok(value)
    }

    /// Measures so many times with each, in turns.
    ///
    /// # Errors
    /// As [`Speed::measure`].
    pub fn compare(&mut self, measure: &'static Measure, rounds: u32) -> Result<Compared> {
        let mut compared = Compared {
            measure,
            soft: Vec::new(),
            rxe: Vec::new(),
        };
        for _ in 0..rounds {
            compared.soft.push(self.measure(measure, Maker::Soft)?);
            compared.rxe.push(self.measure(measure, Maker::Rxe)?);
        }
        Ok(compared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_goal_is_of_medians() {
        let [bandwidth, latency, ..] = MEASURES else {
            panic!("two measures at least")
        };
        let compared = |measure, soft: &[f64]| Compared {
            measure,
            soft: soft.to_vec(),
            rxe: vec![10.0, 11.0, 9.0],
        };
        assert!(compared(bandwidth, &[1.0, 20.0, 90.0]).is_reached());
        assert!(!compared(bandwidth, &[19.0, 19.0, 90.0]).is_reached());
        assert!(compared(latency, &[1.0, 10.0, 90.0]).is_reached());
        assert!(!compared(latency, &[10.1, 10.1, 1.0]).is_reached());
        assert!(!compared(latency, &[]).is_reached());
    }
}
