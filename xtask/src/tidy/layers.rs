//! Which crate may depend on which. The table is ARCHITECTURE.md's, and this is what keeps it true.

use super::Finding;
use super::tree::{Crate, Dep, Tree};

/// What a crate may use of ours: always, under a feature, and in tests.
struct Layer {
    name: &'static str,
    always: &'static [&'static str],
    with: &'static [(&'static str, &'static str)],
    tests: &'static [&'static str],
}

const fn layer(
    name: &'static str,
    always: &'static [&'static str],
    with: &'static [(&'static str, &'static str)],
    tests: &'static [&'static str],
) -> Layer {
    Layer {
        name,
        always,
        with,
        tests,
    }
}

const CLI: (&str, &str) = ("cli", "rdma-cli");
const CLI_HOST: (&str, &str) = ("cli", "rdma-host");
const SIM: (&str, &str) = ("sim", "ib-sim");

/// Bottom up.
const LAYERS: &[Layer] = &[
    layer("rdma-wire", &[], &[], &[]),
    layer("rdma-cli", &[], &[], &[]),
    layer("rdma-lab", &["ib-mad"], &[], &[]),
    layer("rverbs-sys", &[], &[], &[]),
    layer("ib-mad", &["rdma-wire"], &[], &["ib-sim"]),
    layer("ib-sim", &["ib-mad", "rdma-wire"], &[], &["rdma-lab"]),
    layer(
        "rdma-host",
        &["ib-mad", "rdma-wire"],
        &[CLI],
        &["ib-sim", "rdma-lab"],
    ),
    layer(
        "ib-sm",
        &["ib-mad", "rdma-wire"],
        &[CLI, CLI_HOST, SIM],
        &["ib-sim", "rdma-lab"],
    ),
    layer(
        "mlx-dev",
        &["rdma-wire"],
        &[("inband", "ib-mad")],
        &["rdma-lab"],
    ),
    layer("mlx-fw", &["mlx-dev", "rdma-wire"], &[CLI], &["rdma-lab"]),
    layer("mlx-cfg", &["mlx-dev", "rdma-wire"], &[CLI], &["rdma-lab"]),
    layer(
        "rverbs",
        &["rverbs-sys", "rdma-wire", "ib-mad"],
        &[CLI],
        &["rdma-lab"],
    ),
    layer(
        "rverbs-preload",
        &["rverbs", "rverbs-sys"],
        &[],
        &["rdma-lab"],
    ),
    layer("rperf", &["rverbs"], &[CLI, CLI_HOST], &["rdma-lab"]),
];

/// Those that may use anything, and that nothing may use.
const TOPS: &[&str] = &["xtask", "benches"];

const REMEDY: &str = "turn the dependency around, move the code down a layer, or change the table in \
     xtask/src/tidy/layers.rs together with ARCHITECTURE.md";

/// The rule.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let ours = |dep: &&Dep| tree.crates.iter().any(|c| c.name == dep.name);
    let mut found = Vec::new();
    let map = tree.text("ARCHITECTURE.md").unwrap_or_default();
    for member in &tree.crates {
        if !map.contains(&format!("`{}`", member.name)) {
            found.push(Finding::new(
                "ARCHITECTURE.md",
                format!("{} is not in the table of crates", member.name),
                "add its line: what it is for, and what it may depend on",
            ));
        }
        if TOPS.contains(&member.name.as_str()) {
            continue;
        }
        let Some(layer) = LAYERS.iter().find(|layer| layer.name == member.name) else {
            found.push(Finding::new(
                member.manifest(),
                format!("{} stands in no layer", member.name),
                "add it to the table in xtask/src/tidy/layers.rs and to ARCHITECTURE.md",
            ));
            continue;
        };
        for dep in member.deps.iter().filter(ours) {
            found.extend(judge(member, layer, dep));
        }
    }
    found
}

fn judge(member: &Crate, layer: &Layer, dep: &Dep) -> Option<Finding> {
    let name = dep.name.as_str();
    // A crate may turn on its own features for its own tests.
    if layer.always.contains(&name)
        || (dep.dev && (layer.tests.contains(&name) || name == layer.name))
    {
        return None;
    }
    let features: Vec<&str> = layer
        .with
        .iter()
        .filter(|(_, with)| *with == name)
        .map(|(feature, _)| *feature)
        .collect();
    // In tests all features may be on, so what a feature may use, tests may use.
    if features.is_empty() || (!dep.optional && !dep.dev) {
        let what = if features.is_empty() {
            format!("{} may not depend on {name}", member.name)
        } else {
            format!(
                "{} may use {name} only as an optional dependency of {features:?}",
                member.name
            )
        };
        return Some(Finding::new(member.manifest(), what, REMEDY));
    }
    if dep.dev {
        return None;
    }
    let turns_on = turned_on_by(member, name);
    let stray = turns_on
        .iter()
        .find(|feature| !features.contains(feature))?;
    let what = format!(
        "the feature {stray} of {} turns {name} on; only {features:?} may",
        member.name
    );
    Some(Finding::new(member.manifest(), what, REMEDY))
}

/// The features that name an optional dependency themselves.
pub fn turned_on_by<'a>(member: &'a Crate, dep: &str) -> Vec<&'a str> {
    let names = |item: &String| {
        item == &format!("dep:{dep}") || item.split_once('/').is_some_and(|(name, _)| name == dep)
    };
    let features = member
        .features
        .iter()
        .filter(|(_, items)| items.iter().any(names));
    features.map(|(feature, _)| feature.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(name: &str, dep: Dep, features: &[(&str, &[&str])]) -> Tree {
        let features = features
            .iter()
            .map(|(f, items)| {
                (
                    (*f).to_owned(),
                    items.iter().map(|i| (*i).to_owned()).collect(),
                )
            })
            .collect();
        let member = Crate {
            name: name.into(),
            features,
            ..Crate::default()
        };
        let other = Crate {
            name: dep.name.clone(),
            ..Crate::default()
        };
        let member = Crate {
            deps: vec![dep],
            ..member
        };
        let mut crates = vec![member];
        if LAYERS.iter().any(|layer| layer.name == other.name) {
            crates.push(other);
        }
        let names: String = crates.iter().map(|c| format!("`{}`", c.name)).collect();
        let mut tree = Tree::with(&[("ARCHITECTURE.md", &names)]);
        tree.crates = crates;
        tree
    }

    #[test]
    fn a_crate_is_on_the_map() {
        let mut tree = tree("ib-mad", dep("rdma-wire"), &[]);
        tree.files.clear();
        let found = check(&tree);
        assert_eq!(found[0].what, "ib-mad is not in the table of crates");
    }

    fn dep(name: &str) -> Dep {
        Dep {
            name: name.into(),
            dev: false,
            optional: false,
        }
    }

    #[test]
    fn an_arrow_down_is_fine_and_one_up_is_not() {
        assert_eq!(check(&tree("ib-mad", dep("rdma-wire"), &[])), []);
        let found = check(&tree("rdma-wire", dep("ib-mad"), &[]));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].what.contains("rdma-wire may not depend on ib-mad"),
            "{}",
            found[0]
        );
    }

    #[test]
    fn siblings_do_not_meet() {
        assert_eq!(check(&tree("mlx-fw", dep("mlx-cfg"), &[])).len(), 1);
    }

    #[test]
    fn a_feature_may_only_turn_on_what_is_its() {
        let optional = || Dep {
            optional: true,
            ..dep("rdma-cli")
        };
        assert_eq!(
            check(&tree("mlx-fw", optional(), &[("cli", &["dep:rdma-cli"])])),
            []
        );
        let found = check(&tree("mlx-fw", optional(), &[("fast", &["dep:rdma-cli"])]));
        assert!(found[0].what.contains("feature fast"), "{}", found[0]);
        let found = check(&tree("mlx-fw", dep("rdma-cli"), &[]));
        assert!(found[0].what.contains("optional"), "{}", found[0]);
    }

    #[test]
    fn simulators_and_labs_are_for_tests() {
        for name in ["ib-sim", "rdma-lab"] {
            let dev = Dep {
                dev: true,
                ..dep(name)
            };
            assert_eq!(check(&tree("ib-sm", dev, &[])), [], "{name}");
            assert_eq!(check(&tree("ib-sm", dep(name), &[])).len(), 1, "{name}");
        }
    }

    #[test]
    fn a_crate_without_a_layer_is_found() {
        let found = check(&tree("new-crate", dep("serde"), &[]));
        assert!(found[0].what.contains("no layer"), "{}", found[0]);
    }
}
