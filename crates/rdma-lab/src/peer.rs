//! Where a peer program is, and which Debian package it comes from.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// One Debian package that a lab needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Package {
    /// The package's name in Debian 12.
    pub name: &'static str,
    /// The files that the labs use of it: program names, or a shared library by its file name.
    pub provides: &'static [&'static str],
    /// Which labs need it.
    pub labs: &'static [Lab],
}

/// A lab, as `cargo xtask lab` names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Lab {
    /// ibsim with OpenSM and infiniband-diags.
    Ibsim,
    /// Verbs programs on a software device.
    Preload,
    /// A QEMU guest with Linux rxe and siw.
    Qemu,
    /// Our RoCEv2 against rxe in such a guest: what it needs besides.
    Rxe,
    /// Not a lab of its own: programs that tests of other crates compare themselves with.
    Oracle,
}

const PACKAGES: &[Package] = &[
    Package {
        name: "ibsim-utils",
        provides: &["ibsim"],
        labs: &[Lab::Ibsim],
    },
    Package {
        name: "libumad2sim0",
        provides: &["libumad2sim.so"],
        labs: &[Lab::Ibsim],
    },
    Package {
        name: "opensm",
        provides: &["opensm", "osmtest"],
        labs: &[Lab::Ibsim],
    },
    Package {
        name: "infiniband-diags",
        provides: &[
            "ibnetdiscover",
            "iblinkinfo",
            "ibqueryerrors",
            "perfquery",
            "sminfo",
            "smpquery",
            "saquery",
            "ibstat",
            "ibhosts",
            "ibswitches",
            "ibtracert",
            "ibroute",
            "ibaddr",
            "dump_fts",
        ],
        labs: &[Lab::Ibsim],
    },
    Package {
        name: "ibutils",
        provides: &["ibdiagnet", "ibdmchk"],
        labs: &[Lab::Oracle],
    },
    Package {
        name: "mstflint",
        provides: &["mstflint", "mstconfig", "mstarchive", "mstreg"],
        labs: &[Lab::Oracle],
    },
    Package {
        name: "qemu-system-x86",
        provides: &["qemu-system-x86_64"],
        labs: &[Lab::Qemu],
    },
    Package {
        name: "busybox-static",
        provides: &["busybox"],
        labs: &[Lab::Qemu],
    },
    Package {
        name: "iproute2",
        provides: &["ip", "rdma", "tc"],
        labs: &[Lab::Qemu],
    },
    Package {
        name: "perftest",
        provides: &[
            "ib_send_lat",
            "ib_send_bw",
            "ib_write_lat",
            "ib_write_bw",
            "ib_read_lat",
            "ib_read_bw",
            "ib_atomic_lat",
            "ib_atomic_bw",
        ],
        labs: &[Lab::Preload, Lab::Qemu],
    },
    Package {
        name: "rdmacm-utils",
        provides: &[
            "rping",
            "udaddy",
            "ucmatose",
            "rdma_client",
            "rdma_server",
            "rdma_xclient",
            "rdma_xserver",
            "cmtime",
            "mckey",
            "rstream",
            "riostream",
            "rcopy",
            "udpong",
        ],
        labs: &[Lab::Preload, Lab::Qemu],
    },
    Package {
        name: "ibverbs-utils",
        provides: &[
            "ibv_devinfo",
            "ibv_devices",
            "ibv_rc_pingpong",
            "ibv_ud_pingpong",
            "ibv_uc_pingpong",
            "ibv_srq_pingpong",
            "ibv_xsrq_pingpong",
            "ibv_asyncwatch",
        ],
        labs: &[Lab::Preload, Lab::Qemu],
    },
    Package {
        name: "qperf",
        provides: &["qperf"],
        labs: &[Lab::Preload, Lab::Qemu],
    },
    Package {
        name: "ibverbs-providers",
        provides: &["librxe-rdmav34.so", "libsiw-rdmav34.so"],
        labs: &[Lab::Qemu],
    },
    Package {
        name: "tcpdump",
        provides: &["tcpdump"],
        labs: &[Lab::Rxe],
    },
    Package {
        name: "tshark",
        provides: &["tshark"],
        labs: &[Lab::Rxe],
    },
    Package {
        name: "valgrind",
        provides: &["valgrind"],
        labs: &[Lab::Oracle],
    },
    // Part of every Debian, minimal ones too; named so that the message is right where they are missing.
    Package {
        name: "util-linux",
        provides: &["setpriv"],
        labs: &[Lab::Ibsim, Lab::Qemu],
    },
    Package {
        name: "apt",
        provides: &["apt-get", "apt-cache"],
        labs: &[Lab::Qemu],
    },
    Package {
        name: "dpkg",
        provides: &["dpkg-deb"],
        labs: &[Lab::Qemu],
    },
    Package {
        name: "libc-bin",
        provides: &["ldd"],
        labs: &[Lab::Qemu],
    },
];

/// The Debian packages that the labs and the comparing tests need: what `cargo xtask deps` installs.
#[must_use]
pub fn packages() -> &'static [Package] {
    PACKAGES
}

/// The package that holds `program`, where a lab uses it.
#[must_use]
pub fn package_of(program: &str) -> Option<&'static Package> {
    PACKAGES
        .iter()
        .find(|package| package.provides.contains(&program))
}

/// Finds a peer program in `PATH` and in `/usr/sbin` and `/sbin`, which an ordinary user's `PATH` lacks.
///
/// A name that ends in `.so` is looked for in the folders where Debian keeps the libraries that a lab loads.
#[must_use]
pub fn peer(program: &str) -> Option<PathBuf> {
    find_in(program, std::env::var_os("PATH").as_deref())
}

/// As [`peer`], or an error that names the package to install.
///
/// # Errors
/// When the program is not on this machine.
pub fn need(program: &str) -> Result<PathBuf> {
    peer(program).with_context(|| not_found(program))
}

/// `ibsim not found: install package ibsim-utils, or run: cargo xtask deps`.
#[must_use]
pub fn not_found(program: &str) -> String {
    match package_of(program) {
        Some(package) => format!(
            "{program} not found: install package {}, or run: cargo xtask deps",
            package.name
        ),
        None => format!("{program} not found in PATH, /usr/sbin or /sbin"),
    }
}

fn find_in(program: &str, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.contains('/') {
        let path = PathBuf::from(program);
        return path.is_file().then_some(path);
    }
    // A PATH that was emptied on purpose means that nothing is there, system folders included: this is how tests take a package away.
    let path = path.unwrap_or_else(|| OsStr::new("/usr/bin:/bin"));
    if path.is_empty() {
        return None;
    }
    if Path::new(program)
        .extension()
        .is_some_and(|extension| extension == "so")
    {
        return library(program);
    }
    std::env::split_paths(path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|candidate| is_executable(candidate))
}

fn library(name: &str) -> Option<PathBuf> {
    let folders = std::fs::read_dir("/usr/lib")
        .ok()?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir());
    let mut folders: Vec<_> = std::iter::once(PathBuf::from("/usr/lib"))
        .chain(folders)
        .collect();
    folders.sort();
    folders
        .iter()
        .flat_map(|folder| {
            ["umad2sim", "libibverbs", ""].map(|below| folder.join(below).join(name))
        })
        .find(|candidate| candidate.is_file())
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    path.metadata()
        .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_names_its_package() {
        assert_eq!(find_in("ibsim", Some(OsStr::new(""))), None);
        assert_eq!(
            not_found("ibsim"),
            "ibsim not found: install package ibsim-utils, or run: cargo xtask deps"
        );
        assert_eq!(
            not_found("libumad2sim.so"),
            "libumad2sim.so not found: install package libumad2sim0, or run: cargo xtask deps"
        );
        assert_eq!(
            not_found("nothing-of-ours"),
            "nothing-of-ours not found in PATH, /usr/sbin or /sbin"
        );
    }

    #[test]
    fn a_program_is_found_in_path() {
        assert!(find_in("sh", Some(OsStr::new("/usr/bin:/bin"))).is_some());
        assert_eq!(
            find_in("passwd", Some(OsStr::new("/etc"))),
            None,
            "a file that is not executable is no program"
        );
    }

    #[test]
    fn every_program_has_one_package() {
        let mut programs: Vec<_> = packages()
            .iter()
            .flat_map(|package| package.provides)
            .collect();
        let count = programs.len();
        programs.sort();
        programs.dedup();
        assert_eq!(programs.len(), count);
    }
}
