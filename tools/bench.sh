#!/usr/bin/env bash
# Runs every benchmark, one after the other, each printing its table, and then measures what idle connections and calls
# cost the command, and what the umbrella header costs a compiler. Fails when one of these last exceeds a bound.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}

for program in "$build"/bench/bench_*; do
  [[ -x $program ]] || continue
  echo "== ${program##*/}"
  "$program"
  echo
done
status=0
echo "== connections"
python3 bench/connections.py "$build/wirecall" || status=1
echo
for engine in epoll uring; do
  for kind in websocket tls; do
    echo "== connections, $kind, $engine"
    python3 bench/connections.py "$build/wirecall" "$build/bench/tls_ceiling" "--$kind" --engine "$engine" || status=1
    echo
  done
  echo "== handshakes, $engine"
  python3 bench/handshakes.py "$build/wirecall" "$build/bench" --engine "$engine" || status=1
  echo
done
for engine in epoll uring; do
  echo "== subscribers, $engine"
  python3 bench/subscribers.py "$build/wirecall" --engine "$engine" || status=1
  echo
done
echo "== serving"
python3 bench/serving.py "$build/wirecall" "$build/bench/ceiling" || status=1
echo
echo "== shared memory"
python3 bench/shm.py "$build/wirecall" || status=1
echo
echo "== routing"
python3 bench/routing.py "$build/wirecall" "$build/bench/router_load" || status=1
echo
if command -v nats-server >/dev/null && [[ -x $build/bench/nats_echo ]]; then
  echo "== cluster"
  python3 bench/cluster.py "$build/wirecall" "$build/bench" || status=1
  echo
fi
echo "== durable publishes"
python3 bench/durable.py "$build/wirecall" --folder "$build" || status=1
echo
echo "== store"
python3 bench/store/measure.py "$build/wirecall" --store "$build/examples/example_store" || status=1
echo
echo "== python"
python3 bench/python/measure.py || status=1
echo
echo "== scaling"
python3 bench/scaling/measure.py --build "$build" || status=1
echo
echo "== compile"
python3 bench/compile/measure.py || status=1
exit "$status"
