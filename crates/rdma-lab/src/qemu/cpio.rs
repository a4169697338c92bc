//! A file tree as a `newc` cpio archive, the form of an initramfs (Documentation/driver-api/early-userspace/buffer-format.rst in Linux).

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, Result, bail};

/// What is at a path of the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Folder,
    File { bytes: Vec<u8>, executable: bool },
    Link { target: String },
}

/// A file tree, written in the order of its paths, so that each folder comes before what is in it.
#[derive(Debug, Default, Clone)]
pub struct Tree {
    entries: BTreeMap<PathBuf, Entry>,
}

impl Tree {
    /// Adds a folder and those above it.
    ///
    /// # Errors
    /// A path that is not absolute or has `..` in it.
    pub fn folder(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = inside(path.as_ref())?;
        self.parents(&path);
        self.entries.entry(path).or_insert(Entry::Folder);
        Ok(())
    }

    /// Adds a file, in place of what was there.
    ///
    /// # Errors
    /// As [`Tree::folder`].
    pub fn file(
        &mut self,
        path: impl AsRef<Path>,
        bytes: impl Into<Vec<u8>>,
        executable: bool,
    ) -> Result<()> {
        let path = inside(path.as_ref())?;
        self.parents(&path);
        self.entries.insert(
            path,
            Entry::File {
                bytes: bytes.into(),
                executable,
            },
        );
        Ok(())
    }

    /// Adds a symbolic link.
    ///
    /// # Errors
    /// As [`Tree::folder`].
    pub fn link(&mut self, path: impl AsRef<Path>, target: &str) -> Result<()> {
        let path = inside(path.as_ref())?;
        self.parents(&path);
        self.entries.insert(
            path,
            Entry::Link {
                target: target.to_owned(),
            },
        );
        Ok(())
    }

    /// Whether something is at `path`.
    #[must_use]
    pub fn contains(&self, path: impl AsRef<Path>) -> bool {
        inside(path.as_ref()).is_ok_and(|path| self.entries.contains_key(&path))
    }

    /// The archive.
    ///
    /// # Errors
    /// A file above 4 GiB, which the format can't hold.
    pub fn archive(&self) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        for (index, (path, entry)) in self.entries.iter().enumerate() {
            let (mode, bytes) = match entry {
                Entry::Folder => (0o040_755, &[][..]),
                Entry::File {
                    bytes,
                    executable: true,
                } => (0o100_755, bytes.as_slice()),
                Entry::File {
                    bytes,
                    executable: false,
                } => (0o100_644, bytes.as_slice()),
                Entry::Link { target } => (0o120_777, target.as_bytes()),
            };
            let name = path
                .to_str()
                .with_context(|| format!("{} is not UTF-8", path.display()))?;
            record(&mut out, index + 1, mode, name, bytes)?;
        }
        record(&mut out, 0, 0, "TRAILER!!!", &[])?;
        Ok(out)
    }

    fn parents(&mut self, path: &Path) {
        for parent in path
            .ancestors()
            .skip(1)
            .filter(|parent| !parent.as_os_str().is_empty())
        {
            self.entries
                .entry(parent.to_path_buf())
                .or_insert(Entry::Folder);
        }
    }
}

/// The path without its leading `/`, as the archive names it.
fn inside(path: &Path) -> Result<PathBuf> {
    let mut components = path.components();
    if components.next() != Some(Component::RootDir) {
        bail!("the path in the guest is not absolute: {}", path.display());
    }
    let rest = components.as_path();
    if rest.as_os_str().is_empty()
        || !rest
            .components()
            .all(|part| matches!(part, Component::Normal(_)))
    {
        bail!("not a path of a file in the guest: {}", path.display());
    }
    Ok(rest.to_path_buf())
}

fn record(out: &mut Vec<u8>, inode: usize, mode: u32, name: &str, bytes: &[u8]) -> Result<()> {
    let size = u32::try_from(bytes.len())
        .with_context(|| format!("{name} is too large for an initramfs"))?;
    // magic, then inode, mode, uid, gid, links, mtime, size, device major and minor, rdev major and minor, name size with NUL, check; 8 hex digits each.
    out.extend_from_slice(b"070701");
    let name_size = name.len() + 1;
    for field in [
        inode,
        mode as usize,
        0,
        0,
        1,
        0,
        size as usize,
        0,
        0,
        0,
        0,
        name_size,
        0,
    ] {
        out.extend_from_slice(format!("{field:08x}").as_bytes());
    }
    out.extend_from_slice(name.as_bytes());
    out.push(0);
    pad(out);
    out.extend_from_slice(bytes);
    pad(out);
    Ok(())
}

/// Names and contents start at multiples of 4.
fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_first_and_everything_is_aligned() {
        let mut tree = Tree::default();
        tree.file("/a/b/c", *b"hello", true).expect("a good path");
        tree.link("/z", "a").expect("a good path");
        let archive = tree.archive().expect("small");
        let text = String::from_utf8_lossy(&archive).replace('\0', ".");
        let names: Vec<_> = ["a.", "a/b.", "a/b/c.", "z.", "TRAILER!!!."]
            .iter()
            .map(|name| text.find(name))
            .collect();
        assert!(
            names.is_sorted() && names.iter().all(Option::is_some),
            "{names:?}"
        );
        assert_eq!(archive.len() % 4, 0);
        let header = "07070100000003000081ed00000000000000000000000100000000000000050000000000000000000000000000000000000006";
        assert!(text.contains(header), "{text}");
    }

    #[test]
    fn a_path_can_not_leave_the_tree() {
        for path in ["relative", "/", "/../x", "/a/../b"] {
            assert!(Tree::default().file(path, *b"", false).is_err(), "{path}");
        }
    }
}
