//! The guest's file system, built from this machine's own programs with the libraries that they need.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use super::cpio::Tree;
use super::kernel::{Kernel, module_bytes};
use crate::peer;
use crate::process;

/// Loaded by the guest's init, before it can talk to us.
const EARLY: &[&str] = &["virtio_pci", "virtio_console"];

/// Loaded on request of the host. `crc32_generic` is no dependency on paper, but without it rxe refuses to add a device.
pub(super) const MODULES: &[&str] = &[
    "crc32_generic",
    "crc32c_generic",
    "rdma_rxe",
    "ib_umad",
    "ib_uverbs",
    "rdma_ucm",
    "veth",
    "virtio_net",
    "sch_netem",
];

/// What starts other programs must not be busybox's: it runs its own applets before what is in PATH, and its `ip` knows no veth. All of these are
/// essential packages of Debian.
const NOT_BUSYBOX: &[&str] = &[
    "dash", "setsid", "timeout", "env", "nice", "nohup", "xargs", "taskset",
];

const INIT: &str = include_str!("init.sh");

/// A guest's file system under construction.
#[derive(Debug)]
pub(super) struct Initramfs {
    tree: Tree,
    seen: BTreeSet<PathBuf>,
}

impl Initramfs {
    /// What every guest has: busybox, the libraries' places, the init program.
    pub(super) fn new() -> Result<Self> {
        let mut this = Self {
            tree: Tree::default(),
            seen: BTreeSet::new(),
        };
        for folder in [
            "/proc", "/sys", "/dev", "/tmp", "/run", "/root", "/lab", "/usr/bin", "/usr/lib",
            "/var/run",
        ] {
            this.tree.folder(folder)?;
        }
        // As on Debian 12, so that a library is found by either name.
        for (link, target) in [
            ("/bin", "usr/bin"),
            ("/sbin", "usr/bin"),
            ("/lib", "usr/lib"),
            ("/lib64", "usr/lib64"),
            ("/usr/sbin", "bin"),
        ] {
            this.tree.link(link, target)?;
        }
        this.tree.folder("/usr/lib64")?;
        let busybox = peer::need("busybox")?;
        if !libraries(&busybox)?.is_empty() {
            bail!(
                "{} needs shared libraries: install package busybox-static, or run: cargo xtask deps",
                busybox.display()
            );
        }
        this.tree.file("/usr/bin/busybox", read(&busybox)?, true)?;
        let mut list = Command::new(&busybox);
        list.arg("--list");
        for applet in process::run(&list, Duration::from_secs(10))?
            .success()?
            .stdout_text()
            .lines()
        {
            if !matches!(applet, "busybox" | "sh") && !applet.contains('/') {
                this.tree
                    .link(Path::new("/usr/bin").join(applet), "busybox")?;
            }
        }
        for program in NOT_BUSYBOX {
            this.program(Path::new(program))?;
        }
        this.tree.link("/usr/bin/sh", "dash")?;
        this.tree.file("/init", INIT, true)?;
        this.tree
            .file("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n", false)?;
        this.tree.file("/etc/group", "root:x:0:\n", false)?;
        this.tree
            .file("/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n", false)?;
        Ok(this)
    }

    /// Adds the kernel's modules and the lists by which they are loaded.
    pub(super) fn modules(&mut self, kernel: &Kernel, more: &[String]) -> Result<()> {
        let early = kernel.resolve(EARLY)?;
        let wanted: Vec<&str> = MODULES
            .iter()
            .copied()
            .chain(more.iter().map(String::as_str))
            .collect();
        let late: Vec<_> = kernel
            .resolve(&wanted)?
            .into_iter()
            .filter(|path| !early.contains(path))
            .collect();
        for (list, paths) in [("/lab/early", &early), ("/lab/late", &late)] {
            let mut names = String::new();
            for path in paths {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let name = name.strip_suffix(".xz").unwrap_or(&name);
                self.tree
                    .file(format!("/lab/modules/{name}"), module_bytes(path)?, false)?;
                names.push_str(name);
                names.push('\n');
            }
            self.tree.file(list, names, false)?;
        }
        Ok(())
    }

    /// Adds a program of this machine, found like a peer or given by its path, as `/usr/bin/<name>` with its libraries.
    pub(super) fn program(&mut self, program: &Path) -> Result<()> {
        let path = match program.to_str() {
            Some(name) if !name.contains('/') => peer::need(name)?,
            _ => program.to_path_buf(),
        };
        let name = program
            .file_name()
            .with_context(|| format!("{} has no file name", program.display()))?;
        self.tree
            .file(Path::new("/usr/bin").join(name), read(&path)?, true)?;
        self.libraries_of(&path)
    }

    /// Adds libibverbs' drivers for the software devices, which it loads by name and which no program names as needed.
    pub(super) fn providers(&mut self) -> Result<()> {
        for name in ["rxe", "siw"] {
            let driver = PathBuf::from(format!("/etc/libibverbs.d/{name}.driver"));
            let text = std::fs::read(&driver)
                .with_context(|| peer::not_found(&format!("lib{name}-rdmav34.so")))?;
            self.tree.file(&driver, text, false)?;
            let library = provider(name)
                .with_context(|| peer::not_found(&format!("lib{name}-rdmav34.so")))?;
            self.library(&library)?;
            self.libraries_of(&library)?;
        }
        // glibc loads it when a thread is cancelled, as perftest and rping do at their end.
        if let Some(libgcc) = libgcc() {
            self.library(&libgcc)?;
        }
        Ok(())
    }

    /// Adds any file.
    pub(super) fn file(&mut self, host: &Path, guest: &Path) -> Result<()> {
        use std::os::unix::fs::PermissionsExt as _;
        let bytes = read(host)?;
        let executable = host
            .metadata()
            .is_ok_and(|meta| meta.permissions().mode() & 0o111 != 0);
        self.tree.file(guest, bytes, executable)
    }

    /// The archive that the kernel unpacks.
    pub(super) fn archive(&self) -> Result<Vec<u8>> {
        self.tree.archive()
    }

    fn libraries_of(&mut self, path: &Path) -> Result<()> {
        for library in libraries(path)? {
            self.library(&library)?;
        }
        Ok(())
    }

    fn library(&mut self, path: &Path) -> Result<()> {
        if self.seen.insert(path.to_path_buf()) {
            let bytes = read(path)?;
            // /lib is a link to /usr/lib in the guest, and a file can't be put behind a link.
            let place = match path.strip_prefix("/") {
                Ok(rest) if rest.starts_with("lib") || rest.starts_with("lib64") => {
                    Path::new("/usr").join(rest)
                }
                _ => path.to_path_buf(),
            };
            self.tree.file(place, bytes, true)?;
        }
        Ok(())
    }
}

/// The shared libraries that `path` needs, the loader included, as `ldd` finds them; none for a static program or a script.
fn libraries(path: &Path) -> Result<Vec<PathBuf>> {
    let mut command = Command::new(peer::need("ldd")?);
    command.arg(path);
    let told = process::run(&command, Duration::from_secs(10))?;
    if told.code != 0 {
        // `not a dynamic executable` is an answer.
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for line in told.stdout_text().lines() {
        // `libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x…)`, `/lib64/ld-linux-x86-64.so.2 (0x…)`, `linux-vdso.so.1 (0x…)`
        if line.contains("=> not found") {
            bail!(
                "{} needs a library that is not here: {}",
                path.display(),
                line.trim()
            );
        }
        let place = line.rsplit("=> ").next().unwrap_or(line).trim();
        if let Some(place) = place
            .split(" (0x")
            .next()
            .filter(|place| place.starts_with('/'))
        {
            found.push(PathBuf::from(place));
        }
    }
    Ok(found)
}

/// `/usr/lib/<multiarch>/libibverbs/lib<name>-rdmav<abi>.so`.
fn provider(name: &str) -> Option<PathBuf> {
    let start = format!("lib{name}-rdmav");
    multiarch().into_iter().find_map(|folder| {
        let files = std::fs::read_dir(folder.join("libibverbs")).ok()?;
        files
            .filter_map(|entry| Some(entry.ok()?.path()))
            .find(|path| {
                path.file_name()
                    .is_some_and(|file| file.to_string_lossy().starts_with(&start))
            })
    })
}

fn libgcc() -> Option<PathBuf> {
    multiarch()
        .into_iter()
        .map(|folder| folder.join("libgcc_s.so.1"))
        .find(|path| path.exists())
}

fn multiarch() -> Vec<PathBuf> {
    [
        "/usr/lib/x86_64-linux-gnu",
        "/lib/x86_64-linux-gnu",
        "/usr/lib64",
        "/usr/lib",
    ]
    .map(PathBuf::from)
    .to_vec()
}

fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).with_context(|| format!("reading {}", path.display()))
}
