#!/usr/bin/env bash
# Runs the example that serves until it is told to stop, as a person would: starts it, calls it, ends it as Ctrl-C
# does, and expects it to end with 0. Arguments: the example, and the command.
set -euo pipefail
coproc server { exec "$1" tcp://127.0.0.1:0; }
pid=$server_PID
trap 'kill -KILL "$pid" 2>/dev/null || true' EXIT
read -r -t 20 uri <&"${server[0]}"
result=$("$2" call subtract minuend=42 subtrahend=23 --url "$uri")
[[ $result == 19 ]] || { echo "expected 19, got $result"; exit 1; }
kill -INT "$pid"
wait "$pid"
