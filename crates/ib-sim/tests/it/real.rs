//! Dumps of real fabrics. The counts come from a plain search of the text for its line heads,
//! which knows nothing of the reader.

use std::collections::BTreeSet;

use ib_sim::topo::file::{Format, Options, read_with};

use super::testdata;

/// Nodes by their first lines, ports by their lines, and cables by pairs of names.
fn grep(text: &str) -> (usize, usize, usize) {
    let mut links = BTreeSet::new();
    let (mut switches, mut cas, mut node) = (0, 0, "");
    for line in text.lines() {
        if line.starts_with("Switch") || line.starts_with("Ca") {
            node = line.split('"').nth(1).unwrap();
            if line.starts_with('S') {
                switches += 1;
            } else {
                cas += 1;
            }
        } else if let Some(rest) = line.strip_prefix('[') {
            let port = rest.split(']').next().unwrap();
            let mut parts = line.split('"');
            let peer = parts.nth(1).unwrap();
            let peer_port = parts.next().unwrap().split(['[', ']']).nth(1).unwrap();
            let (a, b) = (format!("{node}[{port}]"), format!("{peer}[{peer_port}]"));
            links.insert(if a < b { (a, b) } else { (b, a) });
        }
    }
    (switches, cas, links.len())
}

#[test]
fn real_dumps_load_completely() {
    let files = [
        ("topograph_example.out", Some((40, 582, 1114))),
        ("ibtopotool_1.topo", None),
        ("ibtopotool_2.topo", None),
        ("ibtopotool_3.topo", None),
        ("ibtopotool_4.topo", None),
    ];
    for (file, known) in files {
        let Some(path) = testdata("real_dumps_load_completely", file) else {
            return;
        };
        let bytes = std::fs::read(path).unwrap();
        let want = grep(&String::from_utf8_lossy(&bytes));
        if let Some(known) = known {
            assert_eq!(want, known, "{file}");
        }
        let parsed = read_with(file, &bytes, &Options::new().strict(), &mut |_| None)
            .unwrap_or_else(|e| panic!("{e}"));
        let t = &parsed.topology;
        assert_eq!(
            (t.switches().count(), t.hosts().count(), t.links().count()),
            want,
            "{file}"
        );
        assert_eq!(parsed.warnings, [], "{file}");
        assert_eq!(parsed.format, Format::Net);
        // Every rate's name in the text is what the port has at most.
        let text = String::from_utf8_lossy(&bytes);
        let names = text
            .lines()
            .filter(|l| l.starts_with('['))
            .filter_map(|l| l.split_whitespace().last());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        let ports = t
            .nodes()
            .iter()
            .flat_map(|n| n.ports())
            .filter(|p| p.peer.is_some());
        let mut rates: Vec<String> = ports.map(|p| format!("{}{}", p.widths, p.speeds)).collect();
        names.sort_unstable();
        rates.sort_unstable();
        assert_eq!(rates, names, "{file}");
        for node in t.nodes() {
            assert!(
                node.guid != 0 && node.vendor_id != 0 && node.device_id != 0,
                "{file}: {}",
                node.id
            );
        }
    }
}

/// The second report has one adapter port on two switches: it was made by hand, or cables moved.
#[test]
fn real_port_reports_load() {
    for (file, nodes, links) in [
        ("treydock_ibnetdiscover_test.out", (4, 3), 4),
        ("treydock_ibnetdiscover_test2.out", (5, 2), 2),
    ] {
        let Some(path) = testdata("real_port_reports_load", file) else {
            return;
        };
        let bytes = std::fs::read(path).unwrap();
        let parsed = read_with(file, &bytes, &Options::new(), &mut |_| None)
            .unwrap_or_else(|e| panic!("{e}"));
        let t = &parsed.topology;
        assert_eq!(parsed.format, Format::PortReport);
        assert_eq!(
            ((t.switches().count(), t.hosts().count()), t.links().count()),
            (nodes, links),
            "{file}"
        );
    }
}
