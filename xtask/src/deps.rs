//! `cargo xtask deps`: the Debian packages that the tests and labs use.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use rdma_lab::peer::{self, Lab, peer};

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

/// A package, the programs or libraries by which one knows it elsewhere, and what it is needed for.
struct Package {
    name: &'static str,
    provides: &'static [&'static str],
    needed_for: String,
}

/// What the chores use beside what the labs do.
const CHORES: &[(&str, &[&str], &str)] = &[
    ("g++", &["g++"], "fuzz (libFuzzer is C++)"),
    ("cmake", &["cmake"], IBVERBS),
    ("libnl-3-dev", &["libnl-3.so"], IBVERBS),
    ("libnl-route-3-dev", &["libnl-route-3.so"], IBVERBS),
    ("libclang-dev", &["libclang.so"], CROSSCHECK),
    ("libibverbs-dev", &["libibverbs.so"], CROSSCHECK),
    ("librdmacm-dev", &["librdmacm.so"], CROSSCHECK),
    ("pkg-config", &["pkg-config"], CROSSCHECK),
];

const CROSSCHECK: &str = "the crosscheck of rverbs-sys (bindgen over the headers)";

const IBVERBS: &str = "the crosscheck with the crate ibverbs (it builds rdma-core)";

/// Everything beside git, a C compiler and the Rust toolchain, by name.
fn packages() -> Vec<Package> {
    let labs = peer::packages().iter().map(|package| Package {
        name: package.name,
        provides: package.provides,
        needed_for: package
            .labs
            .iter()
            .map(|lab| purpose(*lab))
            .collect::<Vec<_>>()
            .join(", "),
    });
    let chores = CHORES.iter().map(|(name, provides, needed_for)| Package {
        name,
        provides,
        needed_for: (*needed_for).to_owned(),
    });
    let mut packages: Vec<Package> = labs.chain(chores).collect();
    packages.sort_by_key(|package| package.name);
    packages.dedup_by_key(|package| package.name);
    packages
}

fn purpose(lab: Lab) -> &'static str {
    match lab {
        Lab::Ibsim => "lab ibsim",
        Lab::Preload => "lab preload",
        Lab::Qemu => "lab qemu",
        Lab::Rxe => "lab rxe",
        Lab::Oracle => "tests that compare with it",
        _ => "a lab",
    }
}

/// Runs the verb.
pub fn run(args: &Args) -> Result<()> {
    let packages = packages();
    if args.list {
        for package in &packages {
            println!("{:<20} {}", package.name, package.needed_for);
        }
        return Ok(());
    }
    if !Path::new("/usr/bin/dpkg-query").exists() {
        return elsewhere(&packages);
    }
    let missing = missing(&packages)?;
    if missing.is_empty() {
        println!(
            "all {} packages are installed; nothing to do",
            packages.len()
        );
        return Ok(());
    }
    println!(
        "{} of {} packages are missing:",
        missing.len(),
        packages.len()
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
    let left = self::missing(&packages)?;
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|package| package.name).collect();
        bail!("still missing after the installation: {}", names.join(" "));
    }
    println!("installed {} packages", missing.len());
    Ok(())
}

/// The packages that dpkg does not call installed.
fn missing(packages: &[Package]) -> Result<Vec<&Package>> {
    let output = Command::new("dpkg-query")
        .args([
            "--show",
            "--showformat=${db:Status-Abbrev} ${binary:Package}\\n",
        ])
        .args(packages.iter().map(|package| package.name))
        .stdin(Stdio::null())
        .output()
        .context("dpkg-query could not be started")?;
    // Its exit code is 1 as soon as it does not know one of them; the list is complete all the same.
    let installed = installed(&String::from_utf8_lossy(&output.stdout));
    Ok(packages
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
fn elsewhere(packages: &[Package]) -> Result<()> {
    let lacks = |package: &Package| !package.provides.iter().all(|name| peer(name).is_some());
    let missing: Vec<&Package> = packages.iter().filter(|package| lacks(package)).collect();
    if missing.is_empty() {
        println!(
            "this is not a Debian, but what {} packages of one have is here",
            packages.len()
        );
        return Ok(());
    }
    println!("this is not a Debian, so nothing can be installed for you; still needed:");
    for package in &missing {
        println!(
            "  {:<20} {} (Debian: {})",
            package.provides.join(", "),
            package.needed_for,
            package.name
        );
    }
    bail!("{} packages are missing", missing.len());
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
    fn every_package_is_named_once_with_its_purpose() {
        let packages = packages();
        for pair in packages.windows(2) {
            assert!(
                pair[0].name < pair[1].name,
                "{} before {}",
                pair[0].name,
                pair[1].name
            );
        }
        for package in packages {
            assert!(!package.needed_for.is_empty() && !package.provides.is_empty());
        }
    }
}
