//! How far long work has come: on stderr, and only where someone watches.

use std::borrow::Cow;
use std::io::IsTerminal as _;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::{Global, When};

/// Shows how far long work has come. Gone from the screen when dropped.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(global: &Global, doing: impl Into<Cow<'static, str>>) -> Self {
        let shown = match global.progress {
            When::Always => true,
            When::Never => false,
            When::Auto => !global.quiet && std::io::stderr().is_terminal(),
        };
        let target = if shown {
            ProgressDrawTarget::stderr()
        } else {
            ProgressDrawTarget::hidden()
        };
        let bar = ProgressBar::with_draw_target(None, target);
        bar.set_style(style("{spinner} {msg} {pos} {elapsed}"));
        bar.set_message(doing);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// Says how much there is to do; from then on a bar with rate and time left is shown.
    pub fn set_total(&self, total: u64) {
        self.0.set_length(total);
        self.0
            .set_style(style("{msg} [{bar:30}] {pos}/{len} {per_sec} {eta}"));
    }

    /// Says how much is done.
    pub fn set(&self, done: u64) {
        self.0.set_position(done);
    }

    /// Says what is being done now.
    pub fn note(&self, doing: impl Into<Cow<'static, str>>) {
        self.0.set_message(doing);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A broken template is a slip of ours; the default bar is better than a panic.
fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
