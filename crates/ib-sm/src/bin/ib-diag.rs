//! `ib-diag`: what is there on an InfiniBand subnet, and what is wrong with it.

fn main() -> std::process::ExitCode {
    rdma_cli::main::<ib_sm::cli::Diag>()
}
