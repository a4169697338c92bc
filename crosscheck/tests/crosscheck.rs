//! Everything that rverbs-sys declares, against what bindgen makes of the installed headers.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::Path;
use std::process::Command;

use crosscheck::{Pair, constant, layout};

/// Types that newer headers make longer at the end.
const GROWING: &[&str] = &["sizeof ibv_port_attr", "sizeof ibv_qp_ex"];

fn differences<T: PartialEq + Debug>(pairs: &[Pair<T>]) -> Vec<String> {
    let differ = pairs.iter().filter(|pair| !pair.agrees());
    differ
        .map(|pair| format!("{}: {:?}, rdma-sys {:?}", pair.name, pair.ours, pair.theirs))
        .collect()
}

#[test]
fn layouts_agree() {
    let mut pairs = layout::pairs();
    let count = |what: &str| pairs.iter().filter(|p| p.name.starts_with(what)).count();
    let types = count("sizeof ");
    println!("compared {types} types, {} fields", pairs.len() - 2 * types);
    pairs.retain(|pair| !(GROWING.contains(&pair.name) && pair.theirs > pair.ours));
    assert_eq!(differences(&pairs), Vec::<String>::new());
}

#[test]
fn constants_agree() {
    let pairs = constant::pairs();
    println!("compared {} constants", pairs.len());
    assert_eq!(differences(&pairs), Vec::<String>::new());
}

#[test]
fn constants_that_only_c_has_agree() {
    let ours = constant::only_in_c();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut program = String::from(
        "#include <stdio.h>\n#include <infiniband/verbs.h>\n#include <rdma/rdma_cma.h>\nint main(void) {\n",
    );
    for (name, _) in &ours {
        program.push_str(&format!("printf(\"%lld\\n\", (long long)({name}));\n"));
    }
    program.push_str("return 0; }\n");
    let (source, binary) = (folder.join("constants.c"), folder.join("constants"));
    std::fs::write(&source, program).unwrap();
    let cc = Command::new("cc")
        .arg("-o")
        .arg(&binary)
        .arg(&source)
        .output()
        .unwrap();
    assert!(
        cc.status.success(),
        "{}",
        String::from_utf8_lossy(&cc.stderr)
    );
    let output = Command::new(&binary).output().unwrap().stdout;
    let theirs: Vec<i128> = String::from_utf8(output)
        .unwrap()
        .lines()
        .map(|l| l.parse().unwrap())
        .collect();
    assert_eq!(theirs.len(), ours.len());
    println!("compared {} constants", ours.len());
    let differ: Vec<_> = ours
        .iter()
        .zip(&theirs)
        .filter(|(our, their)| our.1 != **their)
        .collect();
    assert!(differ.is_empty(), "{differ:?}");
}

/// What the sources of rverbs-sys declare, by its first words.
fn declared() -> (BTreeSet<String>, BTreeSet<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/rverbs-sys/src/bindings");
    let (mut layouts, mut constants) = (BTreeSet::new(), BTreeSet::new());
    for entry in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        let mut inside = None;
        for line in text.lines() {
            let name = |rest: &str| rest.split([' ', ':']).next().unwrap().to_owned();
            if let Some(rest) = line.strip_prefix("pub const ") {
                constants.insert(name(rest));
            } else if let Some(rest) = line
                .strip_prefix("pub struct ")
                .or_else(|| line.strip_prefix("pub union "))
            {
                layouts.insert(format!("sizeof {}", name(rest)));
                layouts.insert(format!("alignof {}", name(rest)));
                inside = Some(name(rest));
            } else if line == "}" {
                inside = None;
            } else if let (Some(rest), Some(inside)) = (line.strip_prefix("    pub "), &inside) {
                layouts.insert(format!("{inside}.{}", name(rest)));
            }
        }
    }
    (layouts, constants)
}

/// rdma-sys keeps the fields of these to itself.
const PRIVATE: &[&str] = &["ibv_ops_wr."];

#[test]
fn nothing_is_left_out() {
    let (mut layouts, mut constants) = declared();
    layouts.retain(|name| !PRIVATE.iter().any(|private| name.starts_with(private)));
    for pair in layout::pairs() {
        layouts.remove(pair.name);
    }
    assert!(layouts.is_empty(), "not compared: {layouts:?}");
    for pair in constant::pairs() {
        constants.remove(pair.name);
    }
    for (name, _) in constant::only_in_c() {
        constants.remove(name);
    }
    assert!(constants.is_empty(), "not compared: {constants:?}");
}
