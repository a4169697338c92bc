//! What the rules look at: crates as their manifests declare them, and files as git knows them.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Package};

use crate::workspace::Workspace;

/// Manifests and files.
#[derive(Default)]
pub struct Tree {
    /// The members of the workspace.
    pub crates: Vec<Crate>,
    /// Path relative to the root, and content.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// A crate as its manifest declares it.
#[derive(Default)]
pub struct Crate {
    /// Its name.
    pub name: String,
    /// The folder, relative to the root.
    pub dir: String,
    /// Direct dependencies of every kind.
    pub deps: Vec<Dep>,
    /// Features and what each turns on.
    pub features: BTreeMap<String, Vec<String>>,
    /// Binaries, with the features that each needs.
    pub bins: Vec<(String, Vec<String>)>,
    /// Integration tests by name.
    pub tests: Vec<String>,
    /// Whether it says what it is.
    pub described: bool,
    /// Whether it names its licence.
    pub licensed: bool,
}

/// A direct dependency.
pub struct Dep {
    /// The package.
    pub name: String,
    /// Whether only tests, benches and examples use it.
    pub dev: bool,
    /// Whether a feature has to turn it on.
    pub optional: bool,
}

impl Tree {
    /// Reads the workspace: every file that git tracks or would track.
    pub fn load(workspace: &Workspace) -> Result<Self> {
        let root = &workspace.root;
        let output = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("git could not be started")?;
        if !output.status.success() {
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            bail!("git cannot list the files: {}", error.trim());
        }
        let mut files = BTreeMap::new();
        for name in String::from_utf8_lossy(&output.stdout).split('\0') {
            let path = root.join(name);
            // A tracked file may have been deleted and not yet committed.
            if !name.is_empty() && path.is_file() {
                let content = fs::read(&path).with_context(|| format!("cannot read {name}"))?;
                files.insert(name.to_owned(), content);
            }
        }
        let root = root.to_string_lossy().into_owned();
        let crates = workspace
            .members()
            .into_iter()
            .map(|p| Crate::of(p, &root))
            .collect();
        Ok(Self { crates, files })
    }

    /// The text files whose name ends so, by path.
    pub fn texts<'a>(&'a self, end: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.files.iter().filter_map(move |(path, content)| {
            let text = std::str::from_utf8(content).ok()?;
            path.ends_with(end).then_some((path.as_str(), text))
        })
    }

    /// The text of a file.
    pub fn text(&self, path: &str) -> Option<&str> {
        std::str::from_utf8(self.files.get(path)?).ok()
    }

    #[cfg(test)]
    pub fn with(files: &[(&str, &str)]) -> Self {
        let files = files
            .iter()
            .map(|(p, t)| ((*p).to_owned(), t.as_bytes().to_vec()))
            .collect();
        Self {
            crates: Vec::new(),
            files,
        }
    }
}

impl Crate {
    fn of(package: &Package, root: &str) -> Self {
        let dir = package
            .manifest_path
            .parent()
            .map(|dir| dir.as_str().to_owned());
        let dir = dir.unwrap_or_default();
        let dir = dir
            .strip_prefix(root)
            .unwrap_or(&dir)
            .trim_start_matches('/')
            .to_owned();
        let deps = package.dependencies.iter().map(|dep| Dep {
            name: dep.name.clone(),
            dev: dep.kind == DependencyKind::Development,
            optional: dep.optional,
        });
        let bins = package.targets.iter().filter(|target| target.is_bin());
        let tests = package.targets.iter().filter(|target| target.is_test());
        Self {
            name: package.name.to_string(),
            dir,
            deps: deps.collect(),
            features: package.features.clone(),
            bins: bins
                .map(|t| (t.name.clone(), t.required_features.clone()))
                .collect(),
            tests: tests.map(|target| target.name.clone()).collect(),
            described: package.description.is_some(),
            licensed: package.license.is_some(),
        }
    }

    /// Where its manifest is.
    pub fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }
}
