//! Where the host's files are.

use std::io;
use std::path::{Path, PathBuf};

use crate::fd::Fd;

/// The root under which `sys` and `dev` are looked for: `/`, or a folder of files that stand in
/// for a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysRoot(PathBuf);

/// The most that is read of a file in sysfs.
const MAX_LEN: usize = 64 * 1024;

impl Default for SysRoot {
    fn default() -> Self {
        Self::new("/")
    }
}

impl SysRoot {
    /// Another root.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self(root.into())
    }

    /// A path under the root; `path` is relative.
    #[must_use]
    pub fn join(&self, path: impl AsRef<Path>) -> PathBuf {
        self.0.join(path)
    }

    /// The text of a small file, without white space at its ends.
    ///
    /// Read by `open` and `read` of libc: ibsim's preload library stands in for those only.
    ///
    /// # Errors
    /// What the system says.
    pub fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        let file = Fd::open(&self.join(path), libc::O_RDONLY)?;
        let mut text = Vec::new();
        let mut chunk = [0_u8; 4096];
        while text.len() < MAX_LEN {
            match file.read(&mut chunk)? {
                0 => break,
                count => text.extend(chunk.iter().take(count)),
            }
        }
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    /// The names in a folder, sorted.
    ///
    /// # Errors
    /// What the system says.
    pub fn list(&self, path: impl AsRef<Path>) -> io::Result<Vec<String>> {
        let mut names: Vec<String> = std::fs::read_dir(self.join(path))?
            .filter_map(Result::ok)
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        Ok(names)
    }
}
