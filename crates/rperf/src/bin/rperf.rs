//! The binary.

fn main() -> std::process::ExitCode {
    rdma_cli::main_of::<rperf::cli::Cli>(rperf::cli::command_line(std::env::args_os()))
}
