//! Programs that must not compile: each would let the device and Rust use the same memory.
//!
//! A buffer that was posted is gone:
//! ```compile_fail,E0382
//! # use rverbs::{mr::Slice, qp::{Flags, Qp, Rc}};
//! fn f(qp: &mut Qp<Rc>, buf: Slice) {
//!     qp.send.send(buf, Flags::SIGNALED).unwrap();
//!     assert_eq!(buf[0], 0);
//! }
//! ```
//! The same with the buffer used before only, which compiles:
//! ```
//! # use rverbs::{mr::Slice, qp::{Flags, Qp, Rc}};
//! fn f(qp: &mut Qp<Rc>, buf: Slice) {
//!     assert_eq!(buf[0], 0);
//!     qp.send.send(buf, Flags::SIGNALED).unwrap();
//! }
//! ```
//! Memory that peers may write is not a slice of bytes:
//! ```compile_fail,E0308
//! # use rverbs::mr::RemoteMr;
//! fn f(mr: &RemoteMr) -> &[u8] {
//!     mr
//! }
//! ```
//! A slice of memory cannot be copied:
//! ```compile_fail,E0599
//! # use rverbs::mr::Slice;
//! fn f(slice: Slice) -> (Slice, Slice) {
//!     (slice.clone(), slice)
//! }
//! ```
//! A datagram needs an address:
//! ```compile_fail,E0599
//! # use rverbs::{mr::Slice, qp::{Flags, Qp, Ud}};
//! fn f(qp: &mut Qp<Ud>, buf: Slice) {
//!     qp.send.send(buf, Flags::SIGNALED).unwrap();
//! }
//! ```
//! An unreliable connection has no reads:
//! ```compile_fail,E0599
//! # use rverbs::{mr::{RemoteRegion, Slice}, qp::{Flags, Qp, Uc}};
//! fn f(qp: &mut Qp<Uc>, buf: Slice, from: RemoteRegion) {
//!     qp.send.read(buf, from, Flags::SIGNALED).unwrap();
//! }
//! ```
//! Two threads cannot post to one end:
//! ```compile_fail,E0277
//! # use rverbs::{mr::Slice, qp::{Rc, SendQueue}};
//! fn shared<T: Sync>() {}
//! fn f() {
//!     shared::<SendQueue<Rc, Slice>>();
//! }
//! ```
//! But an end may move to another thread:
//! ```
//! # use rverbs::{mr::Slice, qp::{Rc, RecvQueue, SendQueue}};
//! fn moves<T: Send>() {}
//! moves::<SendQueue<Rc, Slice>>();
//! moves::<RecvQueue<Slice>>();
//! ```
//! Borrowed memory does not come back before its scope has ended:
//! ```compile_fail,E0503
//! # use rverbs::{mr::Slice, qp::{Qp, Rc}};
//! # use std::time::Duration;
//! fn f(qp: &mut Qp<Rc>) {
//!     let mut memory = [0; 64];
//!     qp.scope(Duration::ZERO, |scope| {
//!         let mr = scope.register(&mut memory).unwrap();
//!         memory[0] = 1;
//!         scope.recv(&mr, 0..64).unwrap();
//!     })
//!     .unwrap();
//! }
//! ```
//! Nor does it leave the scope:
//! ```compile_fail,E0597
//! # use rverbs::{mr::Slice, qp::{Qp, Rc}};
//! # use std::time::Duration;
//! fn f(qp: &mut Qp<Rc>) {
//!     qp.scope(Duration::ZERO, |scope| {
//!         let mut memory = [0; 64];
//!         let mr = scope.register(&mut memory).unwrap();
//!         scope.recv(&mr, 0..64).unwrap();
//!     })
//!     .unwrap();
//! }
//! ```
//! A transport of one's own cannot be made:
//! ```compile_fail,E0277
//! # use rverbs::qp::Transport;
//! #[derive(Debug)]
//! struct Mine;
//! impl Transport for Mine {
//!     const KIND: u32 = 2;
//! }
//! ```
