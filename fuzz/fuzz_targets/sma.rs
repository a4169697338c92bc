//! Any bytes as MADs, one after the other, on a small fabric.
#![no_main]

use std::time::Duration;

use ib_mad::port::Address;
use ib_mad::{MAD_LEN, MadPort, Packet};
use ib_sim::topo::Spec;
use ib_sim::{Config, Fabric, SharedFabric};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let topology = "ring:switches=3,hosts=2,ports=5"
        .parse::<Spec>()
        .unwrap()
        .build()
        .unwrap();
    let fabric = SharedFabric::new(Fabric::new(topology, Config::default()).unwrap());
    let mut port = fabric.attach("host-0").unwrap();
    for chunk in data.chunks(MAD_LEN).take(8) {
        let mut mad = [0; MAD_LEN];
        mad[..chunk.len()].copy_from_slice(chunk);
        port.send(&Packet::received(Address::DIRECTED, mad))
            .unwrap();
        while port.receive(Duration::from_millis(1)).unwrap().is_some() {}
    }
    let fabric = fabric.lock();
    assert_eq!(fabric.pending(), 0);
    let counts = fabric.counts();
    assert_eq!(counts.sent, counts.delivered + counts.lost);
});
