//! Any answers to the questions of a walk.
#![no_main]

#[path = "../../crates/ib-sm/tests/it/scripted.rs"]
mod scripted;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = scripted::walk(data);
});
