//! What each library pulls in when its command line is off, as Cargo resolves it.

use std::process::Stdio;

use anyhow::{Context, Result, bail};

use super::Finding;
use crate::workspace::{Workspace, cargo};

/// Packages that no library may pull in without its default features: terminals, simulators and
/// labs, and the bindings that make a binary refuse to start where libibverbs is not installed.
const UNWANTED: &[&str] = &[
    "anstream",
    "clap",
    "clap_builder",
    "comfy-table",
    "ib-sim",
    "ibverbs",
    "ibverbs-sys",
    "indicatif",
    "rdma-cli",
    "rdma-lab",
    "rdma-sys",
    "schemars",
    "tracing-subscriber",
];

/// What is preloaded into a foreign program is where that program's log is set up.
const OWN_LOG: (&str, &str) = ("rverbs-preload", "tracing-subscriber");

/// The rule, for every library but the command line's own.
pub fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut found = Vec::new();
    for package in workspace.libraries() {
        let name = package.name.as_str();
        if name == "rdma-cli" {
            continue;
        }
        let output = cargo()
            .args([
                "tree", "--locked", "--edges", "normal", "--prefix", "none", "--format", "{p}",
            ])
            .args(["--no-default-features", "--package", name])
            .stdin(Stdio::null())
            .output()
            .context("cargo could not be started")?;
        if !output.status.success() {
            bail!(
                "cargo tree failed: {}",
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        for unwanted in unwanted(&String::from_utf8_lossy(&output.stdout)) {
            if (name, unwanted) == OWN_LOG {
                continue;
            }
            found.push(Finding::new(
                format!("{name}: cargo tree -p {name} --no-default-features -i {unwanted}"),
                format!("the library pulls in {unwanted}"),
                "make the dependency optional, under the feature `cli`",
            ));
        }
    }
    Ok(found)
}

fn unwanted(tree: &str) -> Vec<&'static str> {
    let packages: Vec<&str> = tree
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    // The first line is the library itself.
    UNWANTED
        .iter()
        .filter(|name| packages.iter().skip(1).any(|package| package == *name))
        .copied()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_crate_in_the_tree_is_found() {
        let tree = "ib-sm v0.1.0 (/x)\nclap v4.6.1\nclap_lex v1.0.0\nclap v4.6.1 (*)\n";
        assert_eq!(unwanted(tree), ["clap"]);
        assert!(unwanted("ib-sim v0.1.0 (/x)\nserde v1.0.0\n").is_empty());
    }
}
