//! Safe RDMA verbs over real adapters, over shared memory and over RoCEv2 in user space.
//!
//! ```
//! use rverbs::qp::{Address, ConnectAttr, Flags, Qp, Rc};
//! use rverbs::wc::Wc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A software device: it is there on any machine. Otherwise see `rverbs::devices()`.
//! let context = rverbs::Device::shm()?.open()?;
//! let pd = context.alloc_pd()?;
//! let cq = context.create_cq(64)?;
//! let mut a: Qp<Rc> = pd.qp(&cq).build()?;
//! let mut b: Qp<Rc> = pd.qp(&cq).build()?;
//!
//! // Each side tells the other where it is; `rverbs::exchange` does that over a socket.
//! let here = Address { lid: context.query_port(1)?.lid, gid: None };
//! let (ours, theirs) = (a.endpoint(1, here), b.endpoint(2, here));
//! let how = ConnectAttr::default();
//! a.init(&how)?;
//! b.init(&how)?;
//! a.connect(&ours, &theirs, &how)?;
//! b.connect(&theirs, &ours, &how)?;
//!
//! // Memory is cut into slices, which posting takes and completing gives back.
//! let mut slices = pd.register(context.alloc(8192)?)?.into_slices(4096);
//! let (mut hello, room) = (slices.remove(0), slices.remove(0));
//! hello[..5].copy_from_slice(b"hello");
//! b.recv.post(room)?;
//! a.send.send(hello, Flags::SIGNALED)?;
//!
//! let mut wcs = [Wc::default(); 8];
//! let (mut sent, mut received) = (None, None);
//! while sent.is_none() || received.is_none() {
//!     for wc in cq.poll(&mut wcs)? {
//!         if let Some(result) = a.send.complete(wc) {
//!             result?;
//!             sent = a.send.reclaim();
//!         } else if let Some((result, buf)) = b.recv.complete(wc) {
//!             result?;
//!             received = Some(buf);
//!         }
//!     }
//! }
//! assert_eq!(&received.unwrap()[..5], b"hello");
//! # Ok(())
//! # }
//! ```
//!
//! - [`devices`]: what there is. [`Context`]: an open device. [`gid`]: which address to use.
//! - [`mr`]: memory, and who may touch it when. [`qp`]: queue pairs. [`cq`] and [`wc`]: completions.
//! - [`stream`]: completions for `async` code, on whatever executor.
//! - [`srq`], [`ah`], [`event`]: shared receive queues, datagrams' addresses, asynchronous events.
//! - [`exchange`], [`cm`]: how two queue pairs find each other. [`ping`]: rping, both ends.
//! - [`preload`]: running programs that were written in C on a software device.
//! - [`provider`]: what makes verbs happen, and how to write another.
//!
//! # Safety
//!
//! No safe call can make a device, or a peer, touch memory that Rust code uses in a conflicting way;
//! not by dropping or forgetting a value, not by a panic, not by an error with work in flight. How:
//! requests own their buffers until their completion; objects own what they need; memory that peers
//! may write is never a `&[u8]`; what cannot be given back is leaked. [`qp::SendQueue::post_raw`] is the
//! way around it.
#![expect(
    unsafe_code,
    reason = "verbs are C's, and the memory of requests is used behind the compiler's back"
)]
#![expect(
    clippy::multiple_unsafe_ops_per_block,
    reason = "to follow a pointer and to use what it leads to is one step, with one reason"
)]

pub mod ah;
#[cfg(feature = "cli")]
pub mod cli;
pub mod cm;
#[cfg(doctest)]
mod compile_fail;
pub mod cq;
mod device;
pub mod diagnosis;
mod error;
pub mod event;
pub mod exchange;
pub mod gid;
pub mod mr;
mod pd;
pub mod ping;
pub mod preload;
pub mod provider;
pub mod qp;
pub mod report;
pub mod srq;
pub mod stream;
pub mod wc;

pub use device::{Context, Device, Found, devices, providers};
pub use error::Error;
pub use pd::Pd;
