//! Rules about every file: its size, the words it may not hold, and its whitespace.

use super::Finding;
use super::tree::Tree;

/// The most lines of a source file.
const MOST_LINES: usize = 900;

/// The largest file that is not text.
const MOST_BYTES: usize = 64 * 1024;

/// The rule `size`.
pub fn size(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts(".rs") {
        let lines = text.lines().count();
        if lines > MOST_LINES {
            found.push(Finding::new(
                format!("{path}:{MOST_LINES}"),
                format!("{lines} lines"),
                "split it: one file is one thing",
            ));
        }
    }
    for (path, content) in &tree.files {
        let text = !content.contains(&0) && std::str::from_utf8(content).is_ok();
        if !text && content.len() > MOST_BYTES {
            found.push(Finding::new(
                path,
                format!("{} bytes that are not text", content.len()),
                "let a builder or a test make it, or keep it outside of the repository",
            ));
        }
    }
    found
}

/// Words that say where something was made instead of what it is. In halves, so that this file
/// does not break its own rule.
const WORDS: &[(&str, &str)] = &[
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("crates", ".io"), "the host of a registry"),
    (concat!("deb.", "debian.org"), "the host of a registry"),
    (concat!("pypi", ".org"), "the host of a registry"),
    (concat!("npmjs", ".org"), "the host of a registry"),
    (concat!("golang", ".org"), "the host of a registry"),
];

/// The rule `words`.
pub fn words(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, content) in &tree.files {
        // A lock file names the registry itself.
        if path.ends_with("Cargo.lock") {
            continue;
        }
        let Ok(text) = std::str::from_utf8(content) else {
            continue;
        };
        for (number, line) in (1..).zip(text.lines()) {
            for (word, what) in WORDS.iter().filter(|(word, _)| line.contains(word)) {
                found.push(Finding::new(
                    format!("{path}:{number}"),
                    format!("{what}: {word}"),
                    "name it relative to the repository, or leave it out",
                ));
            }
        }
    }
    found
}

/// Files that are kept byte for byte: goldens, fixtures, corpora, licence texts.
fn verbatim(path: &str) -> bool {
    let below = |dir: &str| path.contains(&format!("/{dir}/"));
    let code = path.ends_with(".rs") || path.ends_with("README.md");
    path.starts_with("LICENSE")
        || (!code && (below("data") || below("cmd") || below("snapshots") || below("corpus")))
}

/// The rule `whitespace`.
pub fn whitespace(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, content) in tree.files.iter().filter(|(path, _)| !verbatim(path)) {
        let Ok(text) = std::str::from_utf8(content) else {
            continue;
        };
        for (number, line) in (1..).zip(text.split('\n')) {
            let what = if line.ends_with('\r') {
                "a carriage return at the end of the line"
            } else if line.ends_with([' ', '\t']) {
                "whitespace at the end of the line"
            } else if line.contains('\t') && path.ends_with(".toml") {
                "a tab"
            } else {
                continue;
            };
            found.push(Finding::new(format!("{path}:{number}"), what, "remove it"));
        }
        if !text.is_empty() && !text.ends_with('\n') {
            found.push(Finding::new(path, "no newline at the end", "add one"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_source_and_a_blob_are_found() {
        let long = "\n".repeat(MOST_LINES + 1);
        let found = size(&Tree::with(&[("a.rs", &long), ("a.md", &long)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].what, "901 lines");
        let mut tree = Tree::default();
        tree.files.insert("a.bin".into(), vec![0; MOST_BYTES]);
        assert_eq!(size(&tree), []);
        tree.files.insert("a.bin".into(), vec![0; MOST_BYTES + 1]);
        assert_eq!(size(&tree).len(), 1);
    }

    #[test]
    fn a_path_of_a_machine_is_found() {
        let text = format!("fine\nsee {}\n", concat!("/wo", "rk/x"));
        let found = words(&Tree::with(&[("README.md", &text), ("Cargo.lock", &text)]));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].place, "README.md:2");
    }

    #[test]
    fn stray_whitespace_is_found_but_not_in_goldens() {
        for text in ["a \n", "a\r\n", "a"] {
            assert_eq!(
                whitespace(&Tree::with(&[("a.md", text)])).len(),
                1,
                "{text:?}"
            );
            assert_eq!(
                whitespace(&Tree::with(&[("crates/x/tests/cmd/a.trycmd", text)])),
                []
            );
        }
        assert_eq!(whitespace(&Tree::with(&[("a.toml", "a\tb\n")])).len(), 1);
        assert_eq!(
            whitespace(&Tree::with(&[("a.rs", "a\n\nb\n"), ("b.rs", "")])),
            []
        );
    }
}
