//! Rules about Rust code: where `unsafe` may stand, and that nothing is left unfinished.

use super::Finding;
use super::tree::Tree;

/// Where unsafe code may stand: the crates that touch the machine.
const UNSAFE: &[&str] = &[
    "crates/mlx-dev/src/",
    "crates/rdma-host/src/",
    "crates/rverbs-preload/",
    "crates/rverbs-sys/",
    "crates/rverbs/",
    // What is posted with the crate ibverbs is posted unsafely.
    "crosscheck/ibverbs/",
];

/// How far above an `unsafe` its reason may begin.
const REACH: usize = 12;

/// The rule `unsafe`.
pub fn unsafe_code(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    for (path, text) in tree.texts(".rs") {
        let code = code_only(text);
        let lines: Vec<&str> = text.lines().collect();
        for (at, line) in code
            .lines()
            .enumerate()
            .filter(|(_, line)| has_word(line, "unsafe"))
        {
            let place = format!("{path}:{}", at + 1);
            if !UNSAFE.iter().any(|allowed| path.starts_with(allowed)) {
                found.push(Finding::new(
                    place,
                    "unsafe code in a file that may not have it",
                    "do it without, or move it into a crate that fences the machine",
                ));
                continue;
            }
            // In tests and examples clippy judges, which knows a reason that is given for a whole file.
            if !path.contains("/src/") || !needs_reason(line) {
                continue;
            }
            let above = lines.get(at.saturating_sub(REACH)..=at).unwrap_or_default();
            let reasoned = above
                .iter()
                .any(|l| l.contains("SAFETY:") || l.contains("# Safety"));
            if !reasoned {
                found.push(Finding::new(
                    place,
                    "unsafe without a reason",
                    "write `// SAFETY:` above it: which invariant, and who keeps it",
                ));
            }
        }
    }
    found
}

/// Whether the line opens an unsafe block or implements an unsafe trait, for which we vouch. An unsafe
/// function, or a pointer to one, leaves that to its caller; its `# Safety` is clippy's business.
fn needs_reason(line: &str) -> bool {
    line.split("unsafe")
        .skip(1)
        .map(str::trim_start)
        .any(|after| after.is_empty() || after.starts_with('{') || after.starts_with("impl"))
}

/// The rule `unfinished`.
pub fn unfinished(tree: &Tree) -> Vec<Finding> {
    let mut found = Vec::new();
    // In two halves, so that this file does not break its own rule.
    let marks = [
        concat!("FIX", "ME"),
        concat!("TO", "DO:"),
        concat!("XX", "X:"),
    ];
    for (path, text) in tree
        .files
        .keys()
        .filter_map(|p| Some((p.as_str(), tree.text(p)?)))
    {
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(mark) = marks.iter().find(|mark| line.contains(**mark)) {
                found.push(Finding::new(
                    format!("{path}:{number}"),
                    format!("a mark of unfinished work: {mark}"),
                    "finish it, or say in a sentence what is not done and why",
                ));
            }
        }
    }
    for (path, text) in tree.texts(".rs") {
        for (number, line) in (1..).zip(code_only(text).lines()) {
            let place = || format!("{path}:{number}");
            for name in ["todo!", "unimplemented!", "dbg!"] {
                if line.split(name).count() > 1 && has_word(line, name.trim_end_matches('!')) {
                    found.push(Finding::new(place(), name, "write what belongs there"));
                }
            }
            if line.contains("#[ignore]") {
                found.push(Finding::new(
                    place(),
                    "an ignored test without a reason",
                    "write `#[ignore = \"why\"]`, or let it run and skip itself",
                ));
            }
        }
    }
    found
}

/// Whether a word stands in a line by itself.
fn has_word(line: &str, word: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|l| l.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|l| l.chars().next());
        !before.is_some_and(part) && !after.is_some_and(part)
    })
}

/// Rust source with comments and the contents of strings blanked; lines stay where they are.
pub fn code_only(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let chars: Vec<char> = text.chars().collect();
    let at = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let mut i = 0;
    let blank = |out: &mut String, c: char| out.push(if c == '\n' { '\n' } else { ' ' });
    while i < chars.len() {
        let c = at(i);
        let ident = i > 0 && (at(i - 1).is_alphanumeric() || at(i - 1) == '_');
        if c == '/' && at(i + 1) == '/' {
            while i < chars.len() && at(i) != '\n' {
                out.push(' ');
                i += 1;
            }
        } else if c == '/' && at(i + 1) == '*' {
            let mut depth = 0;
            while i < chars.len() {
                let (this, next) = (at(i), at(i + 1));
                let step = if this == '/' && next == '*' {
                    depth += 1;
                    2
                } else if this == '*' && next == '/' {
                    depth -= 1;
                    2
                } else {
                    1
                };
                for k in i..i + step {
                    blank(&mut out, at(k));
                }
                i += step;
                if depth == 0 {
                    break;
                }
            }
        } else if c == 'r' && !ident && raw_hashes(&chars, i + 1).is_some()
            || c == 'r' && at(i.wrapping_sub(1)) == 'b' && raw_hashes(&chars, i + 1).is_some()
        {
            let hashes = raw_hashes(&chars, i + 1).unwrap_or(0);
            out.push('r');
            i += 1;
            for _ in 0..=hashes {
                out.push(' ');
                i += 1;
            }
            while i < chars.len() {
                let end = at(i) == '"' && (1..=hashes).all(|k| at(i + k) == '#');
                blank(&mut out, at(i));
                i += 1;
                if end {
                    for _ in 0..hashes {
                        out.push(' ');
                        i += 1;
                    }
                    break;
                }
            }
        } else if c == '"' {
            out.push('"');
            i += 1;
            while i < chars.len() && at(i) != '"' {
                let step = if at(i) == '\\' { 2 } else { 1 };
                for k in i..(i + step).min(chars.len()) {
                    blank(&mut out, at(k));
                }
                i += step;
            }
            out.push('"');
            i += 1;
        } else if c == '\'' && (at(i + 1) == '\\' || at(i + 2) == '\'') {
            // A character, not a lifetime.
            out.push(' ');
            i += 1;
            while i < chars.len() && at(i) != '\'' {
                let step = if at(i) == '\\' { 2 } else { 1 };
                for k in i..(i + step).min(chars.len()) {
                    blank(&mut out, at(k));
                }
                i += step;
            }
            out.push(' ');
            i += 1;
        } else {
            out.push(c);
            i += 1;
        }
    }
    out
}

/// How many hashes begin a raw string here, if one begins.
fn raw_hashes(chars: &[char], from: usize) -> Option<usize> {
    let hashes = chars.get(from..)?.iter().take_while(|c| **c == '#').count();
    (chars.get(from + hashes) == Some(&'"')).then_some(hashes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let text =
            "a // unsafe\n/* unsafe /* x */ \n unsafe */ b \"un\\\"safe\" 'x' r#\"unsafe\"# c<'a>";
        let code = code_only(text);
        assert!(!code.contains("unsafe"), "{code}");
        assert_eq!(code.lines().count(), text.lines().count());
        for kept in ["a ", " b ", " c<'a>"] {
            assert!(code.contains(kept), "{code}");
        }
    }

    #[test]
    fn unsafe_stands_only_where_it_may_and_with_a_reason() {
        let body = "fn f() { unsafe { g() } }";
        let found = unsafe_code(&Tree::with(&[("crates/ib-mad/src/lib.rs", body)]));
        assert!(found[0].what.contains("may not have it"));
        assert_eq!(found[0].place, "crates/ib-mad/src/lib.rs:1");
        let found = unsafe_code(&Tree::with(&[("crates/rdma-host/src/lib.rs", body)]));
        assert!(found[0].what.contains("without a reason"));
        let reasoned = format!("// SAFETY: g has no preconditions.\n{body}");
        assert_eq!(
            unsafe_code(&Tree::with(&[("crates/rdma-host/src/lib.rs", &reasoned)])),
            []
        );
        for left_to_the_caller in ["unsafe fn f() {}", "type F = unsafe extern \"C\" fn(u8);"] {
            assert_eq!(
                unsafe_code(&Tree::with(&[(
                    "crates/rverbs/src/lib.rs",
                    left_to_the_caller
                )])),
                []
            );
        }
        let lint = "#![forbid(unsafe_code)] // unsafe";
        assert_eq!(
            unsafe_code(&Tree::with(&[("crates/ib-mad/src/lib.rs", lint)])),
            []
        );
    }

    #[test]
    fn unfinished_work_is_found() {
        let cases = [
            ("a.rs", "fn f() { todo!() }"),
            ("a.rs", "#[test]\n#[ignore]\nfn f() {}"),
            ("a.md", concat!("FIX", "ME later")),
        ];
        for (path, text) in cases {
            assert_eq!(unfinished(&Tree::with(&[(path, text)])).len(), 1, "{text}");
        }
        let fine = "// todo! is a macro\n#[ignore = \"hardware: mlx5\"]\nfn f() { \"todo!\" }";
        assert_eq!(unfinished(&Tree::with(&[("a.rs", fine)])), []);
    }
}
