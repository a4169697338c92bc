//! Labs of real peers: programs that others wrote, run unmodified, so that our own tools are tested against them.
//!
//! Two consumers need this crate, `cargo xtask lab …` and the integration tests of the other crates, and it must never be in a production build:
//! it is a dev-dependency only.
//!
//! | part | what it runs |
//! |---|---|
//! | [`ibsim`] | ibsim with any net file; OpenSM, infiniband-diags and our own tools attached to it |
//! | [`preload`] | perftest, rping, qperf and other verbs programs on our software devices |
//! | [`qemu`] | a guest with Linux rxe and siw, perftest, rping and any of our binaries |
//! | [`rxe`] | our RoCEv2 against Linux rxe in such a guest, with what crosses the wire dissected by tshark |
//! | [`mod@testdata`], [`skip`] | the real files that are not part of the repository, and how a test says that it did not run |
//! | [`mod@peer`] | where a peer program is, and which Debian package it comes from |
//! | [`process`] | child processes that can't outlive the test that started them |
//!
//! ```no_run
//! use rdma_lab::ibsim::{self, Ibsim};
//!
//! # fn main() -> anyhow::Result<()> {
//! if rdma_lab::skip::lacks_ibsim("my test") {
//!     return Ok(());
//! }
//! let sim = Ibsim::start(ibsim::DEFAULT_NET, &ibsim::Options::default())?;
//! let sm = sim.opensm(&ibsim::OpensmOptions::default())?;
//! let found = sim.run("ibnetdiscover", &[], Some("h1"))?.success()?;
//! println!("{} in {:?}", found.stdout_text(), found.wall);
//! # drop(sm);
//! # Ok(())
//! # }
//! ```

pub mod ibsim;
pub mod peer;
pub mod preload;
pub mod process;
pub mod qemu;
pub mod rxe;
pub mod skip;
pub mod testdata;

pub use peer::{packages, peer};
pub use process::Output;
pub use skip::{peer_missing, testdata_missing};
pub use testdata::testdata;
