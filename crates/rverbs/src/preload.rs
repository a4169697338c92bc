//! Running a program, unmodified, on a software device: `librverbs_preload.so` under it.
//!
//! ```
//! use rverbs::preload::{Launch, obstacle};
//!
//! let launch = Launch {
//!     providers: vec!["shm".into()],
//!     ..Launch::default()
//! };
//! let environment = launch.environment("/usr/lib/librverbs_preload.so".as_ref(), None);
//! assert!(environment.contains(&("RVERBS_PROVIDER".into(), "shm".into())));
//! assert_eq!(obstacle(b"#!/bin/sh\n", 0o755), None);
//! ```

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::Error;

/// File name of the library.
pub const LIBRARY: &str = "librverbs_preload.so";
/// Names the library, for who keeps it somewhere else.
pub const LIBRARY_VARIABLE: &str = "RVERBS_PRELOAD";
/// Names the providers whose devices a program sees, with commas between them.
pub const PROVIDER_VARIABLE: &str = "RVERBS_PROVIDER";
/// Names the level at which the library talks about itself on stderr.
pub const LOG_VARIABLE: &str = "RVERBS_LOG";

/// How a program is to be run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Launch {
    /// The providers whose devices it sees; the first one's are first.
    pub providers: Vec<String>,
    /// The first UDP port that `roce` tries, if not the standard one.
    pub roce_port: Option<u16>,
    /// The address whose device `roce` is to have alone, if not all of this host's.
    pub roce_address: Option<IpAddr>,
    /// A level (`info`, `debug`, …) at which the library talks about itself on stderr.
    pub log: Option<String>,
}

impl Launch {
    /// The variables to set. `preloaded` is what `LD_PRELOAD` holds already, which stays.
    #[must_use]
    pub fn environment(
        &self,
        library: &Path,
        preloaded: Option<&OsStr>,
    ) -> Vec<(OsString, OsString)> {
        let mut preload = library.as_os_str().to_owned();
        if let Some(more) = preloaded.filter(|more| !more.is_empty()) {
            preload.push(":");
            preload.push(more);
        }
        let mut variables = vec![
            ("LD_PRELOAD".into(), preload),
            (PROVIDER_VARIABLE.into(), self.providers.join(",").into()),
        ];
        if let Some(port) = self.roce_port {
            let name = crate::provider::roce::PORT_VARIABLE;
            variables.push((name.into(), port.to_string().into()));
        }
        if let Some(address) = self.roce_address {
            let name = crate::provider::roce::ADDRESS_VARIABLE;
            variables.push((name.into(), address.to_string().into()));
        }
        if let Some(level) = &self.log {
            variables.push((LOG_VARIABLE.into(), level.into()));
        }
        variables
    }
}

/// Finds the library: where `RVERBS_PRELOAD` says, beside this program, in `../lib` from it, or in
/// `deps` below it, where cargo builds it.
///
/// # Errors
///
/// [`Error::NoPreload`] with the places that were looked at.
pub fn find() -> Result<PathBuf, Error> {
    let said = env::var_os(LIBRARY_VARIABLE).map(PathBuf::from);
    let program = env::current_exe().unwrap_or_default();
    find_at(said, program.parent().unwrap_or_else(|| Path::new("/")))
}

fn find_at(said: Option<PathBuf>, folder: &Path) -> Result<PathBuf, Error> {
    let looked = match said {
        Some(path) => vec![path],
        None => ["", "../lib", "../lib/rverbs", "deps"]
            .map(|below| folder.join(below).join(LIBRARY))
            .to_vec(),
    };
    match looked.iter().find(|path| path.is_file()) {
        // The dynamic linker looks a name with a slash up from the program's current folder.
        Some(path) => Ok(path.canonicalize().unwrap_or_else(|_| path.clone())),
        None => Err(Error::NoPreload { looked }),
    }
}

/// Why a program would not notice a preloaded library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Obstacle {
    /// Nothing is linked when it starts.
    Static,
    /// It runs with another user's or group's rights, and the dynamic linker ignores the environment.
    Privileged,
    /// It is for another kind of processor.
    Foreign,
    /// It is linked with musl's C library, which cannot load what is linked with glibc.
    Musl,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "it is statically linked",
            Self::Privileged => "it has the set-user-ID or set-group-ID bit",
            Self::Foreign => "it is for another processor or is 32-bit",
            Self::Musl => "it is linked with musl, and the library with glibc",
        })
    }
}

/// Why a program that begins with `bytes` and has these permissions would not notice a preloaded
/// library. What is no ELF file, such as a script, is fine: its interpreter notices.
#[must_use]
pub fn obstacle(bytes: &[u8], mode: u32) -> Option<Obstacle> {
    const SET_ID: u32 = 0o6000;
    if mode & SET_ID != 0 {
        return Some(Obstacle::Privileged);
    }
    if !bytes.starts_with(b"\x7fELF") {
        return None;
    }
    let half = |at: usize| {
        let bytes = bytes.get(at..)?.first_chunk()?;
        Some(u16::from_le_bytes(*bytes))
    };
    let machine = match env::consts::ARCH {
        "x86_64" => 62,
        "aarch64" => 183,
        _ => return None,
    };
    // Class 2 is 64-bit, data 1 little-endian.
    if bytes.get(4..6) != Some(&[2, 1]) || half(18) != Some(machine) {
        return Some(Obstacle::Foreign);
    }
    let long = |at: usize| {
        let bytes = bytes.get(at..)?.first_chunk()?;
        usize::try_from(u64::from_le_bytes(*bytes)).ok()
    };
    let (start, size, count) = (long(32)?, usize::from(half(54)?), usize::from(half(56)?));
    // A header that names an interpreter (PT_INTERP) is what makes a program dynamic.
    let interpreter = (0..count)
        .filter_map(|index| start.checked_add(index.checked_mul(size)?))
        .find(|at| half(*at) == Some(3));
    let Some(header) = interpreter else {
        return Some(Obstacle::Static);
    };
    let (from, len) = (
        long(header.checked_add(8)?)?,
        long(header.checked_add(32)?)?,
    );
    let name = bytes.get(from..from.checked_add(len)?)?;
    let musl = cfg!(target_env = "gnu") && name.windows(7).any(|part| part == b"ld-musl");
    musl.then_some(Obstacle::Musl)
}

/// Finds a program as the shell does, and checks that it would notice the library.
///
/// # Errors
///
/// [`Error::NoProgram`] where it is not there, [`Error::Unpreloadable`] where it would not notice.
pub fn program(name: &OsStr) -> Result<PathBuf, Error> {
    let missing = || Error::NoProgram {
        name: name.to_string_lossy().into_owned(),
    };
    let path = if name.as_encoded_bytes().contains(&b'/') {
        PathBuf::from(name)
    } else {
        env::split_paths(&env::var_os("PATH").unwrap_or_default())
            .map(|folder| folder.join(name))
            .find(|path| {
                path.metadata()
                    .is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
            })
            .ok_or_else(missing)?
    };
    let file = File::open(&path);
    let mode = path.metadata().map_err(|_| missing())?.permissions().mode();
    let mut bytes = Vec::new();
    // A program that may be run and not read is taken as it is.
    if let Ok(file) = file {
        let _ = file.take(4096).read_to_end(&mut bytes);
    }
    match obstacle(&bytes, mode) {
        None => Ok(path),
        Some(why) => Err(Error::Unpreloadable { path, why }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_keeps_what_was_preloaded() {
        let launch = Launch {
            providers: vec!["roce".into(), "shm".into()],
            roce_port: Some(4800),
            roce_address: Some([192, 0, 2, 1].into()),
            log: Some("debug".into()),
        };
        let variables = launch.environment("/l.so".as_ref(), Some("/other.so".as_ref()));
        let find = |name: &str| {
            variables
                .iter()
                .find(|(key, _)| key == name)
                .unwrap()
                .1
                .clone()
        };
        assert_eq!(find("LD_PRELOAD"), "/l.so:/other.so");
        assert_eq!(find("RVERBS_PROVIDER"), "roce,shm");
        assert_eq!(find("RVERBS_ROCE_PORT"), "4800");
        assert_eq!(find("RVERBS_ROCE_ADDRESS"), "192.0.2.1");
        assert_eq!(find("RVERBS_LOG"), "debug");
        let bare = Launch::default().environment("/l.so".as_ref(), Some("".as_ref()));
        assert_eq!(bare.first().unwrap().1, "/l.so");
    }

    #[test]
    fn what_would_not_notice_the_library_is_told() {
        let this = std::fs::read(env::current_exe().unwrap()).unwrap();
        let head = &this[..4096];
        assert_eq!(obstacle(head, 0o755), None);
        assert_eq!(obstacle(head, 0o4755), Some(Obstacle::Privileged));
        let mut foreign = head.to_vec();
        foreign[18] = 0xff;
        assert_eq!(obstacle(&foreign, 0o755), Some(Obstacle::Foreign));
        let mut without = head.to_vec();
        // No program headers at all.
        without[56..58].fill(0);
        assert_eq!(obstacle(&without, 0o755), Some(Obstacle::Static));
        // The interpreter's name, in place.
        let mut musl = head.to_vec();
        let at = musl
            .windows(9)
            .position(|part| part == b"/ld-linux")
            .unwrap();
        musl[at..at + 9].copy_from_slice(b"/ld-musl-");
        assert_eq!(obstacle(&musl, 0o755), Some(Obstacle::Musl));
        for cut in 0..64 {
            let _ = obstacle(&head[..cut], 0o755);
        }
    }

    #[test]
    fn the_places_are_named_where_it_is_not() {
        let Err(Error::NoPreload { looked }) = find_at(None, "/nowhere/bin".as_ref()) else {
            panic!("found in a folder that does not exist");
        };
        assert_eq!(
            looked[1],
            Path::new("/nowhere/bin/../lib/librverbs_preload.so")
        );
        let said = find_at(Some("/nowhere/x.so".into()), "/".as_ref());
        assert!(matches!(said, Err(Error::NoPreload { looked }) if looked.len() == 1));
    }

    #[test]
    fn a_program_is_found_as_the_shell_does() {
        assert!(program("sh".as_ref()).unwrap().ends_with("sh"));
        assert!(matches!(
            program("no-such-program".as_ref()),
            Err(Error::NoProgram { .. })
        ));
        assert!(matches!(
            program("/no/such/program".as_ref()),
            Err(Error::NoProgram { .. })
        ));
    }
}
