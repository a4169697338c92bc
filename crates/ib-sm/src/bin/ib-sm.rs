//! `ib-sm`: manages an InfiniBand subnet: routes it, and judges how it is routed.

fn main() -> std::process::ExitCode {
    rdma_cli::main::<ib_sm::cli::Sm>()
}
