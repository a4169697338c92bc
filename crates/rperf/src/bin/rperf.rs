//! The binary.

fn main() -> std::process::ExitCode {
    rdma_cli::main::<rperf::cli::Cli>()
}
