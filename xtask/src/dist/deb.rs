//! The Debian package: a tree laid out as Debian's policy wants it, packed by `dpkg-deb`.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::stage::{Shell, Stage, file_name, place};
use super::{must, try_tools};

const NAME: &str = "rdma-toolbox";

/// Packs it, and tries what comes out of it.
pub fn make(stage: &Stage, into: &Path) -> Result<PathBuf> {
    let top = into.join("deb");
    let wanted = lay_out(stage, &top)?;
    let architecture = said(Command::new("dpkg").arg("--print-architecture"))?;
    let architecture = architecture.trim();
    let control = control(stage, architecture, installed_kib(&top)?);
    let debian = top.join("DEBIAN");
    fs::create_dir_all(&debian)?;
    fs::write(debian.join("control"), control)?;

    let package = into.join(format!("{NAME}_{}-1_{architecture}.deb", stage.version));
    must(
        Command::new("dpkg-deb")
            .args(["--root-owner-group", "--build"])
            .arg(&top)
            .arg(&package)
            .env("SOURCE_DATE_EPOCH", &stage.time),
    )?;
    fs::remove_dir_all(&top)?;
    attempt(stage, &package, &wanted, &into.join("trial"))?;
    Ok(package)
}

/// Lays the files out, and returns their paths in the package.
fn lay_out(stage: &Stage, top: &Path) -> Result<BTreeSet<String>> {
    let share = top.join("usr/share");
    let mut placed = Vec::new();
    for binary in &stage.binaries {
        placed.push(place(
            &binary.path,
            &top.join("usr/bin"),
            &binary.name,
            0o755,
        )?);
    }
    for page in &stage.manuals {
        let page = place(page, &share.join("man/man1"), &file_name(page), 0o644)?;
        placed.push(zipped(&page)?);
    }
    for (path, shell) in &stage.completions {
        let (folder, name) = match shell {
            Shell::Bash => {
                let name = file_name(path);
                (
                    "bash-completion/completions",
                    name.trim_end_matches(".bash").to_owned(),
                )
            }
            Shell::Zsh => ("zsh/vendor-completions", file_name(path)),
            Shell::Fish => ("fish/vendor_completions.d", file_name(path)),
        };
        placed.push(place(path, &share.join(folder), &name, 0o644)?);
    }
    let doc = share.join("doc").join(NAME);
    fs::create_dir_all(&doc)?;
    placed.push(written(&doc, "copyright", &copyright(&stage.root)?)?);
    placed.push(zipped(&written(
        &doc,
        "changelog.Debian",
        &changelog(stage)?,
    )?)?);
    let changes = stage.root.join("CHANGELOG.md");
    if changes.exists() {
        placed.push(zipped(&place(&changes, &doc, "changelog", 0o644)?)?);
    }
    let relative = |path: &PathBuf| {
        let path = path.strip_prefix(top).unwrap_or(path);
        format!("./{}", path.display())
    };
    Ok(placed.iter().map(relative).collect())
}

fn control(stage: &Stage, architecture: &str, kib: u64) -> String {
    let mut text = format!(
        "Package: {NAME}\nVersion: {}-1\nArchitecture: {architecture}\nSection: net\n\
         Priority: optional\nMaintainer: The rdma-toolbox developers\nInstalled-Size: {kib}\n",
        stage.version
    );
    if stage.binaries.iter().any(|binary| binary.dynamic) {
        text.push_str("Depends: libc6\nRecommends: libibverbs1, librdmacm1\n");
    }
    text.push_str(
        "Description: tools for RDMA adapters and InfiniBand fabrics\n \
         Queries and verifies adapter firmware, discovers and diagnoses fabrics, and\n \
         runs without hardware on files and simulated fabrics.\n",
    );
    text
}

/// The licences, in the form that Debian's tools read.
fn copyright(root: &Path) -> Result<String> {
    let mit = fs::read_to_string(root.join("LICENSE-MIT")).context("no LICENSE-MIT")?;
    let holder = mit
        .lines()
        .find_map(|line| line.trim().strip_prefix("Copyright (c) "))
        .unwrap_or("The rdma-toolbox developers");
    let mut text = format!(
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\
         Upstream-Name: {NAME}\n\nFiles: *\nCopyright: {holder}\nLicense: MIT or Apache-2.0\n\n\
         License: Apache-2.0\n On Debian systems the whole text is in\n \
         /usr/share/common-licenses/Apache-2.0.\n\nLicense: MIT\n"
    );
    for line in mit.lines() {
        let line = line.trim_end();
        text.push_str(&if line.is_empty() {
            " .\n".to_owned()
        } else {
            format!(" {line}\n")
        });
    }
    Ok(text)
}

fn changelog(stage: &Stage) -> Result<String> {
    let date = said(
        Command::new("date")
            .args(["-u", "-R", "-d"])
            .arg(format!("@{}", stage.time)),
    )?;
    Ok(format!(
        "{NAME} ({}-1) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- The rdma-toolbox \
         developers <{NAME}@localhost>  {}\n",
        stage.version,
        date.trim()
    ))
}

/// Writes a text that everyone may read.
fn written(folder: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644))?;
    Ok(path)
}

/// Compresses a file in place, the same each time.
fn zipped(path: &Path) -> Result<PathBuf> {
    must(
        Command::new("gzip")
            .args(["-9", "--no-name", "--force"])
            .arg(path),
    )?;
    let mut name = path.as_os_str().to_owned();
    name.push(".gz");
    Ok(name.into())
}

fn installed_kib(top: &Path) -> Result<u64> {
    let mut bytes = 0;
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else {
                bytes += entry.metadata()?.len();
            }
        }
    }
    Ok(bytes.div_ceil(1024))
}

/// Reads the package back with dpkg's own tools: the control data, the list, and the tools run.
fn attempt(stage: &Stage, package: &Path, wanted: &BTreeSet<String>, trial: &Path) -> Result<()> {
    let version = said(
        Command::new("dpkg-deb")
            .arg("--field")
            .arg(package)
            .arg("Version"),
    )?;
    if version.trim() != format!("{}-1", stage.version) {
        bail!(
            "dpkg-deb reads the version {} from the package",
            version.trim()
        );
    }
    let listing = said(Command::new("dpkg-deb").arg("--contents").arg(package))?;
    let listed = files(&listing)?;
    if &listed != wanted {
        let odd: Vec<&String> = listed.symmetric_difference(wanted).collect();
        bail!("the package does not hold what was laid out: {odd:?}");
    }
    must(
        Command::new("dpkg-deb")
            .arg("--extract")
            .arg(package)
            .arg(trial),
    )?;
    try_tools(&trial.join("usr/bin"), stage)?;
    fs::remove_dir_all(trial)?;
    println!("{} files in the package; its tools run", listed.len());
    Ok(())
}

/// The files of `dpkg-deb --contents`, which must all be root's, and hold something.
fn files(listing: &str) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    for line in listing.lines().filter(|line| line.starts_with('-')) {
        let mut words = line.split_whitespace();
        let owner = words.nth(1).unwrap_or_default();
        let size = words.next().unwrap_or_default();
        let path = words.nth(2).unwrap_or_default();
        if owner != "root/root" {
            bail!("{path} belongs to {owner}");
        }
        if size == "0" {
            bail!("{path} is empty");
        }
        files.insert(path.to_owned());
    }
    Ok(files)
}

fn said(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .context("cannot be started")?;
    if !output.status.success() {
        bail!(
            "{command:?} failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_is_read_and_every_file_is_root_s() {
        let listing = "drwxr-xr-x root/root         0 2026-01-01 00:00 ./usr/\n\
                       -rwxr-xr-x root/root   1000 2026-01-01 00:00 ./usr/bin/mlx-fw\n";
        assert_eq!(
            files(listing).unwrap().into_iter().collect::<Vec<_>>(),
            ["./usr/bin/mlx-fw"]
        );
        assert!(files(&listing.replace("-rwxr-xr-x root/root", "-rwxr-xr-x me/me")).is_err());
        assert!(files(&listing.replace("1000", "0")).is_err());
    }
}
