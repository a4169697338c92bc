//! The generators, by counts that are known from elsewhere.

use ib_sim::topo::{Kind, Spec, Topology};

fn build(spec: &str) -> Topology {
    spec.parse::<Spec>()
        .unwrap_or_else(|e| panic!("{e}"))
        .build()
        .unwrap_or_else(|e| panic!("{spec}: {e}"))
}

fn counts(topology: &Topology) -> (usize, usize, usize) {
    (
        topology.hosts().count(),
        topology.switches().count(),
        topology.links().count(),
    )
}

/// Number of nodes that can be reached from the first.
fn reached(topology: &Topology) -> usize {
    let mut seen = vec![false; topology.nodes().len()];
    let mut queue = vec![0];
    seen[0] = true;
    let mut count = 1;
    while let Some(node) = queue.pop() {
        for peer in topology
            .node(node)
            .unwrap()
            .ports()
            .iter()
            .filter_map(|p| p.peer)
        {
            if !std::mem::replace(&mut seen[peer.node], true) {
                count += 1;
                queue.push(peer.node);
            }
        }
    }
    count
}

#[test]
fn shapes_have_the_published_counts() {
    // Hosts, switches, cables: the nets that OpenSM was measured on, and what the formulas give.
    for (spec, want) in [
        ("fat-tree:108", (108, 9, 216)),
        ("fat-tree:648", (648, 54, 1296)),
        ("fat-tree:1728", (1728, 360, 5184)),
        ("fat-tree:5184", (5184, 738, 15552)),
        ("fat-tree:11664", (11664, 1620, 34992)),
        ("fat-tree:k=36,levels=2", (648, 54, 1296)),
        ("fat-tree:k=36,levels=2,leaves=6,spines=3", (108, 9, 216)),
        ("fat-tree:k=24,levels=3,pods=12,cores=6", (1728, 360, 5184)),
        ("fat-tree:k=4,levels=3", (16, 20, 48)),
        ("torus:6x6,hosts=3", (108, 36, 180)),
        ("torus:6x6x6,hosts=3", (648, 216, 1296)),
        ("torus:12x12x12,hosts=3", (5184, 1728, 10368)),
        ("torus:2x3,hosts=0", (0, 6, 9)),
        ("torus:3x3,links=2", (9, 9, 45)),
        ("dragonfly:p=2", (72, 36, 162)),
        ("dragonfly:p=3", (342, 114, 798)),
        ("dragonfly:p=4", (1056, 264, 2508)),
        ("dragonfly:p=5", (2550, 510, 6120)),
        ("dragonfly:p=2,groups=5", (40, 20, 90)),
        ("ring:switches=8,hosts=2", (16, 8, 24)),
        ("ring:switches=2,hosts=1", (2, 2, 3)),
        ("switch:hosts=36", (36, 1, 36)),
        ("back-to-back", (2, 0, 1)),
        ("random:switches=20,hosts=100,seed=1", (100, 20, 140)),
    ] {
        let topology = build(spec);
        assert_eq!(counts(&topology), want, "{spec}");
        assert_eq!(
            reached(&topology),
            topology.nodes().len(),
            "{spec}: every node is reached"
        );
    }
}

#[test]
fn a_full_fat_tree_leaves_no_port_free() {
    for node in build("fat-tree:648").switches() {
        assert!(
            (1..=36).all(|p| node.port(p).is_some_and(|p| p.peer.is_some())),
            "{}",
            node.id
        );
    }
    // Six cables between each leaf and each spine of the small one.
    let topology = build("fat-tree:108");
    let (leaf, spine) = (
        topology.find("leaf-2").unwrap(),
        topology.find("spine-1").unwrap(),
    );
    let cables = topology
        .links()
        .filter(|l| (l.a.node, l.b.node) == (leaf, spine))
        .count();
    assert_eq!(cables, 6);
}

#[test]
fn every_pair_of_groups_of_a_dragonfly_has_one_cable() {
    let topology = build("dragonfly:p=2");
    let group = |node: usize| {
        let node = topology.node(node).unwrap();
        (node.kind == Kind::Switch)
            .then(|| node.id.split('-').nth(1).unwrap().parse::<usize>().unwrap())
    };
    let mut cables = vec![0; 81];
    for link in topology.links() {
        if let (Some(a), Some(b)) = (group(link.a.node), group(link.b.node)) {
            cables[a.min(b) * 9 + a.max(b)] += 1;
        }
    }
    for a in 0..9 {
        for b in 0..9 {
            let want = match a.cmp(&b) {
                std::cmp::Ordering::Less => 1,
                std::cmp::Ordering::Equal => 6,
                std::cmp::Ordering::Greater => 0,
            };
            assert_eq!(cables[a * 9 + b], want, "groups {a} and {b}");
        }
    }
}

#[test]
fn a_seed_decides_a_random_fabric() {
    assert_eq!(
        build("random:switches=30,hosts=60,seed=5"),
        build("random:switches=30,hosts=60,seed=5")
    );
    assert_ne!(
        build("random:switches=30,hosts=60,seed=5"),
        build("random:switches=30,hosts=60,seed=6")
    );
}

#[test]
fn rates_are_chosen() {
    let topology = build("switch:hosts=2,speed=NDR,width=2x");
    let (widths, speeds) = topology
        .active_rate(topology.links().next().unwrap().a)
        .unwrap();
    assert_eq!((widths.lanes(), speeds.to_string().as_str()), (2, "NDR"));
}

#[test]
fn what_is_wrong_with_a_spec_is_said() {
    for (spec, want) in [
        (
            "fattree:648",
            "topology \"fattree:648\": unknown shape \"fattree\"; there are fat-tree, torus, dragonfly, random, ring, switch, back-to-back",
        ),
        (
            "fat-tree:649",
            "topology \"fat-tree:649\": number of hosts is \"649\", not one of 108, 648, 1728, 5184, 11664, or k=PORTS,levels=2|3",
        ),
        ("fat-tree", "topology \"fat-tree\": k is missing"),
        (
            "fat-tree:k=36,levels=4",
            "topology \"fat-tree:k=36,levels=4\": levels is \"4\", not a number from 2 to 3",
        ),
        (
            "fat-tree:k=36,spines=5",
            "topology \"fat-tree:k=36,spines=5\": 18 cables up from a switch cannot be spread evenly over 5 spines",
        ),
        (
            "fat-tree:k=36,leaves=40",
            "topology \"fat-tree:k=36,leaves=40\": 40 leaves of 1 cables need more than the 36 ports of a switch on top",
        ),
        (
            "fat-tree:648,k=4",
            "topology \"fat-tree:648,k=4\": unknown argument \"k\" for fat-tree, which takes k, levels, hosts, leaves, spines, pods, cores, speed, width",
        ),
        (
            "torus:6x0",
            "topology \"torus:6x0\": size is \"6x0\", not sizes such as 6x6 or 6x6x6",
        ),
        (
            "torus:6x6,hosts=3,hosts=4",
            "topology \"torus:6x6,hosts=3,hosts=4\": \"hosts\" is given twice",
        ),
        (
            "ring:switches=3,speed=ZDR",
            "topology \"ring:switches=3,speed=ZDR\": speed is \"ZDR\", not SDR, DDR, QDR, FDR10, FDR, EDR, HDR, NDR or XDR",
        ),
        (
            "random:switches=2,hosts=100",
            "topology \"random:switches=2,hosts=100\": 50 hosts on a switch leave fewer than 2 of its 36 ports for other switches",
        ),
    ] {
        assert_eq!(spec.parse::<Spec>().unwrap_err().to_string(), want);
    }
    let error = "torus:255x255x255"
        .parse::<Spec>()
        .unwrap()
        .build()
        .unwrap_err();
    assert_eq!(error.to_string(), "more than 65536 nodes");
}
