//! The command line, as recorded in `tests/cmd`.

#[test]
fn commands() {
    trycmd::TestCases::new().case("tests/cmd/*.trycmd");
}
