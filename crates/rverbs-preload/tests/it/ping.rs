//! `rverbs::ping` with Debian's rping, each at either end, by the communication manager.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use rdma_lab::preload::Provider;
use rdma_lab::skip;
use rverbs::cm::Cm;
use rverbs::ping::{Link, PORT, Pings};
use rverbs::provider::roce::Config;

use crate::{LIMIT, lab};

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn cm(base_port: u16) -> Cm {
    let config = Config {
        base_port,
        ..Config::new("ping", LOCAL)
    };
    Cm::open(&config).unwrap()
}

#[test]
fn we_answer_rping() {
    if skip::lacks("we_answer_rping", &["rping"]) {
        return;
    }
    let lab = lab(Provider::Roce);
    let cm = cm(lab.udp());
    let listener = cm.listen(PORT).unwrap();
    let args = ["-c", "-a", "127.0.0.1", "-C", "5", "-S", "3000", "-V", "-v"];
    let client = lab.start("rping", &args).unwrap();
    let (mut link, from) = Link::take(&cm, &listener, Some(LIMIT), LIMIT)
        .unwrap()
        .unwrap();
    assert_eq!(from, LOCAL);
    let rounds = link.serve(None, |round| {
        let begin = format!("rdma-ping-{}: ", round.number);
        assert!(round.text.starts_with(begin.as_bytes()));
    });
    assert_eq!(rounds.unwrap(), 5);
    link.end().unwrap();
    let output = client.end(LIMIT);
    assert_eq!(output.code, 0, "{}", output.stderr_text());
    assert_eq!(
        output
            .stdout_text()
            .matches("ping data: rdma-ping-")
            .count(),
        5
    );
}

#[test]
fn rping_answers_us() {
    if skip::lacks("rping_answers_us", &["rping"]) {
        return;
    }
    let lab = lab(Provider::Roce);
    let args = ["-s", "-a", "127.0.0.1", "-C", "5", "-S", "3000", "-v"];
    let server = lab.start("rping", &args).unwrap();
    // It has to have the standard port, where calls go.
    let end = Instant::now() + LIMIT;
    while UdpSocket::bind((LOCAL, lab.udp())).is_ok() {
        assert!(Instant::now() < end, "rping opens no device");
        std::thread::sleep(Duration::from_millis(20));
    }
    let cm = cm(lab.udp());
    let to = SocketAddr::new(LOCAL, PORT);
    let mut link = loop {
        match Link::dial(&cm, to, LIMIT) {
            Ok(link) => break link,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let pings = Pings {
        count: 5,
        size: 3000,
        validate: true,
    };
    assert_eq!(link.ping(&pings, |_| ()).unwrap(), 5);
    link.end().unwrap();
    let output = server.end(LIMIT);
    let text = output.stdout_text();
    assert_eq!(
        text.matches("server ping data: rdma-ping-").count(),
        5,
        "{text}"
    );
}
