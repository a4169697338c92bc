//! Why no device is found, and what to do about it.

use std::fs;
use std::path::Path;

use serde::Serialize;

/// What was looked at, in the order in which a device comes to be.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct DiagnosisReport {
    /// What was looked at.
    pub checks: Vec<Check>,
}

/// One thing that a device needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "cli", derive(schemars::JsonSchema))]
pub struct Check {
    /// What.
    pub name: String,
    /// Whether it is there.
    pub ok: bool,
    /// What was found.
    pub found: String,
    /// What to do where it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

impl Check {
    fn new(name: &str, ok: bool, found: impl Into<String>, step: &str) -> Self {
        Self {
            name: name.into(),
            ok,
            found: found.into(),
            step: (!ok).then(|| step.into()),
        }
    }
}

fn entries(path: &Path) -> Vec<String> {
    let Ok(dir) = fs::read_dir(path) else {
        return Vec::new();
    };
    let mut names: Vec<String> = dir
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        "none".into()
    } else {
        names.join(" ")
    }
}

impl DiagnosisReport {
    /// Looks at the machine whose root directory is `root`, and loads the C libraries.
    #[must_use]
    pub fn look(root: &Path) -> Self {
        let mut checks = vec![library("libibverbs", rverbs_sys::Verbs::load().err())];
        checks.extend(Self::files(root));
        checks.push(library("librdmacm", rverbs_sys::Cm::load().err()));
        checks.push(memlock());
        Self { checks }
    }

    /// The part that is in files.
    fn files(root: &Path) -> Vec<Check> {
        let mut checks = Vec::new();
        let modules = fs::read_to_string(root.join("proc/modules")).unwrap_or_default();
        let loaded = |name: &str| {
            modules
                .lines()
                .any(|line| line.split(' ').next() == Some(name))
                || root.join("sys/module").join(name).is_dir()
        };
        checks.push(Check::new(
            "kernel module ib_uverbs",
            loaded("ib_uverbs"),
            if loaded("ib_uverbs") {
                "loaded"
            } else {
                "not loaded"
            },
            "modprobe ib_uverbs (in a container: on its host); without it, use --device shm0",
        ));
        let devices = entries(&root.join("sys/class/infiniband"));
        let drivers: Vec<&str> = [
            "mlx5_ib", "mlx4_ib", "irdma", "bnxt_re", "efa", "hns_roce", "rdma_rxe", "siw",
        ]
        .into_iter()
        .filter(|name| loaded(name))
        .collect();
        checks.push(Check::new(
            "kernel device",
            !devices.is_empty(),
            list(&devices),
            if drivers.is_empty() {
                "load the adapter's driver (modprobe mlx5_ib), or add a software device: rdma link add \
                 rxe0 type rxe netdev eth0"
            } else {
                "a driver is loaded but has no device: see dmesg; for rxe: rdma link add rxe0 type \
                 rxe netdev eth0"
            },
        ));
        let nodes: Vec<String> = entries(&root.join("dev/infiniband"))
            .into_iter()
            .filter(|name| name.starts_with("uverbs"))
            .collect();
        checks.push(Check::new(
            "device file",
            !nodes.is_empty(),
            list(&nodes),
            "in a container, pass it in: --device /dev/infiniband; otherwise load ib_uverbs",
        ));
        if let Some(node) = nodes.first() {
            let path = root.join("dev/infiniband").join(node);
            let open = fs::OpenOptions::new().read(true).write(true).open(&path);
            checks.push(Check::new(
                "permission",
                open.is_ok(),
                open.map_or_else(|error| error.to_string(), |_| format!("{node} opens")),
                "allow it: udev rules of rdma-core give mode 0666, or run as its group or root",
            ));
        }
        let providers = entries(&root.join("etc/libibverbs.d"));
        checks.push(Check::new(
            "provider libraries",
            !providers.is_empty(),
            format!("{} in /etc/libibverbs.d", providers.len()),
            "install them: apt install ibverbs-providers",
        ));
        checks
    }

    /// Whether all is there for a real device.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.checks.iter().all(|check| check.ok)
    }
}

fn library(name: &str, error: Option<rverbs_sys::Error>) -> Check {
    let found = error.as_ref().map_or_else(
        || "loads".into(),
        |error| {
            let source = std::error::Error::source(error);
            source.map_or_else(|| error.to_string(), ToString::to_string)
        },
    );
    Check::new(
        name,
        error.is_none(),
        found,
        "install it: apt install libibverbs1 librdmacm1",
    )
}

/// How much memory may be locked, which registering needs.
fn memlock() -> Check {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the struct is writable, and all that the call touches.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } == 0;
    let enough = known && limit.rlim_cur >= 64 << 20;
    let found = if limit.rlim_cur == libc::RLIM_INFINITY {
        "unlimited".into()
    } else {
        format!("{} KiB", limit.rlim_cur >> 10)
    };
    Check::new(
        "memory that may be locked",
        enough,
        found,
        "raise it: ulimit -l unlimited, memlock in /etc/security/limits.conf, or --ulimit memlock=-1",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_machine_gets_a_step_for_each_thing() {
        let checks = DiagnosisReport::files(Path::new("/nonexistent"));
        assert_eq!(checks.len(), 4);
        assert!(checks.iter().all(|check| !check.ok && check.step.is_some()));
    }
}
