//! The seeds of the fuzz targets, replayed without a fuzzer.

use std::path::Path;
use std::time::Duration;

use ib_mad::port::Address;
use ib_mad::{MAD_LEN, MadPort, Packet};
use ib_sim::Config;
use ib_sim::topo::file::{Options, read, read_with, write};

use super::fabric::{build, shared};

fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/corpus")
        .join(target);
    let mut seeds: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|e| panic!("{}: {e}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.display().to_string(), std::fs::read(&path).unwrap()))
        .collect();
    seeds.sort();
    assert!(seeds.len() >= 4, "{}", folder.display());
    seeds
}

#[test]
fn topologies() {
    let mut good = 0;
    for (name, bytes) in seeds("topo") {
        let Ok(parsed) = read(&name, &bytes) else {
            continue;
        };
        let text = write(&parsed.topology);
        let again = read_with(
            &name,
            text.as_bytes(),
            &Options::new().strict(),
            &mut |_| None,
        )
        .unwrap_or_else(|e| panic!("{e}"));
        assert!(parsed.topology.links().eq(again.topology.links()), "{name}");
        good += 1;
    }
    assert!(good >= 3, "seeds that are read: {good}");
}

#[test]
fn requests() {
    for (name, bytes) in seeds("sma") {
        let fabric = shared(build("ring:switches=3,hosts=2,ports=5"), Config::default());
        let mut port = fabric.attach("host-0").unwrap();
        for chunk in bytes.chunks_exact(MAD_LEN) {
            port.send(&Packet::received(
                Address::DIRECTED,
                chunk.try_into().unwrap(),
            ))
            .unwrap();
            while port.receive(Duration::from_millis(1)).unwrap().is_some() {}
        }
        let counts = fabric.lock().counts();
        assert!(counts.answered > 0, "{name}");
        assert_eq!(
            counts.sent,
            counts.delivered + counts.lost,
            "{name}: {counts:?}"
        );
    }
}
