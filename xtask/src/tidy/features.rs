//! Features: what belongs to the command line comes only with `cli`; labs never by default.
//!
//! A tool may have `sim` among its defaults, so that whoever installs it can try it: libraries are
//! used without default features, and the rule `trees` sees that no simulator comes along then.

use std::collections::BTreeSet;

use super::Finding;
use super::layers::turned_on_by;
use super::tree::{Crate, Tree};

/// Packages that a library must not pull in, and the features that may.
const PRESENTATION: &[(&str, &[&str])] = &[
    ("anstream", &["cli"]),
    ("anstyle", &["cli"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("comfy-table", &["cli"]),
    ("indicatif", &["cli"]),
    ("plotters", &["plot"]),
    ("ratatui", &["tui"]),
    ("schemars", &["cli"]),
    ("tracing-subscriber", &["cli"]),
];

/// The crates that are themselves the command line, or that stand in for one: what is preloaded into
/// a foreign program is where that program's log is set up.
const EXEMPT: &[&str] = &["rdma-cli", "rverbs-preload", "xtask", "benches"];

/// Features that must not be on unless asked for.
const NEVER_DEFAULT: &[&str] = &["lab"];

/// The rule.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for member in tree
        .crates
        .iter()
        .filter(|c| !EXEMPT.contains(&c.name.as_str()))
    {
        for dep in member.deps.iter().filter(|dep| !dep.dev) {
            let Some((_, allowed)) = PRESENTATION.iter().find(|(name, _)| *name == dep.name) else {
                continue;
            };
            let stray = turned_on_by(member, &dep.name)
                .into_iter()
                .find(|f| !allowed.contains(f));
            let what = match stray {
                _ if !dep.optional => format!("{} needs {} always", member.name, dep.name),
                Some(feature) => format!("the feature {feature} turns {} on", dep.name),
                None => continue,
            };
            found.push(Finding::new(
                member.manifest(),
                what,
                "make it `optional = true` and turn it on by `dep:NAME` in the feature `cli` only",
            ));
        }
        let on = closure(member, "default");
        for feature in NEVER_DEFAULT
            .iter()
            .filter(|feature| on.contains(**feature))
        {
            found.push(Finding::new(
                member.manifest(),
                format!("the feature {feature} is on by default"),
                "take it out of `default` and of what `default` turns on",
            ));
        }
    }
    found
}

/// A feature and all features of the same crate that it turns on.
fn closure(member: &Crate, feature: &str) -> BTreeSet<String> {
    let mut on = BTreeSet::new();
    let mut queue = vec![feature.to_owned()];
    while let Some(name) = queue.pop() {
        if let Some(items) = member.features.get(&name)
            && on.insert(name)
        {
            queue.extend(items.iter().cloned());
        }
    }
    on
}

#[cfg(test)]
mod tests {
    use super::super::tree::Dep;
    use super::*;

    fn tree(optional: bool, features: &[(&str, &[&str])]) -> Tree {
        let features = features
            .iter()
            .map(|(f, items)| {
                (
                    (*f).to_owned(),
                    items.iter().map(|i| (*i).to_owned()).collect(),
                )
            })
            .collect();
        let deps = vec![Dep {
            name: "clap".into(),
            dev: false,
            optional,
        }];
        let member = Crate {
            name: "mlx-fw".into(),
            deps,
            features,
            ..Crate::default()
        };
        Tree {
            crates: vec![member],
            ..Tree::default()
        }
    }

    #[test]
    fn clap_comes_only_with_cli() {
        assert_eq!(check(&tree(true, &[("cli", &["dep:clap"])])), []);
        assert!(check(&tree(false, &[]))[0].what.contains("always"));
        let found = check(&tree(
            true,
            &[("cli", &["dep:clap"]), ("fast", &["clap/wrap_help"])],
        ));
        assert!(found[0].what.contains("fast"), "{}", found[0]);
    }

    #[test]
    fn a_lab_is_not_on_by_default_even_by_a_detour() {
        let features: &[(&str, &[&str])] = &[
            ("cli", &["dep:clap"]),
            ("default", &["more"]),
            ("more", &["lab"]),
            ("lab", &[]),
        ];
        let found = check(&tree(true, features));
        assert_eq!(found.len(), 1);
        assert!(
            found[0].what.contains("lab is on by default"),
            "{}",
            found[0]
        );
    }
}
