//! Where this workspace is, what Cargo says about it, and how its programs are started.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use cargo_metadata::{Metadata, MetadataCommand, Package, TargetKind};

/// The workspace as Cargo sees it.
pub struct Workspace {
    /// The folder with the root manifest.
    pub root: PathBuf,
    /// Where Cargo builds; it also holds `ci/` (logs), `tools/` and `dist/`.
    pub target: PathBuf,
    /// The members and their targets, without the dependency graph.
    pub metadata: Metadata,
}

/// The folder with the root manifest.
///
/// `cargo run` tells where the manifest of xtask is; the value from the build serves a binary that
/// is started by hand.
pub fn root() -> PathBuf {
    let manifest = env::var_os("CARGO_MANIFEST_DIR")
        .map(PathBuf::from)
        .filter(|path| path.ends_with("xtask"))
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")));
    manifest.parent().map(Path::to_path_buf).unwrap_or(manifest)
}

/// Cargo itself: the one that started us, so that the toolchain is the same.
pub fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// This very program.
///
/// A step of `ci` may rebuild xtask while it runs, which unlinks the file we were started from:
/// the kernel's own link to it stays good, a path would not.
pub fn xtask() -> Command {
    let mut command = Command::new("/proc/self/exe");
    command.current_dir(root());
    command
}

impl Workspace {
    /// Asks Cargo, without the network.
    pub fn load() -> Result<Self> {
        let root = root();
        let metadata = MetadataCommand::new()
            .manifest_path(root.join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("cargo metadata failed")?;
        Ok(Self {
            root,
            target: metadata.target_directory.clone().into(),
            metadata,
        })
    }

    /// The members, sorted by name.
    pub fn members(&self) -> Vec<&Package> {
        let mut members = self.metadata.workspace_packages();
        members.sort_by(|a, b| a.name.cmp(&b.name));
        members
    }

    /// The members that have a library.
    pub fn libraries(&self) -> Vec<&Package> {
        let library = |package: &&Package| {
            package.targets.iter().any(|target| {
                target.kind.iter().any(|kind| {
                    matches!(
                        kind,
                        TargetKind::Lib | TargetKind::RLib | TargetKind::CDyLib
                    )
                })
            })
        };
        self.members().into_iter().filter(library).collect()
    }

    /// The tools that people run: the binaries that need the feature `cli`, with their crates.
    pub fn tools(&self) -> Vec<Tool> {
        let mut tools = Vec::new();
        for package in self.members() {
            for target in &package.targets {
                if target.is_bin() && target.required_features.iter().any(|f| f == "cli") {
                    tools.push(Tool {
                        name: target.name.clone(),
                        package: package.name.to_string(),
                    });
                }
            }
        }
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        tools
    }

    /// Whether any member has a bench.
    pub fn has_benches(&self) -> bool {
        self.members()
            .iter()
            .any(|package| package.targets.iter().any(|target| target.is_bench()))
    }

    /// Builds every tool, and returns the folder with the binaries.
    pub fn build_tools(&self, build: Build) -> Result<PathBuf> {
        let tools = self.tools();
        if tools.is_empty() {
            bail!("the workspace has no tool yet: no binary has `required-features = [\"cli\"]`");
        }
        let mut command = cargo();
        command.args(["build", "--quiet", "--workspace", "--all-features"]);
        match build {
            Build::WithTests => {
                command.args(["--lib", "--bins", "--tests", "--examples"]);
            }
            Build::Alone | Build::Release => {
                for tool in &tools {
                    command.args(["--bin", &tool.name]);
                }
            }
        }
        let release = matches!(build, Build::Release);
        if release {
            command.arg("--release");
        }
        let status = command
            .stdin(Stdio::null())
            .status()
            .context("cargo could not be started")?;
        if !status.success() {
            bail!("the tools do not build: {}", shown(&command));
        }
        Ok(self.target.join(if release { "release" } else { "debug" }))
    }
}

/// How the tools are built.
#[derive(Clone, Copy)]
pub enum Build {
    /// For development, and nothing else with them: the quickest from nothing.
    Alone,
    /// As the tests are. What tests depend on can turn on more features of what the tools depend
    /// on, so that both builds share little; after the tests, this one has nothing to do.
    WithTests,
    /// Optimised.
    Release,
}

impl Build {
    /// For development, with the tests or not.
    pub fn dev(with_tests: bool) -> Self {
        if with_tests {
            Self::WithTests
        } else {
            Self::Alone
        }
    }
}

/// A program that people run.
pub struct Tool {
    /// The name of the binary.
    pub name: String,
    /// The crate that it belongs to.
    pub package: String,
}

/// A command as one would type it, for messages.
pub fn shown(command: &Command) -> String {
    let mut words: Vec<String> = command
        .get_envs()
        .filter_map(|(key, value)| Some(format!("{}={}", quoted(key), quoted(value?))))
        .collect();
    let program = command.get_program();
    let name = Path::new(program).file_name().unwrap_or(program);
    if program == OsStr::new("/proc/self/exe") {
        words.push("cargo xtask".into());
    } else if name == OsStr::new("cargo") {
        words.push("cargo".into());
    } else {
        words.push(quoted(program));
    }
    words.extend(command.get_args().map(quoted));
    words.join(" ")
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_shown_as_one_would_type_it() {
        let mut command = Command::new("/some/where/cargo");
        command
            .args(["test", "--", "a b", "it's", ""])
            .env("X", "-D warnings");
        assert_eq!(
            shown(&command),
            r"X='-D warnings' cargo test -- 'a b' 'it'\''s' ''"
        );
    }

    #[test]
    fn the_root_holds_the_workspace() {
        assert!(root().join("xtask/Cargo.toml").exists());
    }
}
