#!/usr/bin/dash
# The guest's init: mounts, loads the modules of the port to the host, then runs what the host sends. One request a line:
#   RUN <id> <limit in seconds> <base64 of a shell script>
# and its answer in three lines, so that no output of a program can be mistaken for it:
#   DONE <id> <exit code> <1 if the limit passed> <milliseconds>
#   <base64 of stdout>
#   <base64 of stderr>
export PATH=/usr/bin HOME=/root LC_ALL=C
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmp /tmp
mount -t tmpfs shm /dev/shm
mount -t tmpfs run /run
ln -s /proc/self/fd /dev/fd
while read -r module; do
	insmod "/lab/modules/$module" || echo "lab: insmod $module failed"
done </lab/early

port=
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30; do
	for named in /sys/class/virtio-ports/*/name; do
		if [ -e "$named" ] && [ "$(cat "$named")" = rdma-lab ]; then
			port=/dev/$(basename "$(dirname "$named")")
		fi
	done
	[ -n "$port" ] && [ -e "$port" ] && break
	sleep 0.1
done
if [ -z "$port" ]; then
	echo "lab: no port to the host"
	poweroff -f
fi

exec 3<>"$port"
echo "READY $(uname -r)" >&3
mkdir /tmp/lab
cd /root || exit
while read -r verb id limit script <&3; do
	[ "$verb" = RUN ] || break
	here=/tmp/lab/$id
	mkdir "$here"
	echo "$script" | base64 -d >"$here/script"
	begun=$(awk '{ printf "%d", $1 * 1000 }' /proc/uptime)
	setsid sh "$here/script" >"$here/out" 2>"$here/err" </dev/null 3>&- &
	step=$!
	setsid sh -c "sleep $limit; touch $here/late; kill -KILL -$step" >/dev/null 2>&1 </dev/null 3>&- &
	watch=$!
	wait $step
	code=$?
	# Its group may not exist yet where the step was very short.
	kill -KILL -$watch 2>/dev/null || kill -KILL $watch 2>/dev/null
	wait $watch 2>/dev/null
	ended=$(awk '{ printf "%d", $1 * 1000 }' /proc/uptime)
	late=0
	[ -e "$here/late" ] && late=1
	{
		echo "DONE $id $code $late $((ended - begun))"
		base64 -w 0 "$here/out"
		echo
		base64 -w 0 "$here/err"
		echo
	} >&3
	rm -rf "$here"
done
poweroff -f
