#!/usr/bin/env bash
# Runs a server, a second one that it asks, and the client against both: run.sh SERVER CLIENT. Exits with 0 when each
# answer is what the comments of the sources promise.
set -euo pipefail

server=$1
client=$2
folder=$(mktemp -d)
second=0
relay=0
finish() {
  # By their ids alone; either may be gone.
  [[ $relay -eq 0 ]] || kill "$relay" 2>/dev/null || true
  [[ $second -eq 0 ]] || kill "$second" 2>/dev/null || true
  wait 2>/dev/null || true
  rm -rf "$folder"
}
trap finish EXIT

# Waits for the line that a server prints once it listens.
endpoint_of() {
  local endpoint=
  for _ in $(seq 1000); do
    endpoint=$(head -n 1 "$1")
    [[ -z $endpoint ]] || break
    sleep 0.01
  done
  printf '%s' "$endpoint"
}
# Waits until the second server has printed a line so many times.
second_says() {
  for _ in $(seq 1000); do
    [[ $(grep -c "$2" "$folder/second" || true) -lt $1 ]] || return 0
    sleep 0.01
  done
  echo "the second server has not said $1 times: $2" >&2
  exit 1
}
expect() {
  local expected=$1 got
  shift
  got=$("$client" "$@" 2>&1) || true
  [[ $got == "$expected" ]] || {
    echo "client $*: '$got', and not '$expected'" >&2
    exit 1
  }
}

"$server" tcp://127.0.0.1:0 >"$folder/second" &
second=$!
second_endpoint=$(endpoint_of "$folder/second")
"$server" tcp://127.0.0.1:0 "$second_endpoint" >"$folder/relay" &
relay=$!
endpoint=$(endpoint_of "$folder/relay")

expect "hello" "$endpoint" Echo hello
expect "hello" "$endpoint" RelayEcho hello
expect "hello" "$endpoint" Await hello
# SetFailed, of this server and of the second one.
expect "error -32000: there is nothing to echo" "$endpoint" Echo ""
expect "error -32000: there is nothing to echo" "$endpoint" RelayEcho ""
expect "error -32000: this server has no second one" "$second_endpoint" RelayEcho hello
# The deadline and the cancellation end both calls.
expect "error -32002: Timeout" "$endpoint" RelayEcho wait 100
second_says 1 "nobody waits any more"
expect "error -32800: Cancelled" "$endpoint" Cancel wait 100
second_says 2 "nobody waits any more"
# The second server is killed: what it was asked, and what it would be asked, ends.
"$client" "$endpoint" RelayEcho wait >"$folder/waiting" 2>&1 &
waiting=$!
second_says 3 "waiting"
kill -KILL "$second"
wait "$second" 2>/dev/null || true
second=0
wait "$waiting" || true
[[ $(cat "$folder/waiting") == "error -32001: "* ]] || {
  echo "the killed server's call: $(cat "$folder/waiting")" >&2
  exit 1
}
[[ $("$client" "$endpoint" RelayEcho hello || true) == "error -32001: "* ]]
expect "hello" "$endpoint" Echo hello
