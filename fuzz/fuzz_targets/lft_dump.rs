//! Dumps of forwarding tables and subnets: any text is refused or gives tables that can be judged.
#![no_main]

use ib_sm::routing::quality::{Scope, verify};
use ib_sm::routing::{Fabric, dump};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let tables = dump::read(&text).unwrap_or_default();
    // A subnet of the same text, or none.
    let fabric = dump::read_subnet(&text).unwrap_or_default();
    judge(&fabric, &tables);
    if let Ok(empty) = Fabric::new().finish() {
        judge(&empty, &tables);
    }
});

fn judge(fabric: &Fabric, dump: &dump::Dump) {
    let (tables, _) = dump.tables(fabric);
    let mut scope = Scope::default();
    (scope.shifts, scope.bisections) = (3, 3);
    let _ = verify(fabric, &tables, scope);
}
