#!/usr/bin/env bash
# Runs the three programs together, as at three terminals, and expects each to end with 0. Arguments: the server, and
# both clients.
set -euo pipefail
config=$(mktemp)
echo '{"port": 0, "thread_count": 2, "keepalive_timeout_ms": 5000, "max_message_size": 4096}' >"$config"
coproc server { exec "$1" "$config"; }
pid=$server_PID
provider=
trap 'kill -KILL $pid $provider 2>/dev/null || true; rm -f "$config"' EXIT
read -r -t 20 uri <&"${server[0]}"
"$2" "$uri" &
provider=$!
"$3" "$uri"  # waits until `add` is provided
kill -INT "$provider"
wait "$provider"
kill -INT "$pid"
wait "$pid"
