//! A running ibsim, by its sockets.

use std::process::Command;
use std::time::{Duration, Instant};

use ib_mad::MadPort;
use ib_mad::header::AttributeId;
use ib_mad::port::{Delivery, Packet};
use ib_mad::smp::{DrPath, NodeInfo, Smp};
use rdma_host::Error;
use rdma_host::ibsim::{Endpoint, IbsimPort};
use rdma_lab::ibsim::{DEFAULT_NET, Ibsim, Options};
use rdma_lab::process::{Folder, Running};
use rdma_lab::skip::{lacks, lacks_ibsim};

fn ask(port: &mut IbsimPort, path: &str) -> Option<Packet> {
    let path: DrPath = path.parse().expect("a route");
    let smp = Smp::get(&path, AttributeId::NODE_INFO, 0);
    port.send(&Packet::directed(&smp, Duration::from_secs(1)))
        .expect("it sends");
    port.receive(Duration::from_secs(2)).expect("it receives")
}

#[test]
fn nobody_listens() {
    let begin = Instant::now();
    let nowhere = Endpoint::Unix("nobody-serves-this".to_owned());
    assert!(matches!(
        IbsimPort::open(&nowhere, None),
        Err(Error::NoSimulator { .. })
    ));
    // Of UDP nobody says so on every system; it must end in any case.
    let nowhere = Endpoint::Udp {
        host: "127.0.0.1".to_owned(),
        port: 9,
    };
    assert!(matches!(
        IbsimPort::open(&nowhere, None),
        Err(Error::NoSimulator { .. } | Error::SimulatorSilent { .. })
    ));
    let unknown = Endpoint::Udp {
        host: "no.such.host.invalid".to_owned(),
        port: 9,
    };
    assert!(IbsimPort::open(&unknown, None).is_err());
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[test]
fn a_node_answers_and_its_place_comes_back() {
    if lacks_ibsim("a_node_answers_and_its_place_comes_back") {
        return;
    }
    let sim = Ibsim::start(DEFAULT_NET, &Options::default()).expect("ibsim");
    let endpoint = Endpoint::Unix(sim.socket_name().to_owned());
    // More often than there are places.
    for _ in 0..25 {
        let mut port = IbsimPort::open(&endpoint, Some("h1")).expect("a place");
        let answer = ask(&mut port, "0").expect("an answer");
        assert_eq!(answer.delivery, Delivery::Received);
        let info: &NodeInfo = answer.smp().attribute();
        assert_eq!(Some(info.node_guid), port.local().node_guid);
        assert_eq!(info.local_port, port.local().port);
    }
    let mut port = IbsimPort::open(&endpoint, Some("h1")).expect("a place");
    // A route that leads nowhere comes back at once.
    let answer = ask(&mut port, "0,1,200").expect("an answer");
    assert_eq!(answer.delivery, Delivery::TimedOut);
    let long = "x".repeat(32);
    assert!(matches!(
        IbsimPort::open(&endpoint, Some(&long)),
        Err(Error::NodeNameTooLong { .. })
    ));
    assert!(matches!(
        IbsimPort::open(&endpoint, Some("nobody")),
        Err(Error::UnknownNode { .. })
    ));
    let more: Vec<_> = (0..9)
        .map(|_| IbsimPort::open(&endpoint, None).expect("a place"))
        .collect();
    assert!(matches!(
        IbsimPort::open(&endpoint, Some("h1")),
        Err(Error::SimulatorFull { .. })
    ));
    drop(more);
    assert!(IbsimPort::open(&endpoint, Some("h1")).is_ok());
}

/// More in flight than the socket has room for, none taken before all are sent.
#[test]
fn a_full_socket_loses_nothing() {
    if lacks_ibsim("a_full_socket_loses_nothing") {
        return;
    }
    let sim = Ibsim::start(DEFAULT_NET, &Options::default()).expect("ibsim");
    let mut port =
        IbsimPort::open(&Endpoint::Unix(sim.socket_name().to_owned()), None).expect("a place");
    let smp = Smp::get(&DrPath::LOCAL, AttributeId::NODE_INFO, 0);
    for number in 0..5000 {
        let mut packet = Packet::directed(&smp, Duration::from_secs(1));
        packet.header_mut().tid.set(number);
        port.send(&packet).expect("it sends");
    }
    for number in 0..5000 {
        let answer = port
            .receive(Duration::from_secs(5))
            .expect("it receives")
            .expect("an answer");
        assert_eq!(answer.header().tid.get() & 0xffff_ffff, number);
    }
    assert_eq!(port.receive(Duration::ZERO).expect("it receives"), None);
}

#[test]
fn udp_works_as_well() {
    if lacks("udp_works_as_well", &["ibsim"]) {
        return;
    }
    let folder = Folder::new().expect("a folder");
    let net = folder.path().join("net");
    std::fs::write(&net, DEFAULT_NET).expect("a file");
    // Eleven ports in a row, elsewhere for each process.
    let first = 20_000 + u16::try_from(std::process::id() % 1000).expect("below 1000") * 12;
    let mut command = Command::new(rdma_lab::peer("ibsim").expect("ibsim"));
    command
        .args(["-r", "-l", &first.to_string(), "-s"])
        .arg(&net)
        .env("IBSIM_SOCKNAME", "unused");
    let mut server = Running::start(&command).expect("ibsim");
    let ready = |server: &mut Running| Ok(server.stdout().ends_with(b"sim> "));
    server
        .wait_until("its prompt", Duration::from_secs(20), ready)
        .expect("it starts");
    let endpoint = Endpoint::Udp {
        host: "127.0.0.1".to_owned(),
        port: first,
    };
    // The prompt comes before the sockets.
    let begin = Instant::now();
    while IbsimPort::open(&endpoint, None).is_err() && begin.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut ports: Vec<_> = (0..3)
        .map(|_| IbsimPort::open(&endpoint, Some("h1")).expect("a place"))
        .collect();
    for port in &mut ports {
        assert_eq!(
            ask(port, "0").expect("an answer").delivery,
            Delivery::Received
        );
    }
    server.kill();
    let begin = Instant::now();
    let smp = Smp::get(&DrPath::LOCAL, AttributeId::NODE_INFO, 0);
    let packet = Packet::directed(&smp, Duration::from_secs(1));
    // The first is lost, and the system then says that nobody is there.
    let lost = (0..5).any(|_| {
        ports[0].send(&packet).is_err() || ports[0].receive(Duration::from_millis(50)).is_err()
    });
    assert!(lost && begin.elapsed() < Duration::from_secs(5));
}
