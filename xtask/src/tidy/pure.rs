//! Pure crates: clippy refuses them clocks, files, sockets and threads, if their clippy.toml says so.

use super::Finding;
use super::tree::Tree;

/// Wholly pure crates.
const PURE: &[&str] = &["rdma-wire", "ib-mad", "ib-sim"];

/// What each must disallow.
const DISALLOWED: &[&str] = &[
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::fs::File::open",
    "std::fs::read",
    "std::fs::write",
    "std::net::UdpSocket::bind",
    "std::os::unix::net::UnixDatagram::bind",
    "std::env::var",
];

const REMEDY: &str = "copy crates/rdma-wire/clippy.toml";

/// The rule.
pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for member in tree
        .crates
        .iter()
        .filter(|member| PURE.contains(&member.name.as_str()))
    {
        let path = format!("{}/clippy.toml", member.dir);
        let Some(text) = tree.text(&path) else {
            found.push(Finding::new(
                path,
                "a pure crate without clippy.toml",
                REMEDY,
            ));
            continue;
        };
        let methods = text
            .split_once("disallowed-methods")
            .map_or("", |(_, rest)| rest);
        for method in DISALLOWED {
            if !methods.contains(&format!("\"{method}\"")) {
                found.push(Finding::new(
                    &path,
                    format!("{method} is not disallowed"),
                    REMEDY,
                ));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::tree::Crate;
    use super::*;

    #[test]
    fn a_pure_crate_disallows_everything_on_the_list() {
        let mut tree = Tree::default();
        tree.crates.push(Crate {
            name: "ib-mad".into(),
            dir: "crates/ib-mad".into(),
            ..Crate::default()
        });
        assert!(check(&tree)[0].what.contains("without clippy.toml"));
        let lines: String = DISALLOWED
            .iter()
            .map(|m| format!("    {{ path = \"{m}\", reason = \"\" }},\n"))
            .collect();
        let text = format!("disallowed-methods = [\n{lines}]\n");
        let short = text.replace("std::env::var", "std::env::vars");
        tree.files
            .insert("crates/ib-mad/clippy.toml".into(), text.into_bytes());
        assert_eq!(check(&tree), []);
        tree.files
            .insert("crates/ib-mad/clippy.toml".into(), short.into_bytes());
        assert!(check(&tree)[0].what.contains("std::env::var is not"));
    }
}
