//! `cargo xtask codegen`: the files that are made from the tools' own definitions.
//!
//! Each tool writes its schemas, its reference and its list of verbs by a hidden verb, `generate`,
//! so that xtask needs no tool to be built before it can run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::{Build, Workspace, shown};

/// Where the schemas of the reports are, relative to the root.
const SCHEMAS: &str = "docs/schemas";
/// Where the command reference is.
const REFERENCE: &str = "docs/book/src/reference";
/// The list of commands stands between these lines of README.
const BEGIN: &str = "<!-- commands -->";
const END: &str = "<!-- /commands -->";

/// Writes the JSON schemas, the command reference and README's list of commands.
#[derive(clap::Args)]
pub struct Args {
    /// Write nothing; fail when a file is not what it would be.
    #[arg(long)]
    check: bool,
    /// Build the tools together with the tests: quick where those are built.
    #[arg(long)]
    with_tests: bool,
}

/// What one tool has to say, in a folder that it wrote.
pub struct Generated {
    /// `man`, `completions`, `schemas`, `reference` and `commands.tsv`.
    pub folder: PathBuf,
}

/// Runs the hidden verb of every tool in `bin`, each into a folder of its own below `into`.
pub fn generate(workspace: &Workspace, bin: &Path, into: &Path) -> Result<Vec<Generated>> {
    // What an earlier run left must not count.
    if into.exists() {
        fs::remove_dir_all(into).with_context(|| format!("cannot empty {}", into.display()))?;
    }
    let mut all = Vec::new();
    for tool in workspace.tools() {
        let folder = into.join(&tool.name);
        fs::create_dir_all(&folder)?;
        let mut command = Command::new(bin.join(&tool.name));
        command.arg("generate").arg(&folder).stdin(Stdio::null());
        let status = command
            .status()
            .with_context(|| format!("cannot run {}", tool.name))?;
        if !status.success() {
            bail!(
                "{} of {} cannot describe itself: {}",
                tool.name,
                tool.package,
                shown(&command)
            );
        }
        all.push(Generated { folder });
    }
    Ok(all)
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let workspace = Workspace::load()?;
    let bin = workspace.build_tools(Build::dev(args.with_tests))?;
    let generated = generate(&workspace, &bin, &workspace.target.join("generated"))?;
    let wanted = wanted(&workspace.root, &generated)?;
    let there = there(&workspace.root)?;

    let differing = differing(&wanted, &there);
    if args.check {
        for (path, how) in &differing {
            println!("{path}: {how}");
        }
        if !differing.is_empty() {
            bail!(
                "{} generated files are not up to date: run `cargo xtask codegen`",
                differing.len()
            );
        }
        println!("codegen: {} files are up to date", wanted.len());
        return Ok(());
    }
    for (path, how) in &differing {
        let full = workspace.root.join(path);
        match wanted.get(*path) {
            Some(text) => {
                fs::create_dir_all(full.parent().unwrap_or(&workspace.root))?;
                fs::write(&full, text).with_context(|| format!("cannot write {path}"))?;
                println!("{path}: written ({how})");
            }
            None => {
                fs::remove_file(&full).with_context(|| format!("cannot remove {path}"))?;
                println!("{path}: removed ({how})");
            }
        }
    }
    println!(
        "codegen: {} files, {} changed",
        wanted.len(),
        differing.len()
    );
    Ok(())
}

/// Every generated file with what it should hold.
fn wanted(root: &Path, generated: &[Generated]) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    let mut commands = Vec::new();
    for tool in generated {
        for (kind, place) in [("schemas", SCHEMAS), ("reference", REFERENCE)] {
            for (name, text) in texts(&tool.folder.join(kind))? {
                if files.insert(format!("{place}/{name}"), text).is_some() {
                    bail!("two tools generate {place}/{name}: a schema belongs to one tool");
                }
            }
        }
        let list = tool.folder.join("commands.tsv");
        let list = fs::read_to_string(&list).with_context(|| format!("no {}", list.display()))?;
        commands.extend(list.lines().filter_map(|line| {
            let (name, about) = line.split_once('\t')?;
            Some((name.to_owned(), about.to_owned()))
        }));
    }
    let readme = root.join("README.md");
    if let Ok(text) = fs::read_to_string(&readme) {
        files.insert("README.md".into(), with_commands(&text, &commands)?);
    }
    Ok(files)
}

/// Every generated file as it is in the tree.
fn there(root: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for place in [SCHEMAS, REFERENCE] {
        for (name, text) in texts(&root.join(place))? {
            // An index by hand may stand beside what is generated.
            if name != "README.md" {
                files.insert(format!("{place}/{name}"), text);
            }
        }
    }
    if let Ok(text) = fs::read_to_string(root.join("README.md")) {
        files.insert("README.md".into(), text);
    }
    Ok(files)
}

/// The files of a folder, which need not exist.
fn texts(folder: &Path) -> Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    if !folder.exists() {
        return Ok(files);
    }
    for entry in
        fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))?
    {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let path = entry.path();
            let text = fs::read_to_string(&path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            files.insert(entry.file_name().to_string_lossy().into_owned(), text);
        }
    }
    Ok(files)
}

/// The files that differ, and how.
fn differing<'a>(
    wanted: &'a BTreeMap<String, String>,
    there: &'a BTreeMap<String, String>,
) -> Vec<(&'a String, &'static str)> {
    let changed = wanted
        .iter()
        .filter_map(|(path, text)| match there.get(path) {
            None => Some((path, "missing")),
            Some(old) if old != text => Some((path, "out of date")),
            Some(_) => None,
        });
    let stale = there.keys().filter(|path| !wanted.contains_key(*path));
    changed
        .chain(stale.map(|path| (path, "no longer generated")))
        .collect()
}

/// README with its list of commands made anew.
fn with_commands(text: &str, commands: &[(String, String)]) -> Result<String> {
    let Some((before, rest)) = text.split_once(BEGIN) else {
        bail!(
            "README.md has no line `{BEGIN}`: the list of commands stands between it and `{END}`"
        );
    };
    let Some((_, after)) = rest.split_once(END) else {
        bail!("README.md has no line `{END}` after `{BEGIN}`");
    };
    let mut list = String::from("\n\n| command | does |\n|---|---|\n");
    for (name, about) in commands {
        let about = about.replace('|', "\\|");
        list.push_str(&format!("| `{name}` | {about} |\n"));
    }
    Ok(format!("{before}{BEGIN}{list}\n{END}{after}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(list: &[(&str, &str)]) -> BTreeMap<String, String> {
        list.iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect()
    }

    #[test]
    fn a_missing_a_changed_and_a_stale_file_differ() {
        let wanted = files(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let there = files(&[("b", "2"), ("c", "old"), ("d", "4")]);
        let found = differing(&wanted, &there);
        let found: Vec<(&str, &str)> = found.iter().map(|(p, how)| (p.as_str(), *how)).collect();
        assert_eq!(
            found,
            [
                ("a", "missing"),
                ("c", "out of date"),
                ("d", "no longer generated")
            ]
        );
        assert!(differing(&wanted, &wanted).is_empty());
    }

    #[test]
    fn the_list_is_replaced_between_its_marks_and_again_without_change() {
        let text = format!("# X\n{BEGIN}\nold\n{END}\nmore\n");
        let commands = [("mlx-fw query".to_owned(), "Says a|b".to_owned())];
        let once = with_commands(&text, &commands).unwrap();
        assert!(once.contains("| `mlx-fw query` | Says a\\|b |"), "{once}");
        assert!(!once.contains("old") && once.ends_with("more\n"), "{once}");
        assert_eq!(with_commands(&once, &commands).unwrap(), once);
        assert!(with_commands("# X\n", &commands).is_err());
    }
}
