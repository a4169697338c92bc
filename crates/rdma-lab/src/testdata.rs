//! The real files (firmware, fabrics, samples) that tests use and that are not part of the repository.

use std::path::{Path, PathBuf};

/// The root of the workspace this crate was built in.
#[must_use]
pub fn workspace_root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_path_buf()
}

/// The folder of the real files: `RDMA_TESTDATA`, by default `../shared`; a relative path counts from the root of the workspace.
#[must_use]
pub fn testdata_root() -> PathBuf {
    let named = std::env::var_os("RDMA_TESTDATA").filter(|value| !value.is_empty());
    workspace_root().join(named.unwrap_or_else(|| "../shared".into()))
}

/// A real file or folder below [`testdata_root`], `None` where it is absent.
///
/// `relative` is a path such as `firmware/x`. An absolute path would silently leave the folder, so it is taken as relative to it.
#[must_use]
pub fn testdata(relative: impl AsRef<Path>) -> Option<PathBuf> {
    let relative = relative.as_ref();
    let inside = relative.strip_prefix("/").unwrap_or(relative);
    let path = testdata_root().join(inside);
    path.exists().then_some(path)
}
