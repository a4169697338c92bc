//! The output of a program, collected while it runs.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What a program wrote, collected by a thread.
#[derive(Debug, Clone)]
pub(super) struct Stream {
    shared: Arc<(Mutex<Collected>, Condvar)>,
}

#[derive(Debug, Default)]
struct Collected {
    bytes: Vec<u8>,
    ended: bool,
}

impl Stream {
    pub(super) fn collect(source: Option<impl std::io::Read + Send + 'static>) -> Self {
        let shared = Arc::new((Mutex::new(Collected::default()), Condvar::new()));
        let stream = Self {
            shared: Arc::clone(&shared),
        };
        std::thread::spawn(move || {
            let mut chunk = [0; 8192];
            let mut source = source;
            loop {
                let got = source
                    .as_mut()
                    .map_or(0, |source| source.read(&mut chunk).unwrap_or(0));
                let mut collected = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
                collected
                    .bytes
                    .extend_from_slice(chunk.get(..got).unwrap_or_default());
                collected.ended = got == 0;
                shared.1.notify_all();
                if got == 0 {
                    return;
                }
            }
        });
        stream
    }

    pub(super) fn bytes(&self) -> Vec<u8> {
        self.lock().bytes.clone()
    }

    pub(super) fn ended(&self) -> bool {
        self.lock().ended
    }

    /// Sleeps until something new arrives, at most for `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        let guard = self.lock();
        if guard.ended {
            drop(guard);
            std::thread::sleep(limit.min(Duration::from_millis(1)));
            return;
        }
        let _ = self.shared.1.wait_timeout(guard, limit);
    }

    fn lock(&self) -> MutexGuard<'_, Collected> {
        self.shared.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
