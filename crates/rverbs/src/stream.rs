//! Completions for `async` code, on whatever executor.
//!
//! [`Completions`] is a completion queue with a channel of its own. It asks for events and waits for the
//! channel's descriptor only when there is nothing to poll, so a busy queue costs no system call.
//!
//! How to wait for a descriptor is the reactor's affair: [`Readiness`] is all that is asked of it. With the
//! feature `async`, `async_io::Async` is one that works under every executor. Another reactor's is
//! a few lines; for tokio:
//!
//! ```ignore
//! struct Tokio(tokio::io::unix::AsyncFd<rverbs::cq::Channel>);
//! impl rverbs::stream::Readiness for Tokio {
//!     fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
//!         let mut guard = ready!(self.0.poll_read_ready(cx))?;
//!         guard.clear_ready();
//!         Poll::Ready(Ok(()))
//!     }
//! }
//! ```
//!
//! No future here owns a buffer: what is in flight is the queue pair's until its completion. So a future
//! can be dropped at any point, and the next one goes on where it was.

use core::future::poll_fn;
use core::task::{Context as Task, Poll, ready};
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _};

use crate::Error;
use crate::cq::{Channel, Cq};
use crate::device::Context;
use crate::wc::Wc;

/// Waits until a descriptor is readable.
pub trait Readiness {
    /// Ready when it may be; otherwise the task is woken when it is. Ready too often does no harm.
    ///
    /// # Errors
    ///
    /// What the reactor said.
    fn poll_readable(&mut self, cx: &mut Task<'_>) -> Poll<io::Result<()>>;
}

#[cfg(feature = "async")]
impl Readiness for async_io::Async<Channel> {
    fn poll_readable(&mut self, cx: &mut Task<'_>) -> Poll<io::Result<()>> {
        Self::poll_readable(self, cx)
    }
}

/// A completion queue to await.
#[derive(Debug)]
pub struct Completions<R> {
    cq: Cq,
    channel: Channel,
    readiness: R,
    /// An event was asked for and did not come yet.
    armed: bool,
}

impl<R: Readiness> Completions<R> {
    /// Makes a queue for at least `entries` completions, with a channel that `wait` makes a reactor wait
    /// for. The channel's descriptor is non-blocking then.
    ///
    /// # Errors
    ///
    /// What the provider, the operating system or the reactor said.
    pub fn with(
        context: &Context,
        entries: u32,
        wait: impl FnOnce(Channel) -> io::Result<R>,
    ) -> Result<Self, Error> {
        let channel = context.create_channel()?;
        let cq = context.create_cq_with(entries, &channel)?;
        set_nonblocking(&channel).map_err(Error::io("changing a descriptor"))?;
        let readiness =
            wait(channel.clone()).map_err(Error::io("adding a descriptor to a reactor"))?;
        Ok(Self {
            cq,
            channel,
            readiness,
            armed: false,
        })
    }

    /// The queue, to make queue pairs with.
    #[must_use]
    pub fn cq(&self) -> &Cq {
        &self.cq
    }

    /// Takes completions; pending while there are none.
    ///
    /// # Errors
    ///
    /// What polling, asking for an event or the reactor said.
    pub fn poll_next(&mut self, cx: &mut Task<'_>, into: &mut [Wc]) -> Poll<Result<usize, Error>> {
        loop {
            let count = self.cq.poll(into)?.len();
            if count > 0 || into.is_empty() {
                return Poll::Ready(Ok(count));
            }
            if !self.armed {
                self.cq.notify(false)?;
                self.armed = true;
                // What came before it was asked for makes no event.
                continue;
            }
            ready!(self.readiness.poll_readable(cx)).map_err(Error::io("waiting for an event"))?;
            match self.channel.wait(&self.cq) {
                Ok(_) => self.armed = false,
                Err(error) if error.errno() == Some(libc::EAGAIN) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Takes completions, as many as there are and fit, and waits for the first.
    ///
    /// # Errors
    ///
    /// As [`Completions::poll_next`].
    pub async fn next<'a>(&mut self, into: &'a mut [Wc]) -> Result<&'a mut [Wc], Error> {
        let count = poll_fn(|cx| self.poll_next(cx, into)).await?;
        Ok(into.get_mut(..count).unwrap_or_default())
    }
}

#[cfg(feature = "async")]
impl Completions<async_io::Async<Channel>> {
    /// Makes a queue for at least `entries` completions.
    ///
    /// # Errors
    ///
    /// What the provider or the operating system said.
    pub fn new(context: &Context, entries: u32) -> Result<Self, Error> {
        Self::with(context, entries, async_io::Async::new)
    }
}

#[cfg(feature = "async")]
impl<R: Readiness + Unpin> futures_core::Stream for Completions<R> {
    type Item = Result<Wc, Error>;

    /// It never ends by itself.
    fn poll_next(self: core::pin::Pin<&mut Self>, cx: &mut Task<'_>) -> Poll<Option<Self::Item>> {
        let mut wcs = [Wc::default(); 1];
        let polled = ready!(Self::poll_next(self.get_mut(), cx, &mut wcs));
        let [wc] = wcs;
        Poll::Ready(Some(polled.map(|_| wc)))
    }
}

fn set_nonblocking(channel: &Channel) -> io::Result<()> {
    let fd = channel.as_fd().as_raw_fd();
    // SAFETY: the descriptor is open, and its flags are read.
    let flags = unsafe { libc::fcntl(fd, libc::F_GETFL) };
    // SAFETY: as above; they are set.
    if flags < 0 || unsafe { libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
