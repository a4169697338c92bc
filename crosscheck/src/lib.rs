//! rverbs-sys against rdma-sys.
//!
//! rverbs-sys has the declarations of libibverbs and librdmacm checked in. rdma-sys makes its own from
//! the headers of the machine with bindgen, whenever it is built. Both must say the same; the tests of
//! this package compare every type, field and constant, and that none was left out.

pub mod constant;
pub mod layout;

/// Something that both crates say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair<T> {
    /// What it is, as C calls it.
    pub name: &'static str,
    /// What rverbs-sys says.
    pub ours: T,
    /// What rdma-sys says.
    pub theirs: T,
}

impl<T: PartialEq> Pair<T> {
    const fn new(name: &'static str, ours: T, theirs: T) -> Self {
        Self { name, ours, theirs }
    }

    /// Whether they agree.
    #[must_use]
    pub fn agrees(&self) -> bool {
        self.ours == self.theirs
    }
}
