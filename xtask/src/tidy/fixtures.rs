//! Fixtures: each file under a `tests/data` is named in its README with where it comes from.

use super::Finding;
use super::tree::Tree;

/// The rule.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for path in tree.files.keys() {
        let Some((before, inside)) = path.split_once("/tests/data/") else {
            continue;
        };
        if inside == "README.md" {
            continue;
        }
        let readme = format!("{before}/tests/data/README.md");
        let Some(text) = tree.text(&readme) else {
            found.push(Finding::new(
                path,
                format!("{readme} does not exist"),
                "write one: where each fixture comes from, and the command that makes it",
            ));
            continue;
        };
        if !names(text, inside) {
            found.push(Finding::new(
                path,
                format!("{readme} does not name it"),
                "say there where it comes from, and the command that makes it",
            ));
        }
    }
    found
}

/// Whether a text names a file, by its name or by a folder that it is in (`folder/`).
fn names(text: &str, inside: &str) -> bool {
    let mut parts: Vec<&str> = inside.split('/').collect();
    let file = parts.pop().unwrap_or(inside);
    text.contains(file)
        || parts
            .iter()
            .any(|folder| text.contains(&format!("{folder}/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixture_is_named() {
        let at = "crates/a/tests/data";
        let (file, deep) = (format!("{at}/x.bin"), format!("{at}/trees/y.net"));
        let readme = format!("{at}/README.md");
        let tree = |text| Tree::with(&[(&file, ""), (&deep, ""), (&readme, text)]);
        assert_eq!(
            check(&tree("- `x.bin`: made by hand\n- `trees/`: generated")),
            []
        );
        assert_eq!(check(&tree("- `trees/`: generated")).len(), 1);
        let without = Tree::with(&[(&file, "")]);
        assert!(check(&without)[0].what.contains("does not exist"));
    }
}
