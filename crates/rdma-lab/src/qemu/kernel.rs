//! Debian's kernel: fetched once as a package and unpacked into a cache; installing it is not needed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};

use crate::peer;
use crate::process;
use crate::testdata::workspace_root;

/// Names another folder for the cache of kernels.
pub const CACHE: &str = "RDMA_LAB_CACHE";

/// The package whose first dependency is the current kernel.
const META: &str = "linux-image-amd64";

/// Parts of the package that no lab needs and that make up most of its 400 MB.
const UNNEEDED: &[&str] = &[
    "sound",
    "drivers/gpu",
    "drivers/media",
    "drivers/net/wireless",
    "drivers/net/ethernet",
    "drivers/staging",
    "drivers/iio",
    "drivers/scsi",
    "drivers/usb",
];

/// An unpacked kernel: its image and its modules.
#[derive(Debug, Clone)]
pub struct Kernel {
    /// `uname -r`.
    pub release: String,
    /// The image to boot.
    pub image: PathBuf,
    modules: BTreeMap<String, PathBuf>,
    builtin: Vec<String>,
}

impl Kernel {
    /// The cached kernel; else one from a package that is already on this machine; else from a package that apt downloads.
    ///
    /// # Errors
    /// Another architecture than amd64, or no package and an apt that can't download it; the message says what to do.
    pub fn find() -> Result<Self> {
        if !cfg!(target_arch = "x86_64") {
            bail!("lab qemu runs an amd64 kernel: this machine has another architecture");
        }
        let cache = cache_folder();
        std::fs::create_dir_all(&cache)
            .with_context(|| format!("making the cache {}", cache.display()))?;
        // Two labs that start at once must not both unpack.
        let lock = File::create(cache.join("lock"))
            .with_context(|| format!("locking the cache {}", cache.display()))?;
        lock.lock().context("locking the cache")?;
        if let Some(kernel) = unpacked(&cache)? {
            return Ok(kernel);
        }
        let package = match downloaded(&cache) {
            Some(package) => package,
            None => download(&cache)?,
        };
        unpack(&package, &cache)?;
        unpacked(&cache)?
            .with_context(|| format!("{} holds no kernel with modules", package.display()))
    }

    /// The files of `wanted` and of all modules that they need, in the order in which they must be loaded. What is built into the kernel is left out.
    ///
    /// # Errors
    /// A module that this kernel does not have, or a file that is no module.
    pub fn resolve(&self, wanted: &[impl AsRef<str>]) -> Result<Vec<PathBuf>> {
        let mut ordered = Vec::new();
        for name in wanted {
            self.visit(&canonical(name.as_ref()), &mut ordered, 0)?;
        }
        Ok(ordered)
    }

    fn visit(&self, name: &str, ordered: &mut Vec<PathBuf>, depth: usize) -> Result<()> {
        let Some(path) = self.modules.get(name) else {
            if self.builtin.iter().any(|builtin| builtin == name) {
                return Ok(());
            }
            bail!("kernel {} has no module {name}", self.release);
        };
        if depth > 32 {
            bail!("the modules that {name} needs form a circle");
        }
        if ordered.contains(path) {
            return Ok(());
        }
        for needed in dependencies(&module_bytes(path)?)
            .with_context(|| format!("reading {}", path.display()))?
        {
            self.visit(&needed, ordered, depth + 1)?;
        }
        if !ordered.contains(path) {
            ordered.push(path.clone());
        }
        Ok(())
    }
}

/// The bytes of a module; `.ko.xz` is unpacked, since insmod in the guest can't.
///
/// # Errors
/// A file that can't be read or unpacked.
pub(super) fn module_bytes(path: &Path) -> Result<Vec<u8>> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("xz") => {
            let mut command = Command::new(peer::need("xz")?);
            command.arg("-dc").arg(path);
            Ok(process::run(&command, Duration::from_secs(60))?
                .success()?
                .stdout)
        }
        _ => std::fs::read(path).with_context(|| format!("reading {}", path.display())),
    }
}

/// The modules that a module names in its `.modinfo`: `depends=ib_core,ib_uverbs`. Every module has the line, an empty one if need be; the package
/// has no `modules.dep`, which is made when it is installed.
fn dependencies(module: &[u8]) -> Result<Vec<String>> {
    const KEY: &[u8] = b"\0depends=";
    let at = module
        .windows(KEY.len())
        .position(|window| window == KEY)
        .context("it has no depends= line, so it is no kernel module")?;
    let value = module.get(at + KEY.len()..).unwrap_or_default();
    let value = value.split(|&byte| byte == 0).next().unwrap_or_default();
    Ok(String::from_utf8_lossy(value)
        .split(',')
        .filter(|name| !name.is_empty())
        .map(canonical)
        .collect())
}

/// Module names use `-` and `_` as the same.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

fn cache_folder() -> PathBuf {
    let folder = |name| {
        std::env::var_os(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    folder(CACHE)
        .or_else(|| folder("XDG_CACHE_HOME").map(|cache| cache.join("rdma-lab")))
        .or_else(|| folder("HOME").map(|home| home.join(".cache/rdma-lab")))
        .unwrap_or_else(|| workspace_root().join("target/lab"))
}

/// The newest kernel that is unpacked in the cache.
fn unpacked(cache: &Path) -> Result<Option<Kernel>> {
    let mut folders: Vec<_> = entries(cache)
        .into_iter()
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "kernel")
        })
        .collect();
    folders.sort();
    let Some(root) = folders.pop() else {
        return Ok(None);
    };
    let Some(tree) = entries(&root.join("lib/modules"))
        .into_iter()
        .chain(entries(&root.join("usr/lib/modules")))
        .next()
    else {
        return Ok(None);
    };
    let release = tree
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let image = root.join(format!("boot/vmlinuz-{release}"));
    if !image.is_file() {
        return Ok(None);
    }
    let mut modules = BTreeMap::new();
    let mut pending = vec![tree.join("kernel")];
    while let Some(folder) = pending.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                pending.push(path);
            } else if let Some(name) = module_name(&path) {
                modules.insert(name, path);
            }
        }
    }
    let builtin = std::fs::read_to_string(tree.join("modules.builtin")).unwrap_or_default();
    let builtin = builtin
        .lines()
        .filter_map(|line| module_name(Path::new(line)))
        .collect();
    Ok(Some(Kernel {
        release,
        image,
        modules,
        builtin,
    }))
}

fn module_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let stem = name
        .strip_suffix(".ko")
        .or_else(|| name.strip_suffix(".ko.xz"))?;
    Some(canonical(stem))
}

/// A kernel package that is already here: in the cache, or in apt's own.
fn downloaded(cache: &Path) -> Option<PathBuf> {
    let mut packages: Vec<_> = [cache, Path::new("/var/cache/apt/archives")]
        .into_iter()
        .flat_map(entries)
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // Not the meta package, and neither the cloud kernels, which have no rxe, nor the real-time ones.
            let release = name.strip_prefix("linux-image-").unwrap_or_default();
            release.starts_with(|first: char| first.is_ascii_digit())
                && release.contains("-amd64_")
                && release.ends_with("_amd64.deb")
                && !["cloud", "rt-"]
                    .iter()
                    .any(|flavour| release.contains(flavour))
        })
        .collect();
    packages.sort();
    packages.pop()
}

fn download(cache: &Path) -> Result<PathBuf> {
    let mut command = Command::new(peer::need("apt-cache")?);
    command.args(["depends", META]);
    let told = process::run(&command, Duration::from_secs(60))?;
    let name = told.stdout_text().lines().find_map(|line| {
        let name = line.trim().strip_prefix("Depends: ")?;
        name.starts_with("linux-image-").then(|| name.to_owned())
    });
    let Some(name) = name else {
        bail!(
            "apt knows no package {META}: run apt-get update as root, or put a linux-image-…-amd64 package into {}",
            cache.display()
        );
    };
    let mut command = Command::new(peer::need("apt-get")?);
    command
        .args(["--quiet", "download", &name])
        .current_dir(cache);
    // 70 MB: ten minutes is one Mbit/s.
    process::run(&command, Duration::from_secs(600))
        .and_then(process::Output::success)
        .with_context(|| format!("apt can't download {name}: check the network and run apt-get update, or put the package into {}", cache.display()))?;
    downloaded(cache).with_context(|| format!("apt downloaded no {name} into {}", cache.display()))
}

fn unpack(package: &Path, cache: &Path) -> Result<()> {
    let folder = tempfile::Builder::new()
        .prefix("unpacking-")
        .tempdir_in(cache)
        .context("making a folder in the cache")?;
    let mut command = Command::new("sh");
    // What apt left half downloaded makes dpkg-deb fail and not tar alone, hence two commands and a file between them.
    command.arg("-c").arg("set -e; \"$1\" --fsys-tarfile \"$2\" > data.tar; shift 2; mkdir tree; tar -xf data.tar -C tree \"$@\"; rm data.tar").arg("sh");
    command
        .arg(peer::need("dpkg-deb")?)
        .arg(package)
        .args(["--no-same-owner", "--wildcards"]);
    command.args(
        UNNEEDED
            .iter()
            .map(|part| format!("--exclude=./*lib/modules/*/kernel/{part}/*")),
    );
    command
        .args(["--exclude=./usr/share/*"])
        .current_dir(folder.path());
    process::run(&command, Duration::from_secs(300))
        .and_then(process::Output::success)
        .with_context(|| {
            format!(
                "{} can't be unpacked: remove it if it is damaged",
                package.display()
            )
        })?;
    let name = package.file_stem().unwrap_or_default().to_string_lossy();
    let target = cache.join(format!("{name}.kernel"));
    std::fs::rename(folder.path().join("tree"), &target)
        .with_context(|| format!("moving the kernel to {}", target.display()))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_read_from_modinfo() {
        let module = b"\x7fELF\0license=GPL\0depends=ib-core,ib_uverbs\0name=rdma_rxe\0";
        assert_eq!(
            dependencies(module).expect("a module"),
            ["ib_core", "ib_uverbs"]
        );
        assert!(dependencies(b"\0depends=\0").expect("a module").is_empty());
        assert!(dependencies(b"text").is_err());
    }
}
