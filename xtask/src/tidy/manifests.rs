//! What every manifest has in common.

use super::Finding;
use super::tree::Tree;

/// The rule.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for member in &tree.crates {
        let manifest = member.manifest();
        if !member.described {
            found.push(Finding::new(
                &manifest,
                "no description",
                "say in one line what it is for",
            ));
        }
        if !member.licensed {
            found.push(Finding::new(
                &manifest,
                "no licence",
                "write `license.workspace = true`",
            ));
        }
        if member.name == "xtask" {
            continue;
        }
        for (bin, needs) in &member.bins {
            if !needs.iter().any(|feature| feature == "cli") {
                found.push(Finding::new(
                    &manifest,
                    format!("the binary {bin} does not need the feature `cli`"),
                    "write `required-features = [\"cli\"]` in its [[bin]]",
                ));
            }
        }
        if let Some(text) = tree.text(&manifest) {
            found.extend(dependencies(&manifest, text));
            if !text.contains("[lints]\nworkspace = true") {
                found.push(Finding::new(
                    &manifest,
                    "the lints are not the workspace's",
                    "end the manifest with `[lints]` and `workspace = true`",
                ));
            }
        }
    }
    found
}

/// Every dependency comes from the workspace's table.
fn dependencies(manifest: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut section = "";
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let place = || format!("{manifest}:{number}");
        if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
            section = name;
            if section.contains("dependencies.") {
                found.push(Finding::new(
                    place(),
                    format!("[{section}] is a table of its own"),
                    "write it in one line: `name = { workspace = true, … }`",
                ));
            }
            continue;
        }
        let declares = section.ends_with("dependencies") && line.contains('=');
        if declares && !line.starts_with('#') && !from_workspace(line) {
            let name = line.split(['=', '.']).next().unwrap_or_default().trim();
            found.push(Finding::new(
                place(),
                format!("{name} is not taken from [workspace.dependencies]"),
                "declare it there, and write `workspace = true` here",
            ));
        }
    }
    found
}

fn from_workspace(line: &str) -> bool {
    let packed: String = line.chars().filter(|c| !c.is_whitespace()).collect();
    packed.contains("workspace=true")
}

#[cfg(test)]
mod tests {
    use super::super::tree::Crate;
    use super::*;

    fn tree(text: &str, needs: &[&str]) -> Tree {
        let needs = needs.iter().map(|f| (*f).to_owned()).collect();
        let member = Crate {
            name: "mlx-fw".into(),
            dir: "crates/mlx-fw".into(),
            described: true,
            licensed: true,
            bins: vec![("mlx-fw".into(), needs)],
            ..Crate::default()
        };
        let mut tree = Tree::with(&[("crates/mlx-fw/Cargo.toml", text)]);
        tree.crates.push(member);
        tree
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    #[test]
    fn a_dependency_comes_from_the_workspace() {
        let good =
            "[dependencies]\na.workspace = true\nb = { workspace = true, optional = true }\n";
        assert_eq!(check(&tree(&format!("{good}{LINTS}"), &["cli"])), []);
        let bad = "[package]\nname = \"x\"\n[dev-dependencies]\nc = \"1\"\n";
        let found = check(&tree(&format!("{bad}{LINTS}"), &["cli"]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/mlx-fw/Cargo.toml:4");
        let path = "[dependencies.rdma-wire]\npath = \"../rdma-wire\"\n";
        assert!(!check(&tree(&format!("{path}{LINTS}"), &["cli"])).is_empty());
    }

    #[test]
    fn a_binary_needs_cli_and_the_lints_are_common() {
        let found = check(&tree("", &[]));
        let what: Vec<&str> = found.iter().map(|f| f.what.as_str()).collect();
        assert_eq!(
            what,
            [
                "the binary mlx-fw does not need the feature `cli`",
                "the lints are not the workspace's"
            ]
        );
    }

    #[test]
    fn a_crate_says_what_it_is() {
        let mut tree = tree(LINTS, &["cli"]);
        tree.crates[0].described = false;
        tree.crates[0].licensed = false;
        assert_eq!(check(&tree).len(), 2);
    }
}
