//! Scripts for a guest with `rxe0`: a C tool's server and client in one guest. No fixed sleeps: the client starts when the server listens.

/// What the device is.
pub const DEVINFO: &str = "ibv_devinfo -d rxe0";

/// perftest's latency of sends, 1000 of 2 bytes, over TCP port 18515 (0x4853) for the exchange. The exit code is the client's, else the server's.
pub const SEND_LAT: &str = r#"
ib_send_lat -d rxe0 -n 1000 >/tmp/server.log 2>&1 & server=$!
for _ in $(seq 200); do
	grep -qi ':4853 [0-9A-F:]* 0A ' /proc/net/tcp /proc/net/tcp6 && break
	kill -0 $server 2>/dev/null || break
	sleep 0.05
done
ib_send_lat -d rxe0 -n 1000 10.9.0.1; code=$?
[ $code -eq 0 ] && { wait $server; code=$?; } || kill $server
[ $code -eq 0 ] || sed 's/^/server: /' /tmp/server.log >&2
exit $code
"#;

/// Three rounds of rping over the connection manager. The exit code is the client's, else the server's.
pub const RPING: &str = r#"
rping -s -a 10.9.0.1 -C 3 >/tmp/server.log 2>&1 & server=$!
for _ in $(seq 200); do
	rdma resource show cm_id | grep -q LISTEN && break
	kill -0 $server 2>/dev/null || break
	sleep 0.05
done
rping -c -a 10.9.0.1 -C 3 -v; code=$?
[ $code -eq 0 ] && { wait $server; code=$?; } || kill $server
[ $code -eq 0 ] || sed 's/^/server: /' /tmp/server.log >&2
exit $code
"#;

/// The typical latency in microseconds that perftest's table in `stdout` gives: the fifth column of the line below its heading.
#[must_use]
pub fn typical_latency(stdout: &str) -> Option<f64> {
    let mut lines = stdout
        .lines()
        .skip_while(|line| !line.contains("t_typical[usec]"))
        .skip(1);
    let typical: f64 = lines.next()?.split_whitespace().nth(4)?.parse().ok()?;
    (typical.is_finite() && typical > 0.0).then_some(typical)
}

#[cfg(test)]
mod tests {
    use super::typical_latency;

    #[test]
    fn the_table_is_read_by_its_heading() {
        let table = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]\n 2       200          38.63          392.68       49.60    \t       56.19\n";
        assert_eq!(typical_latency(table), Some(49.60));
        assert_eq!(typical_latency(&table.replace("49.60", "0.00")), None);
        assert_eq!(
            typical_latency("Couldn't connect to 10.9.0.1:18515\n"),
            None
        );
    }
}
