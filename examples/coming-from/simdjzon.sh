#!/usr/bin/env bash
# Runs the cases of the engine, and then the server, with curl as its client; expects both to end with 0. Arguments: the
# engine, and the server.
set -euo pipefail
"$1"
coproc server { exec "$2" tcp://127.0.0.1:0; }
pid=$server_PID
trap 'kill -KILL "$pid" 2>/dev/null || true' EXIT
read -r -t 20 uri <&"${server[0]}"
response=$(curl -fsS --max-time 20 -H 'Content-Type: application/json' "http${uri#tcp}" \
  -d '{"jsonrpc":"2.0","method":"echo","params":["echo this"],"id":0}')
[[ $response == '{"jsonrpc":"2.0","result":"echo this","id":0}' ]] || { echo "unexpected: $response"; exit 1; }
kill -INT "$pid"
wait "$pid"
