//! A server and its client in a guest, run by one script that prints what both of them said.

use anyhow::{Context as _, Result, bail};

use crate::Output;
use crate::process::tail;

/// Begins such a script. The programs write to `so` and `se`, and to `co` and `ce`.
pub(crate) const BEGIN: &str = "cd /tmp; rm -f so se co ce; sc=none\n";

/// Waits for the `server`, which ends by itself unless the client failed with its `code`.
pub(crate) const WAIT: &str =
    "[ $code -eq 0 ] || { sleep 1; kill $server 2>/dev/null; }; wait $server; sc=$?\n";

/// Ends such a script: prints the client's `code`, the server's `sc`, and what both wrote.
pub(crate) const END: &str = "touch so se co ce; echo \"$code $sc\"; \
    for f in co ce so se; do echo '@@ rdma-lab @@'; cat $f; done\n";

/// What stands between the parts.
const MARK: &str = "@@ rdma-lab @@\n";

/// What client and server said, out of what the script printed. No server where it ran none, or did not
/// wait for it.
pub(crate) fn parts(output: &Output) -> Result<(Output, Option<Output>)> {
    let text = output.stdout_text();
    let parts: Vec<&str> = text.split(MARK).collect();
    let said = || {
        let told = tail(&[&output.stdout, &output.stderr]);
        format!("the guest said\n{told}")
    };
    let [codes, co, ce, so, se] = parts.as_slice() else {
        bail!(said());
    };
    let (client, server) = codes.trim().split_once(' ').with_context(said)?;
    let part = |name: &str, code: &str, stdout: &str, stderr: &str| -> Result<Output> {
        Ok(Output {
            command: name.to_owned(),
            stdout: stdout.as_bytes().to_vec(),
            stderr: stderr.as_bytes().to_vec(),
            code: code.parse().with_context(said)?,
            wall: output.wall,
        })
    };
    let client = part("client", client, co, ce)?;
    let server = match server {
        "none" => None,
        code => Some(part("server", code, so, se)?),
    };
    Ok((client, server))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn output(stdout: &str) -> Output {
        Output {
            command: String::new(),
            stdout: stdout.as_bytes().to_vec(),
            stderr: Vec::new(),
            code: 0,
            wall: Duration::ZERO,
        }
    }

    #[test]
    fn what_a_script_prints_is_taken_apart() {
        let text = format!("0 3\n{MARK}out\n{MARK}{MARK}{MARK}error\n");
        let (client, server) = parts(&output(&text)).unwrap();
        assert_eq!((client.code, client.stdout_text().as_str()), (0, "out\n"));
        let server = server.unwrap();
        assert_eq!((server.code, server.stderr_text().as_str()), (3, "error\n"));
        assert!(parts(&output("0 none\n")).is_err());
    }
}
