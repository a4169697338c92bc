//! rping, both ends of this crate.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rverbs::Error;
use rverbs::cm::Cm;
use rverbs::ping::{Link, PORT, Pings};
use rverbs::provider::roce::Config;

use crate::sound::on_each;

const TIMEOUT: Duration = Duration::from_secs(60);
const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn cm(base_port: u16) -> Cm {
    let config = Config {
        base_port,
        ..Config::new("ping", LOCAL)
    };
    Cm::open(&config).unwrap()
}

/// A range of ports that other tests don't use.
fn base() -> u16 {
    20_000 + (std::process::id() % 10_000) as u16
}

#[test]
fn both_ends_meet_by_a_socket() {
    on_each(|lab| {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let pings = Pings {
            count: 20,
            size: 5000,
            validate: true,
        };
        std::thread::scope(|scope| {
            let server = scope.spawn(|| {
                let mut link = Link::by_unix(&lab.context, theirs, TIMEOUT).unwrap();
                link.serve(None, |_| ()).unwrap()
            });
            let mut link = Link::by_unix(&lab.context, ours, TIMEOUT).unwrap();
            let mut seen = 0;
            link.ping(&pings, |round| {
                assert!(
                    round
                        .text
                        .starts_with(format!("rdma-ping-{seen}: ").as_bytes())
                );
                seen += 1;
            })
            .unwrap();
            drop(link);
            assert_eq!((seen, server.join().unwrap()), (20, 20));
        });
    });
}

#[test]
fn both_ends_meet_by_the_communication_manager() {
    let (server, client) = (cm(base()), cm(base()));
    assert!(server.is_reached());
    let listener = server.listen(PORT).unwrap();
    let pings = Pings {
        count: 10,
        size: 64,
        validate: true,
    };
    std::thread::scope(|scope| {
        let served = scope.spawn(|| {
            let (mut link, from) = Link::take(&server, &listener, Some(TIMEOUT), TIMEOUT)
                .unwrap()
                .unwrap();
            let rounds = link.serve(None, |_| ()).unwrap();
            link.end().unwrap();
            (rounds, from)
        });
        let mut link = Link::dial(&client, SocketAddr::new(LOCAL, PORT), TIMEOUT).unwrap();
        assert_eq!(link.ping(&pings, |_| ()).unwrap(), 10);
        link.end().unwrap();
        assert_eq!(served.join().unwrap(), (10, LOCAL));
    });
}

/// Who waits for calls and who waits for answers share the manager's events.
#[test]
fn one_manager_is_both_sides_at_once() {
    let cm = cm(base() + 2000);
    let listener = cm.listen(PORT).unwrap();
    for _ in 0..50 {
        std::thread::scope(|scope| {
            let refused =
                scope.spawn(|| Link::dial(&cm, SocketAddr::new(LOCAL, PORT), TIMEOUT).unwrap_err());
            drop(listener.next(Some(TIMEOUT)).unwrap().unwrap());
            let error = refused.join().unwrap();
            assert!(matches!(error, Error::Refused { .. }), "{error}");
        });
    }
}

#[test]
fn who_calls_is_told_why_nobody_answers() {
    let base = base() + 1000;
    let (server, client) = (cm(base), cm(base));
    let call = |port| Link::dial(&client, SocketAddr::new(LOCAL, port), TIMEOUT).unwrap_err();
    let Error::Refused { why, .. } = call(1) else {
        panic!("not refused");
    };
    assert_eq!(why, "nobody listens on that port");
    let listener = server.listen(2).unwrap();
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| call(2));
        drop(listener.next(Some(TIMEOUT)).unwrap().unwrap());
        let Error::Refused { why, .. } = refused.join().unwrap() else {
            panic!("not refused");
        };
        assert_eq!(why, "the program that listens does not want the connection");
    });
    // Nothing is there at all.
    drop((listener, server));
    let far = Link::dial(
        &client,
        "127.0.0.2:3".parse().unwrap(),
        Duration::from_millis(300),
    );
    assert!(matches!(far, Err(Error::Unanswered { .. })), "{far:?}");
}
