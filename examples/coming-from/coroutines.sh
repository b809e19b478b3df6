#!/usr/bin/env bash
# Runs two servers, of which the first asks the second, and both clients against the first; expects all to end with 0.
# Arguments: the server, the client, the stress client.
set -euo pipefail
folder=$(mktemp -d)
pids=()
trap 'kill -KILL "${pids[@]}" 2>/dev/null || true; rm -rf "$folder"' EXIT
"$1" "unix://$folder/second" >/dev/null &
pids+=($!)
"$1" "unix://$folder/first" "unix://$folder/second" >/dev/null &
pids+=($!)
# A call waits for a server that is about to start.
"$2" "unix://$folder/first"
"$3" "unix://$folder/first" 5000 10
kill -INT "${pids[@]}"
wait "${pids[0]}"
wait "${pids[1]}"
