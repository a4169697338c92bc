//! Any bytes as MADs: viewed as every attribute, and handed to a client that waits for answers.
#![no_main]

use std::time::Duration;

use ib_mad::client::{Client, ClientConfig, Event};
use ib_mad::header::AttributeId;
use ib_mad::port::Address;
use ib_mad::smp::{
    DrPath, GuidInfo, MlnxExtPortInfo, NodeDescription, NodeInfo, PortInfo, Smp, SwitchInfo,
};
use ib_mad::{MAD_LEN, Packet, Time};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut client = Client::new(ClientConfig {
        window: 4,
        timeout: Duration::from_millis(1),
        retries: 1,
        first_tid: 0,
    });
    for number in 0..8_u32 {
        let smp = Smp::get(&DrPath::LOCAL, AttributeId::NODE_INFO, number & 1);
        client.submit(number, Packet::directed(&smp, Duration::from_millis(1)));
    }
    let mut now = Time::ZERO;
    let mut ended = 0;
    for chunk in data.chunks(MAD_LEN) {
        let mut mad = [0; MAD_LEN];
        mad[..chunk.len()].copy_from_slice(chunk);
        let smp = Smp::from_bytes(&mad);
        let port: &PortInfo = smp.attribute();
        let _ = (
            port.speed(port, true).name(),
            port.width().name(),
            port.mtu(),
        );
        let _ = format!("{smp:?} {port:?} {}", smp.status());
        let _ = format!("{:?}", smp.attribute::<NodeInfo>());
        let _ = format!("{:?}", smp.attribute::<SwitchInfo>());
        let _ = format!("{:?}", smp.attribute::<GuidInfo>());
        let _ = format!("{:?}", smp.attribute::<MlnxExtPortInfo>());
        assert!(smp.attribute::<NodeDescription>().text().is_ascii());
        let _ = DrPath::from_ports(&smp.initial_path);

        while client.poll_transmit(now).is_some() {}
        client.handle_mad(now, &Packet::received(Address::DIRECTED, mad));
        now = now + Duration::from_micros(u64::from(mad[255]) * 10);
        client.handle_timeout(now);
        while let Some(event) = client.poll_event() {
            ended += u32::from(!matches!(event, Event::Unsolicited(_)));
        }
    }
    for _ in 0..32 {
        while client.poll_transmit(now).is_some() {}
        now = now + Duration::from_millis(1);
        client.handle_timeout(now);
        while let Some(event) = client.poll_event() {
            ended += u32::from(!matches!(event, Event::Unsolicited(_)));
        }
    }
    assert!(client.is_idle());
    assert_eq!(ended, 8, "every request ends once");
});
