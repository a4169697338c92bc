//! Properties.

use ib_sim::topo::file::{Options, read, read_with, write};
use ib_sim::topo::{Kind, Node, Peer, Spec, Speeds, Topology, Widths};
use proptest::prelude::*;

/// Fabrics of every kind of node, masks, LIDs, and cables wherever two ports are free.
fn topology() -> impl Strategy<Value = Topology> {
    let node = (
        0..3_u8,
        1..20_u8,
        "[ -~é]{1,40}",
        any::<u32>(),
        any::<u16>(),
        any::<bool>(),
    );
    let cable = (
        any::<prop::sample::Index>(),
        1..20_u8,
        any::<prop::sample::Index>(),
        1..20_u8,
        1..5_u8,
        0..9_usize,
    );
    (
        prop::collection::vec(node, 1..12),
        prop::collection::vec(cable, 0..40),
    )
        .prop_map(|(nodes, cables)| {
            let mut t = Topology::new();
            for (i, (kind, ports, text, vendor, device, flag)) in nodes.into_iter().enumerate() {
                let kind = [Kind::Ca, Kind::Switch, Kind::Router][usize::from(kind)];
                let mut node = Node::new(kind, format!("n {i}"), 0x1_0000 * (i as u64 + 1), ports);
                text.clone_into(&mut node.description);
                node.vendor_id = vendor & 0xff_ffff;
                node.device_id = device;
                if kind == Kind::Switch {
                    node.enhanced_port_zero = Some(flag);
                    let zero = node.port_mut(0).unwrap();
                    (zero.lid, zero.lmc) = (device, ports % 8);
                } else if flag {
                    node.system_guid += 3;
                }
                t.add(node).unwrap();
            }
            for (a, pa, b, pb, width, speed) in cables {
                let ends = [(a, pa), (b, pb)].map(|(n, port)| Peer {
                    node: n.index(t.nodes().len()),
                    port,
                });
                let widths =
                    Widths::up_to(["1x", "2x", "4x", "8x", "12x"][usize::from(width)]).unwrap();
                let labels = [
                    "SDR", "DDR", "QDR", "FDR10", "FDR", "EDR", "HDR", "NDR", "XDR",
                ];
                let speeds = Speeds::up_to(labels[speed]).unwrap();
                let free = ends.iter().all(|e| {
                    let node = t.node(e.node).unwrap();
                    node.has_port(e.port) && node.port(e.port).is_none()
                });
                if !free {
                    continue;
                }
                // The far end has masks of its own, that no rate's name says.
                let odd = (Widths::ALL, Speeds::from_masks(5, 0).unwrap());
                for (end, (widths, speeds)) in ends.into_iter().zip([(widths, speeds), odd]) {
                    t.set_rate(end, widths, speeds).unwrap();
                }
                t.connect(ends[0], ends[1]).unwrap();
            }
            t
        })
}

proptest! {
    #[test]
    fn write_then_read_is_the_same(topology in topology()) {
        let text = write(&topology);
        let parsed = read_with("w", text.as_bytes(), &Options::new().strict(), &mut |_| None);
        prop_assert_eq!(&parsed.unwrap().topology, &topology, "{}", text);
    }

    #[test]
    fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read("f", &bytes);
    }

    #[test]
    fn no_text_panics(words in prop::collection::vec(prop::sample::select(vec![
        "Switch", "Ca", "Hca", "Rt", " ", "\t", "\n", "\"", "#", "[", "]", "(", ")", "1", "255", "0x", "ff", "lid", "lmc",
        "4xEDR", "w=", "s=", "e=", "@", "=", "+", "switchguid", "caguid", "module=", "include", "é", "\"a\"", "\"a\"[1]", "[1]",
        "CA", "SW", "0x10", "-", "'", "\r",
    ]), 0..120)) {
        let text = words.concat();
        let _ = read("f", text.as_bytes());
    }

    #[test]
    fn a_read_topology_is_consistent(topology in topology(), cut in any::<prop::sample::Index>(), byte in any::<u8>()) {
        // One byte of a good file changed: either it is refused, or every cable has two ends.
        let mut text = write(&topology).into_bytes();
        let at = cut.index(text.len());
        text[at] = byte;
        if let Ok(parsed) = read("f", &text) {
            let t = &parsed.topology;
            for (index, node) in t.nodes().iter().enumerate() {
                for port in node.ports() {
                    let Some(peer) = port.peer else { continue };
                    let back = t.node(peer.node).and_then(|n| n.port(peer.port)).and_then(|p| p.peer);
                    prop_assert_eq!(back, Some(Peer { node: index, port: port.number }));
                }
            }
        }
    }

    #[test]
    fn no_spec_panics(text in "(fat-tree|torus|dragonfly|random|ring|switch|back-to-back)(:[a-z0-9=,x]{0,40})?") {
        if let Ok(spec) = text.parse::<Spec>() {
            let _ = spec;
        }
    }
}
