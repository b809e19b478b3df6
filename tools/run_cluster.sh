#!/usr/bin/env bash
# Runs nats-server and three brokers on this machine, in the foreground, until Ctrl-C: to try docs/cluster.md by.
# $WIRECALL is the command; $PORT the first broker's port (8545), the others have the next two.
set -euo pipefail

wirecall=${WIRECALL:-build/wirecall}
port=${PORT:-8545}
nats_port=${NATS_PORT:-4222}

pids=()
log=$(mktemp)
code=0
end() {
  trap - EXIT INT TERM
  # The brokers first: they say goodbye over the bus.
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do kill "${pids[i]}" 2>/dev/null && wait "${pids[i]}" 2>/dev/null || true; done
  rm -f "$log"
  exit "$code"
}
trap end EXIT INT TERM

nats-server -a 127.0.0.1 -p "$nats_port" >"$log" 2>&1 &
pids+=($!)
# Brokers would join whatever else listens there.
until grep -q "Server is ready" "$log"; do
  kill -0 "${pids[0]}" 2>/dev/null || { code=1; echo "nats-server has not started: $(tail -1 "$log"); free port $nats_port, or set NATS_PORT" >&2; exit; }
  sleep 0.05
done
for i in 0 1 2; do
  "$wirecall" serve --demo --port $((port + i)) --cluster "nats://127.0.0.1:$nats_port" --realm try --node "node-$((i + 1))" \
    --log-level warning &
  pids+=($!)
done
echo "Three brokers, at ports $port to $((port + 2)); try: $wirecall cluster --url tcp://127.0.0.1:$port"
wait -n
code=1
echo "One of them has ended: so do the others" >&2
