//! The real ibsim loads what we write, and the real ibnetdiscover sees on it what we meant.

use std::path::Path;

use ib_sim::topo::file::{read, write};
use ib_sim::topo::{Spec, Topology};
use rdma_lab::ibsim::{Ibsim, Options};
use rdma_lab::skip;

/// Serves the net file and returns what ibnetdiscover prints on it.
fn discover(name: &str, net: &str) -> String {
    let sim = Ibsim::start(net, &Options::default()).unwrap_or_else(|e| panic!("{name}: {e:#}"));
    let host = net
        .lines()
        .find(|l| l.starts_with("Ca"))
        .and_then(|l| l.split('"').nth(1));
    let output = sim.run("ibnetdiscover", &["-o", "32"], host);
    let output = output
        .and_then(|o| o.success())
        .unwrap_or_else(|e| panic!("{name}: {e:#}"));
    output.stdout_text().to_string()
}

/// What two topologies must have in common: nodes by GUID, and cables with their rates.
pub(crate) fn facts(t: &Topology) -> Vec<String> {
    let guid = |node: usize| t.node(node).unwrap().guid;
    let mut facts: Vec<String> = t
        .nodes()
        .iter()
        .map(|n| {
            format!(
                "{:?} {:#x} sys {:#x} {:#x}:{:#x} {} {:?} {:?}",
                n.kind,
                n.guid,
                n.system_guid,
                n.vendor_id,
                n.device_id,
                n.port_count,
                n.description,
                n.enhanced_port_zero
            )
        })
        .collect();
    for link in t.links() {
        let (a, b) = (
            (guid(link.a.node), link.a.port),
            (guid(link.b.node), link.b.port),
        );
        let (widths, speeds) = t.active_rate(link.a).unwrap();
        facts.push(format!("{:?} {:?} {widths}{speeds}", a.min(b), a.max(b)));
    }
    facts.sort_unstable();
    facts
}

#[test]
fn ibnetdiscover_sees_every_generated_net() {
    if skip::lacks_ibsim("ibnetdiscover_sees_every_generated_net") {
        return;
    }
    for (i, spec) in [
        "fat-tree:108",
        "fat-tree:648",
        "fat-tree:1728",
        "fat-tree:k=8,levels=3,pods=4,cores=2,speed=FDR",
        "torus:4x4,hosts=3,speed=QDR",
        "torus:3x3x3,hosts=2,links=2",
        "dragonfly:p=2",
        "dragonfly:p=3,groups=5,speed=SDR,width=1x",
        "random:switches=20,hosts=100,seed=1",
        "ring:switches=8,hosts=2,speed=DDR",
        "switch:hosts=40,width=12x",
        "back-to-back",
    ]
    .into_iter()
    .enumerate()
    {
        let topology = spec.parse::<Spec>().unwrap().build().unwrap();
        let dump = discover(&i.to_string(), &write(&topology));
        let seen = read("ibnetdiscover", dump.as_bytes())
            .unwrap_or_else(|e| panic!("{spec}: {e}\n{dump}"));
        let (seen, meant) = (facts(&seen.topology), facts(&topology));
        assert_eq!(seen.len(), meant.len(), "{spec}");
        for (seen, meant) in seen.iter().zip(&meant) {
            assert_eq!(seen, meant, "{spec}");
        }
    }
}

#[test]
fn ibsim_and_the_reader_agree_on_ibsims_own_examples() {
    if skip::lacks_ibsim("ibsim_and_the_reader_agree_on_ibsims_own_examples") {
        return;
    }
    for name in [
        "net",
        "net.1",
        "net.2sw2path",
        "net.2sw2path4hca",
        "net.2sw2path4hca2port",
    ] {
        let path = Path::new("/usr/share/doc/ibsim-utils/net-examples").join(name);
        let Ok(net) = std::fs::read_to_string(&path) else {
            skip::peer_missing(
                "ibsim_and_the_reader_agree_on_ibsims_own_examples",
                &path.display().to_string(),
            );
            return;
        };
        let ours = read(name, net.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        let dump = discover(name, &net);
        let seen = read("ibnetdiscover", dump.as_bytes())
            .unwrap_or_else(|e| panic!("{name}: {e}\n{dump}"));
        // ibsim gives unconnected nodes and base port zero a face of their own: cables only.
        let cables = |t: &Topology| {
            facts(t)
                .into_iter()
                .filter(|f| f.starts_with('('))
                .collect::<Vec<_>>()
        };
        assert_eq!(cables(&seen.topology), cables(&ours.topology), "{name}");
    }
}
