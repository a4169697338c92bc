//! Standing in for perftest's programs, under their names.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use crate::spec::{Metric, Verb};

/// Options of perftest's that say nothing here: the clock does not depend on the processor's frequency.
const IDLE: [&str; 2] = ["-F", "--CPU-freq"];
/// Options that are called otherwise here, where all tools have `-q` and `-o`.
const OTHERS: [(&str, &str); 2] = [("-q", "--qp"), ("-o", "--outs")];

/// The command line that a command line means: `ib_send_bw -q 2 HOST` is
/// `rperf send bw --compat perftest --qp 2 HOST`. What is not called by such a name stays as it is.
pub fn command_line(line: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut line = line.into_iter();
    let Some(program) = line.next() else {
        return Vec::new();
    };
    let Some((verb, metric)) = test_of(&program) else {
        return std::iter::once(program).chain(line).collect();
    };
    let mut meant: Vec<OsString> = ["rperf", verb.name(), metric.name(), "--compat", "perftest"]
        .map(OsString::from)
        .into();
    for part in line {
        let text = part.to_string_lossy();
        if IDLE.contains(&text.as_ref()) {
            continue;
        }
        let other = OTHERS
            .iter()
            .find_map(|(theirs, ours)| Some((ours, text.strip_prefix(theirs)?)));
        match other {
            // The value may be in the same part.
            Some((ours, value)) => {
                meant.push(ours.into());
                meant.extend((!value.is_empty()).then(|| value.trim_start_matches('=').into()));
            }
            None => meant.push(part),
        }
    }
    meant
}

/// The test that a program's name names: `ib_write_lat`.
fn test_of(program: &OsStr) -> Option<(Verb, Metric)> {
    let name = Path::new(program).file_name()?.to_str()?;
    let (verb, metric) = name.strip_prefix("ib_")?.split_once('_')?;
    let verb = Verb::ALL.into_iter().find(|it| it.name() == verb)?;
    let metrics = [Metric::Bandwidth, Metric::Latency];
    Some((verb, metrics.into_iter().find(|it| it.name() == metric)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(line: &str) -> String {
        let line = command_line(line.split(' ').map(OsString::from));
        let line: Vec<_> = line.iter().map(|part| part.to_string_lossy()).collect();
        line.join(" ")
    }

    #[test]
    fn names_are_tests() {
        assert_eq!(
            meant("/usr/bin/ib_send_bw -F -q 2 -o4 -s 64 host"),
            "rperf send bw --compat perftest --qp 2 --outs 4 -s 64 host"
        );
        assert_eq!(meant("rperf send bw -q"), "rperf send bw -q");
        assert_eq!(meant("ib_devinfo -v"), "ib_devinfo -v");
    }
}
