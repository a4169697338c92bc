//! What a user may write to choose a port.

use proptest::prelude::*;
use rdma_host::Selector;
use rdma_host::ibsim::Endpoint;

#[test]
fn what_is_written_is_what_is_meant() {
    let umad = |name: &str, port| Selector::Umad {
        name: name.to_owned(),
        port,
    };
    let unix = |name: &str, node: Option<&str>| Selector::Ibsim {
        endpoint: Endpoint::Unix(name.to_owned()),
        node: node.map(str::to_owned),
    };
    let udp = |host: &str, port, node: Option<&str>| Selector::Ibsim {
        endpoint: Endpoint::Udp {
            host: host.to_owned(),
            port,
        },
        node: node.map(str::to_owned),
    };
    for (text, want) in [
        ("umad0", umad("umad0", None)),
        ("mlx5_0:1", umad("mlx5_0", Some(1))),
        ("ibsim:lab", unix("lab", None)),
        ("ibsim:lab/Hca1", unix("lab", Some("Hca1"))),
        ("ibsim:lab/MF0;sw:X/U1", unix("lab", Some("MF0;sw:X/U1"))),
        ("ibsim:", unix("sim", None)),
        ("ibsim:/Hca1", unix("sim", Some("Hca1"))),
        ("ibsim:udp:localhost:7171", udp("localhost", 7171, None)),
        ("ibsim:udp:10.0.0.1/n:1", udp("10.0.0.1", 7070, Some("n:1"))),
    ] {
        assert_eq!(text.parse(), Ok(want.clone()), "{text}");
        assert_eq!(want.to_string().parse(), Ok(want), "{text}");
    }
    for bad in [
        "",
        "mlx5_0:",
        "mlx5_0:x",
        "mlx5_0:256",
        "a/b",
        "ibsim:udp:",
        "ibsim:udp:h:x",
        "ibsim:udp::1",
    ] {
        assert!(bad.parse::<Selector>().is_err(), "{bad:?}");
    }
    assert!(
        format!("ibsim:{}", "x".repeat(81))
            .parse::<Selector>()
            .is_err()
    );
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,100}") {
        if let Ok(selector) = text.parse::<Selector>() {
            prop_assert_eq!(selector.to_string().parse::<Selector>(), Ok(selector));
        }
    }
}
