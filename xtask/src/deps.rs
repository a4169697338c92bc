//! `cargo xtask deps`: the Debian packages that the tests and labs use.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::shown;

/// Installs the Debian packages that are missing.
#[derive(clap::Args)]
pub struct Args {
    /// Say what would be installed, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// List every package with what it is needed for.
    #[arg(long)]
    list: bool,
}

/// A package, a program or file by which one knows it elsewhere, and what it is needed for.
struct Package {
    name: &'static str,
    provides: &'static str,
    needed_for: &'static str,
}

const fn package(name: &'static str, provides: &'static str, needed_for: &'static str) -> Package {
    Package {
        name,
        provides,
        needed_for,
    }
}

/// What the tests and labs use, beside git, a C compiler and the Rust toolchain.
const PACKAGES: &[Package] = &[
    package("busybox-static", "busybox", "lab qemu: the guest's shell"),
    package("cpio", "cpio", "lab qemu: the guest's root file system"),
    package("g++", "g++", "fuzz: libFuzzer is C++"),
    package(
        "ibsim-utils",
        "ibsim",
        "lab ibsim: the simulator that the C tools know",
    ),
    package(
        "infiniband-diags",
        "ibnetdiscover",
        "lab ibsim: the reference for ib-diag",
    ),
    package("iproute2", "ip", "lab qemu: veth and rdma links"),
    package("kmod", "depmod", "lab qemu: the guest's kernel modules"),
    package("mstflint", "mstflint", "the reference for mlx-fw"),
    package(
        "opensm",
        "opensm",
        "lab ibsim: the reference subnet manager",
    ),
    package(
        "perftest",
        "ib_send_lat",
        "lab qemu: the reference for measurements",
    ),
    package(
        "qemu-system-x86",
        "qemu-system-x86_64",
        "lab qemu: the machine",
    ),
    package(
        "rdmacm-utils",
        "rping",
        "lab qemu: a peer over the connection manager",
    ),
];

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    if args.list {
        for package in PACKAGES {
            println!("{:<20} {}", package.name, package.needed_for);
        }
        return Ok(());
    }
    if !Path::new("/usr/bin/dpkg-query").exists() {
        return elsewhere();
    }
    let missing = missing()?;
    if missing.is_empty() {
        println!(
            "all {} packages are installed; nothing to do",
            PACKAGES.len()
        );
        return Ok(());
    }
    println!(
        "{} of {} packages are missing:",
        missing.len(),
        PACKAGES.len()
    );
    for package in &missing {
        println!("  {:<20} {}", package.name, package.needed_for);
    }
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    let privilege = privilege()?;
    let update = apt(&privilege, &["update", "-q"]);
    let mut words = vec!["install", "--yes", "-q", "--no-install-recommends"];
    words.extend(names);
    let install = apt(&privilege, &words);
    let verb = if args.dry_run { "would run" } else { "running" };
    println!("{verb}:\n  {}\n  {}", shown(&update), shown(&install));
    if args.dry_run {
        return Ok(());
    }
    if matches!(privilege, Privilege::Nobody) {
        bail!("neither root nor sudo: run the commands above as root, then this again");
    }
    if !args.yes && !confirmed()? {
        bail!("nothing was installed");
    }
    twice(update).context("the package lists could not be updated")?;
    twice(install).context("the packages could not be installed")?;
    let left = self::missing()?;
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|package| package.name).collect();
        bail!("still missing after the installation: {}", names.join(" "));
    }
    println!("installed {} packages", missing.len());
    Ok(())
}

/// The packages that dpkg does not call installed.
fn missing() -> Result<Vec<&'static Package>> {
    let output = Command::new("dpkg-query")
        .args([
            "--show",
            "--showformat=${db:Status-Abbrev} ${binary:Package}\\n",
        ])
        .args(PACKAGES.iter().map(|package| package.name))
        .stdin(Stdio::null())
        .output()
        .context("dpkg-query could not be started")?;
    // Its exit code is 1 as soon as it does not know one of them; the list is complete all the same.
    let installed = installed(&String::from_utf8_lossy(&output.stdout));
    Ok(PACKAGES
        .iter()
        .filter(|package| !installed.iter().any(|i| i == package.name))
        .collect())
}

/// The names in dpkg-query's answer that are installed (`ii`; held ones are `hi`), without the
/// architecture.
fn installed(answer: &str) -> Vec<String> {
    let name = |line: &str| {
        let (status, name) = line.split_once(' ')?;
        let name = name.trim().split(':').next()?;
        status.trim_end().ends_with('i').then(|| name.to_owned())
    };
    answer.lines().filter_map(name).collect()
}

/// How this process gets to be root.
enum Privilege {
    Root,
    Sudo { ask: bool },
    Nobody,
}

fn privilege() -> Result<Privilege> {
    let status = fs::read_to_string("/proc/self/status").context("/proc is not mounted")?;
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    if uid.and_then(|line| line.split_whitespace().nth(1)) == Some("0") {
        return Ok(Privilege::Root);
    }
    let quiet = Command::new("sudo")
        .args(["-n", "true"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    Ok(match quiet {
        Ok(status) if status.success() => Privilege::Sudo { ask: false },
        Ok(_) if std::io::stdin().is_terminal() => Privilege::Sudo { ask: true },
        _ => Privilege::Nobody,
    })
}

fn apt(privilege: &Privilege, words: &[&str]) -> Command {
    // Another apt may be at work (a fresh machine updates itself): wait for its lock.
    let lock = ["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"];
    let mut command = match privilege {
        Privilege::Sudo { ask } => {
            let mut sudo = Command::new("sudo");
            if !ask {
                sudo.arg("-n");
            }
            sudo.args(["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"]);
            sudo
        }
        Privilege::Root | Privilege::Nobody => {
            let mut apt = Command::new("apt-get");
            apt.env("DEBIAN_FRONTEND", "noninteractive");
            apt
        }
    };
    command.args(lock).args(words);
    command
}

/// Runs a command, and once more when it fails: mirrors have bad moments.
fn twice(mut command: Command) -> Result<()> {
    command.stdin(Stdio::null());
    for attempt in 1..=2 {
        let status = command
            .status()
            .with_context(|| format!("cannot run {}", shown(&command)))?;
        if status.success() {
            return Ok(());
        }
        eprintln!("attempt {attempt} failed ({status}): {}", shown(&command));
    }
    bail!("failed twice: {}", shown(&command));
}

fn confirmed() -> Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("there is no terminal to ask on: add --yes to go ahead");
    }
    print!("Go ahead? [y/N] ");
    std::io::stdout().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Not a Debian: which programs are needed, and which of them are not on the path.
fn elsewhere() -> Result<()> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = |program: &str| std::env::split_paths(&path).any(|dir| dir.join(program).exists());
    let missing: Vec<&Package> = PACKAGES
        .iter()
        .filter(|package| !found(package.provides))
        .collect();
    if missing.is_empty() {
        println!(
            "this is not a Debian, but all {} programs are here",
            PACKAGES.len()
        );
        return Ok(());
    }
    println!("this is not a Debian, so nothing can be installed for you; still needed:");
    for package in &missing {
        println!(
            "  {:<20} {} (Debian: {})",
            package.provides, package.needed_for, package.name
        );
    }
    bail!("{} programs are missing", missing.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_installed_packages_count() {
        let answer = "ii  opensm\nrc  ibsim-utils\nun  cpio\nhi  g++:amd64\n";
        assert_eq!(installed(answer), ["opensm", "g++"]);
    }

    #[test]
    fn packages_are_sorted_and_named_once() {
        for pair in PACKAGES.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} before {}",
                pair[0].name,
                pair[1].name
            );
        }
    }
}
