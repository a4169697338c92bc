//! `cargo xtask tidy`: the rules of this repository that no compiler checks.
//!
//! A rule takes the tree (manifests and tracked files) and returns findings; it never stops at the
//! first. Each has tests that feed it a tree with the fault planted.

mod features;
mod fixtures;
mod layers;
mod manifests;
mod naming;
mod pure;
mod source;
mod text;
mod tree;
mod trees;

use std::fmt;

use anyhow::{Result, bail};

use crate::workspace::Workspace;
use tree::Tree;

/// Checks the rules that no compiler checks.
#[derive(clap::Args)]
pub struct Args {
    /// Ask Cargo which packages each library pulls in without its command line, instead of reading
    /// the tree.
    #[arg(long)]
    trees: bool,
    /// List the rules.
    #[arg(long)]
    list: bool,
}

/// Something that breaks a rule.
#[derive(Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file, and the line if there is one.
    pub place: String,
    /// What is wrong there.
    pub what: String,
    /// What to do about it.
    pub remedy: &'static str,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>, remedy: &'static str) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
            remedy,
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}\n    do: {}", self.place, self.what, self.remedy)
    }
}

/// A rule: its name, what it says, and what checks it.
struct Rule {
    name: &'static str,
    says: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule {
        name: "layers",
        says: "crates depend only downwards",
        check: layers::check,
    },
    Rule {
        name: "features",
        says: "what belongs to the command line is only under the feature `cli`, labs never by default",
        check: features::check,
    },
    Rule {
        name: "manifests",
        says: "dependencies, lints and package data come from the workspace; binaries need `cli`",
        check: manifests::check,
    },
    Rule {
        name: "pure",
        says: "pure crates disallow clocks, files, sockets and threads",
        check: pure::check,
    },
    Rule {
        name: "unsafe",
        says: "unsafe code only in the crates that touch the machine, each use with its SAFETY comment",
        check: source::unsafe_code,
    },
    Rule {
        name: "unfinished",
        says: "nothing marked as unfinished, no ignored test without a reason",
        check: source::unfinished,
    },
    Rule {
        name: "size",
        says: "no source file above 900 lines, no blob",
        check: text::size,
    },
    Rule {
        name: "words",
        says: "no path of a machine, no host of a registry",
        check: text::words,
    },
    Rule {
        name: "whitespace",
        says: "no stray whitespace",
        check: text::whitespace,
    },
    Rule {
        name: "naming",
        says: "modules are nouns of the domain; one integration test binary",
        check: naming::check,
    },
    Rule {
        name: "fixtures",
        says: "every fixture is named in a README",
        check: fixtures::check,
    },
];

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    if args.list {
        for rule in RULES {
            println!("{:<12} {}", rule.name, rule.says);
        }
        return Ok(());
    }
    let workspace = Workspace::load()?;
    if args.trees {
        return report(&[("trees", trees::check(&workspace)?)], "library trees");
    }
    let tree = Tree::load(&workspace)?;
    let found: Vec<_> = RULES
        .iter()
        .map(|rule| (rule.name, (rule.check)(&tree)))
        .collect();
    let what = format!("{} rules over {} files", RULES.len(), tree.files.len());
    report(&found, &what)
}

fn report(found: &[(&str, Vec<Finding>)], what: &str) -> Result<()> {
    let mut count = 0;
    for (rule, findings) in found {
        for finding in findings {
            println!("[{rule}] {finding}");
            count += 1;
        }
    }
    if count > 0 {
        bail!("{count} findings");
    }
    println!("tidy: {what}");
    Ok(())
}
