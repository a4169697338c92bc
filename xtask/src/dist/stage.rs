//! What is given away, before it is packed: binaries and what they say of themselves.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{Binary, codegen, commit_time, must, try_tools};
use crate::workspace::Workspace;

/// The collected files, and what the packers need to know.
pub struct Stage {
    /// The folder of the repository.
    pub root: PathBuf,
    /// The version of the workspace.
    pub version: String,
    /// The tools.
    pub binaries: Vec<Binary>,
    /// Manual pages by file name.
    pub manuals: Vec<PathBuf>,
    /// Completions: file, and the shell it is for.
    pub completions: Vec<(PathBuf, Shell)>,
    /// Seconds since 1970 at which every file was made.
    pub time: String,
}

/// A shell with its own place for completions.
#[derive(Clone, Copy)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

impl Stage {
    /// Lets each tool describe itself into `folder`.
    pub fn new(
        workspace: &Workspace,
        version: &str,
        binaries: Vec<Binary>,
        folder: &Path,
    ) -> Result<Self> {
        let bin = folder.join("bin");
        let generated = {
            let staged = folder.join("tools");
            fs::create_dir_all(&bin)?;
            for binary in &binaries {
                fs::copy(&binary.path, bin.join(&binary.name))?;
            }
            codegen::generate(workspace, &bin, &staged)?
        };
        let (mut manuals, mut completions) = (Vec::new(), Vec::new());
        for tool in &generated {
            manuals.extend(listed(&tool.folder.join("man"))?);
            for path in listed(&tool.folder.join("completions"))? {
                let shell = match path.extension().and_then(|end| end.to_str()) {
                    Some("bash") => Shell::Bash,
                    Some("fish") => Shell::Fish,
                    _ => Shell::Zsh,
                };
                completions.push((path, shell));
            }
        }
        Ok(Self {
            root: workspace.root.clone(),
            version: version.to_owned(),
            binaries,
            manuals,
            completions,
            time: commit_time(&workspace.root)?,
        })
    }

    /// Packs the archive, and tries what comes out of it.
    pub fn archive(&self, into: &Path) -> Result<PathBuf> {
        let name = format!(
            "rdma-toolbox-{}-{}-linux",
            self.version,
            std::env::consts::ARCH
        );
        let top = into.join(&name);
        for binary in &self.binaries {
            place(&binary.path, &top.join("bin"), &binary.name, 0o755)?;
        }
        for page in &self.manuals {
            place(page, &top.join("man/man1"), &file_name(page), 0o644)?;
        }
        for (path, shell) in &self.completions {
            let folder = match shell {
                Shell::Bash => "completions/bash",
                Shell::Zsh => "completions/zsh",
                Shell::Fish => "completions/fish",
            };
            place(path, &top.join(folder), &file_name(path), 0o644)?;
        }
        for text in ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "CHANGELOG.md"] {
            let path = self.root.join(text);
            if path.exists() {
                place(&path, &top, text, 0o644)?;
            }
        }
        let archive = into.join(format!("{name}.tar.gz"));
        must(
            Command::new("tar")
                .current_dir(into)
                .args([
                    "--create",
                    "--sort=name",
                    "--owner=0",
                    "--group=0",
                    "--numeric-owner",
                ])
                .arg(format!("--mtime=@{}", self.time))
                .args(["--use-compress-program=gzip -9 --no-name", "--file"])
                .arg(&archive)
                .arg(&name),
        )?;
        fs::remove_dir_all(&top)?;
        let trial = into.join("trial");
        fs::create_dir_all(&trial)?;
        must(
            Command::new("tar")
                .arg("-C")
                .arg(&trial)
                .arg("-xf")
                .arg(&archive),
        )?;
        try_tools(&trial.join(&name).join("bin"), self)?;
        fs::remove_dir_all(&trial)?;
        Ok(archive)
    }
}

/// Copies a file into a folder, under a name, with a mode.
pub fn place(from: &Path, folder: &Path, name: &str, mode: u32) -> Result<PathBuf> {
    use std::os::unix::fs::PermissionsExt;
    fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let to = folder.join(name);
    fs::copy(from, &to).with_context(|| format!("cannot copy {}", from.display()))?;
    fs::set_permissions(&to, fs::Permissions::from_mode(mode))?;
    Ok(to)
}

/// The name of a file, for a path that has one.
pub fn file_name(path: &Path) -> String {
    path.file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("no {}", folder.display()))? {
        paths.push(entry?.path());
    }
    paths.sort();
    Ok(paths)
}
