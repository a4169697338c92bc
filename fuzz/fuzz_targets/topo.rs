//! Net files, dumps and reports: any text is refused or gives a consistent topology, and what is
//! written of it is read again.
#![no_main]

use ib_sim::topo::file::{Options, read, read_with, write};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let mut include = |_: &str| Some(data.to_vec());
    let _ = read_with("f", data, &Options::new().strict(), &mut include);
    let Ok(parsed) = read("f", data) else { return };
    let t = parsed.topology;
    let text = write(&t);
    let again = read_with(
        "again",
        text.as_bytes(),
        &Options::new().strict(),
        &mut |_| None,
    );
    let again = again.unwrap_or_else(|e| panic!("{e}\n{text}")).topology;
    assert_eq!(t.nodes().len(), again.nodes().len(), "{text}");
    assert!(t.links().eq(again.links()), "{text}");
});
