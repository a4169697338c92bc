//! The command line, against goldens.

#[test]
fn goldens() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
