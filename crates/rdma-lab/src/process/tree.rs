//! Processes and what descends from them, by `/proc`.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

/// Kills a process and all that descend from it. Each is stopped before its children are looked for, so that it can't start one more meanwhile.
pub(super) fn kill_tree(root: u32) {
    let deadline = Instant::now() + Duration::from_secs(1);
    let mut stopped = Vec::new();
    loop {
        let found = descendants(root);
        let fresh: Vec<u32> = found
            .into_iter()
            .filter(|id| !stopped.contains(id))
            .collect();
        if fresh.is_empty() || Instant::now() > deadline {
            break;
        }
        for &id in &fresh {
            signal_one(id, Signal::SIGSTOP);
        }
        while fresh
            .iter()
            .any(|id| !matches!(state(&id.to_string()), None | Some('T' | 'Z' | 'X')))
            && Instant::now() < deadline
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        stopped.extend(fresh);
    }
    for id in stopped {
        signal_one(id, Signal::SIGKILL);
    }
}

fn signal_one(id: u32, signal: Signal) {
    if let Ok(id) = i32::try_from(id) {
        let _ = kill(Pid::from_raw(id), signal);
    }
}

/// The process and all that descend from it, as `/proc` has them now.
fn descendants(id: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let child = entry.ok()?.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).ok()?;
            // `pid (name) state parent …`
            let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
            Some((child, parent))
        })
        .collect();
    let mut found = vec![id];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(
            parents
                .iter()
                .filter(|(_, of)| *of == parent)
                .map(|(child, _)| *child),
        );
        next += 1;
    }
    found
}

/// Whether a process with this id runs; one that has ended but was not waited for does not.
pub(crate) fn is_running(pid: &str) -> bool {
    !matches!(state(pid), None | Some('Z' | 'X'))
}

/// A process's state as `/proc` has it: R, S, T, Z and so on.
fn state(pid: &str) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so the state is what follows the last one.
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Sends a signal to a process group.
pub(super) fn signal(group: u32, signal: Signal) {
    // A group that is gone already is what we want.
    if let Ok(group) = i32::try_from(group) {
        let _ = killpg(Pid::from_raw(group), signal);
    }
}
