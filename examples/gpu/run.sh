#!/usr/bin/env bash
# Runs the worker by itself and then at a broker, each with callers, and expects all of them to end with 0. Arguments: the
# worker, the callers, the command, and the device. Ends with 77 where there is no such device.
set -euo pipefail
worker=$1 caller=$2 wirecall=$3 device=$4
folder=$(mktemp -d)
broker= pid= status=1
trap 'kill -KILL $broker $pid 2>/dev/null || true; rm -r "$folder"' EXIT

# Starts a worker with the arguments given; $uri is then what it prints behind "at".
start() {
  coproc output { exec "$worker" --device "$device" "$@" 2>"$folder/error"; }
  pid=$output_PID
  if ! read -r -t 30 line <&"${output[0]}"; then
    wait "$pid" || status=$?
    if [[ $status == 77 ]]; then printf 'skipped: '; fi
    cat "$folder/error"
    exit "$status"
  fi
  uri=${line##* at }
}
stop() {
  kill -INT "$1"
  wait "$1"
}

start --listen tcp://127.0.0.1:0
"$caller" "$uri"
stop "$pid"

"$wirecall" serve --listen "unix://$folder/broker" 2>"$folder/log" &
broker=$!
start --url "unix://$folder/broker"
"$caller" "$uri"
stop "$pid"
stop "$broker"
