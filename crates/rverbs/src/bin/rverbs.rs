//! The binary.

fn main() -> std::process::ExitCode {
    rdma_cli::main::<rverbs::cli::Cli>()
}
