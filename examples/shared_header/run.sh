#!/usr/bin/env bash
# Runs both programs: starts the server, has the client call it, ends the server as Ctrl-C does, and expects both to end
# with 0. Arguments: the server, and the client.
set -euo pipefail
coproc server { exec "$1" tcp://127.0.0.1:0; }
pid=$server_PID
trap 'kill -KILL "$pid" 2>/dev/null || true' EXIT
read -r -t 20 uri <&"${server[0]}"
"$2" "$uri"
kill -INT "$pid"
wait "$pid"
