//! Meeting by the communication manager.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use rverbs::Error;
use rverbs::cm::{self, Cm};
use rverbs::ping::{Link, Pings};
use rverbs::provider::Kind;
use rverbs::provider::roce::{Config, RoceProvider};

use super::lab::Lab;

const TIMEOUT: Duration = Duration::from_secs(60);
const PORT: u16 = 7471;

/// The manager of the device and the address it is called at.
fn manager(lab: &Lab) -> Option<(Cm, IpAddr)> {
    let configs = RoceProvider::default().configs();
    match lab.kind {
        Kind::Roce => {
            let name = lab.context.name();
            let config = configs.into_iter().find(|config| config.name == name);
            // The standard port is the lab's own.
            let config = Config {
                base_port: 20_000 + (std::process::id() % 10_000) as u16,
                ..config.unwrap()
            };
            Some((Cm::open(&config).unwrap(), config.addr))
        }
        Kind::Verbs => {
            let addrs = configs.iter().map(|config| config.addr);
            let ours = |addr: &IpAddr| {
                cm::device_at(*addr).is_ok_and(|device| device.name() == lab.context.name())
            };
            let addr = addrs.into_iter().find(ours)?;
            Some((Cm::system(lab.context.clone(), addr), addr))
        }
        _ => None,
    }
}

pub(super) fn both_meet_by_the_manager(lab: &Lab) {
    let Some((cm, addr)) = manager(lab) else {
        eprintln!("{}: no manager reaches it", lab.context.name());
        return;
    };
    let pings = Pings {
        count: 5,
        size: 3000,
        validate: true,
    };
    let to = |port| SocketAddr::new(addr, port);
    let call = |port| Link::dial(&cm, to(port), TIMEOUT);
    let Err(Error::Refused { why, .. }) = call(PORT + 1) else {
        panic!("somebody listens where nobody should");
    };
    assert_eq!(why, "nobody listens on that port");

    let listener = cm.listen(PORT).unwrap();
    std::thread::scope(|scope| {
        let refused = scope.spawn(|| call(PORT));
        drop(listener.next(Some(TIMEOUT)).unwrap().unwrap());
        let Err(Error::Refused { why, .. }) = refused.join().unwrap() else {
            panic!("a call that was dropped was not refused");
        };
        assert_eq!(why, "the program that listens does not want the connection");

        let served = scope.spawn(|| {
            let taken = Link::take(&cm, &listener, Some(TIMEOUT), TIMEOUT).unwrap();
            let (mut link, from) = taken.unwrap();
            let rounds = link.serve(None, |_| ()).unwrap();
            link.end().unwrap();
            (rounds, from)
        });
        let mut link = call(PORT).unwrap();
        assert_eq!(link.ping(&pings, |_| ()).unwrap(), 5);
        link.end().unwrap();
        assert_eq!(served.join().unwrap(), (5, addr));
    });
}
