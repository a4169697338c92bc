//! Names: modules are nouns of the domain, and a crate has one integration test binary.

use super::Finding;
use super::tree::Tree;

/// Names that say nothing about what is inside.
const EMPTY_NAMES: &[&str] = &[
    "common", "helper", "helpers", "manager", "misc", "shared", "stuff", "type", "types", "util",
    "utils",
];

/// Integration tests: one binary, and one that runs the goldens of the command line.
const TESTS: &[&str] = &["it", "cli"];

/// The rule.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in tree.files.keys().filter(|path| path.ends_with(".rs")) {
        let bad = path
            .trim_end_matches(".rs")
            .split('/')
            .find(|part| EMPTY_NAMES.contains(part));
        if let Some(name) = bad {
            found.push(Finding::new(
                path,
                format!("a module called {name}"),
                "name it after the thing of the domain that it holds",
            ));
        }
    }
    for member in &tree.crates {
        for test in member
            .tests
            .iter()
            .filter(|test| !TESTS.contains(&test.as_str()))
        {
            found.push(Finding::new(
                format!("{}/tests/{test}.rs", member.dir),
                "an integration test binary of its own",
                "make it a module of tests/it/main.rs: each binary links everything again",
            ));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tree::Crate;
    use super::*;

    #[test]
    fn empty_names_are_found() {
        let tree = Tree::with(&[
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/types/x.rs", ""),
        ]);
        assert_eq!(check(&tree).len(), 2);
        assert_eq!(check(&Tree::with(&[("crates/a/src/node_type.rs", "")])), []);
    }

    #[test]
    fn a_crate_has_one_integration_test_binary() {
        let tests = vec!["it".to_owned(), "cli".to_owned(), "decode".to_owned()];
        let member = Crate {
            dir: "crates/a".into(),
            tests,
            ..Crate::default()
        };
        let found = check(&Tree {
            crates: vec![member],
            ..Tree::default()
        });
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "crates/a/tests/decode.rs");
    }
}
