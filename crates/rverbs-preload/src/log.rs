//! What the library says about itself, when it is asked to.

use std::sync::Once;

/// The variable that asks for it.
const VARIABLE: &str = "RVERBS_LOG";

/// Starts writing events to stderr where `RVERBS_LOG` names a level. Without it the library prints
/// nothing, whatever happens: stdout and stderr are the program's.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let Some(level) = std::env::var(VARIABLE)
            .ok()
            .and_then(|level| level.parse::<tracing::Level>().ok())
        else {
            return;
        };
        // A program that is written in Rust has its own copy of `tracing`; this one is ours alone.
        let _ = tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .try_init();
    });
}
