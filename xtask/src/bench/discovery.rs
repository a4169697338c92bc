//! Race: finding every node of a fat tree, ours against `ibnetdiscover`, both on the same ibsim.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ib_sim::topo::{Spec, file};
use rdma_lab::ibsim::{Ibsim, Options};

use super::race::{Heat, Race};
use crate::workspace::{Build, Workspace};

/// Hosts of the fat trees.
const HOSTS: &[u32] = &[648, 1728, 5184];

/// At most half of the peer's time, which keeps as many requests in flight as it can.
const GOAL: f64 = 0.5;

/// How long one discovery may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The race.
pub const RACE: Race = Race {
    name: "discovery",
    what: "ib-diag topology against ibnetdiscover -o 32, on fat trees simulated by ibsim",
    heats,
};

fn heats(workspace: &Workspace, rounds: u32) -> Result<Vec<Heat>> {
    let ours = workspace.build_tools(Build::Release)?.join("ib-diag");
    let mut heats = Vec::new();
    for hosts in HOSTS {
        let spec: Spec = format!("fat-tree:{hosts}").parse()?;
        let net = file::write(&spec.build()?);
        let sim = Ibsim::start(&net, &Options::default())?;
        let peer = || sim.command("ibnetdiscover", &["-o", "32"], None);
        let umad = || sim.command(&ours, &["topology", "--compat", "ibnetdiscover"], None);
        let device = format!("ibsim:{}", sim.socket_name());
        let socket = || {
            let args = ["topology", "--device", &device, "--compat", "ibnetdiscover"];
            let mut command = sim.command(&ours, &args, None)?;
            // It speaks to ibsim itself: the preload would only be in the way.
            command.env_remove("LD_PRELOAD");
            anyhow::Ok(command)
        };

        // A time means something only where the answer is the same.
        let said = |command: &Command| -> Result<String> {
            Ok(sim.run_command(command, LIMIT)?.success()?.stdout_text())
        };
        let reference = said(&peer()?)?;
        for (ways, command) in [("umad", umad()?), ("socket", socket()?)] {
            let differing = differing(&reference, &said(&command).context(ways)?);
            println!("{hosts} hosts, by {ways}: {differing} differing lines");
            ensure!(
                differing == 0,
                "ib-diag and ibnetdiscover do not say the same of {spec:?}"
            );
        }

        let input = |ways: &str| format!("fat-tree:{hosts}, {ways} on ibsim");
        heats.push(Heat::run(
            input("umad"),
            GOAL,
            rounds,
            &mut || umad(),
            &mut || peer(),
        )?);
        heats.push(Heat::run(
            input("socket"),
            GOAL,
            rounds,
            &mut || socket(),
            &mut || peer(),
        )?);
    }
    Ok(heats)
}

/// How many lines are in one text and not in the other, whatever their order, comments aside.
fn differing(a: &str, b: &str) -> usize {
    let mut counts: BTreeMap<&str, i64> = BTreeMap::new();
    for (text, step) in [(a, 1), (b, -1)] {
        for line in text
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
        {
            *counts.entry(line.trim_end()).or_default() += step;
        }
    }
    counts
        .values()
        .map(|count| usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_count_not_their_order_or_comments() {
        assert_eq!(differing("# x\na\nb\n", "b\n\na \n# y\n"), 0);
        assert_eq!(differing("a\na\nb\n", "a\nc\n"), 3);
    }
}
