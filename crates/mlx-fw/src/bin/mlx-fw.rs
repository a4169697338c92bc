//! The command `mlx-fw`.

fn main() -> std::process::ExitCode {
    rdma_cli::main::<mlx_fw::cli::Cli>()
}
