#!/usr/bin/env bash
# What takes too long for every change: ten million differential executions (SOAK_RUNS), then each fuzzer for
# SOAK_SECONDS; as many at a time as there are cores. Before them, in tests/broker_check and tests/durable_check: the
# broker with 10,000 idle and 500 active clients for BROKER_SOAK_SECONDS, and a durable store whose broker is killed
# DURABLE_KILLS times, and loses its power as often, on the command that `make build` has left; a storm of clients of all
# framings for STORM_SECONDS on each engine, on a command with sanitizers; and where CHURN_SECONDS is set, how flat the
# broker's memory stays for so
# long. It prints what each did, and fails when one found something; the input that did it is then in build/soak, the
# storm's seed in what it has printed.
set -euo pipefail
cd "$(dirname "$0")/.."
export build=${BUILD:-build} seconds=${SOAK_SECONDS:-300} runs=${SOAK_RUNS:-10000000}
jobs=${JOBS:-$(nproc)}

launcher=()
command -v ccache >/dev/null && launcher=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache)
cmake -S . -B "$build/soak" -G Ninja --log-level=WARNING -D CMAKE_CXX_COMPILER=clang++-19 "${launcher[@]}" \
  -D WIRECALL_TESTS=OFF -D WIRECALL_BENCH=OFF -D WIRECALL_EXAMPLES=OFF -D WIRECALL_TOOL=ON -D WIRECALL_FUZZ=ON \
  -D WIRECALL_SANITIZE=address,undefined
cmake --build "$build/soak" --parallel "$jobs"

echo "broker:"
python3 -B tests/broker_check/check.py "$build/wirecall" --seconds "${BROKER_SOAK_SECONDS:-60}" --idle 10000 --callers 500 \
  --memory-mb 64

echo "durable store:"
python3 -B tests/durable_check/check.py "$build/wirecall" --rounds "${DURABLE_KILLS:-1000}"
cc -shared -fPIC -o "$build/soak/power_loss.so" tests/durable_check/power_loss.c -ldl
python3 -B tests/durable_check/check.py "$build/wirecall" --rounds "${DURABLE_KILLS:-1000}" \
  --power-loss "$build/soak/power_loss.so"

echo "cluster:"
python3 -B tests/cluster_check/check.py "$build/wirecall" --seconds "${CLUSTER_SOAK_SECONDS:-60}"
WIRECALL_SEEDS=${CLUSTER_SEEDS:-10000} WIRECALL_LARGE=1 "$build/tests/test_cluster" --gtest_filter='ClusterSimulationTest.*'

for engine in epoll uring; do
  echo "storm, $engine:"
  python3 -B tests/broker_check/storm.py "$build/soak/wirecall" --engine "$engine" --seconds "${STORM_SECONDS:-600}"
done
if [[ ${CHURN_SECONDS:-0} != 0 ]]; then
  echo "churn:"
  python3 -B tests/broker_check/churn.py "$build/wirecall" --seconds "$CHURN_SECONDS" --slope 1024
fi

# execute SEED : one share of the differential executions.
execute() {
  local start=$SECONDS
  "$build/soak/fuzz/fuzz_soak" "$share" "$1" >"$build/soak/differential-$1.log" 2>&1 ||
    { echo "differential, seed $1: FAILED, see $build/soak/differential-$1.log"; return 1; }
  echo "differential, seed $1: $((SECONDS - start)) s"
  sed 's/^/  /' "$build/soak/differential-$1.log"
}

# fuzz PROGRAM : one libFuzzer program for its time.
fuzz() {
  local name=${1##*/fuzz_} log
  local found=$build/soak/found/$name
  log=$build/soak/$name.log
  mkdir -p "$found"
  local corpus=("$found")
  [[ -d fuzz/corpus/$name ]] && corpus+=("fuzz/corpus/$name")
  "$1" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -artifact_prefix="$build/soak/$name-" \
    "${corpus[@]}" >"$log" 2>&1 || { echo "$name: FAILED, see $log"; return 1; }
  echo "$name: $(sed -n 's/^Done //p' "$log")"
}
export -f execute fuzz

export share=$(((runs + jobs - 1) / jobs))
seq "$jobs" | xargs -n 1 -P "$jobs" bash -c 'execute "$0"'
find "$build/soak/fuzz" -maxdepth 1 -type f -executable -name 'fuzz_*' ! -name fuzz_soak -print0 | sort -z |
  xargs -0 -n 1 -P "$jobs" bash -c 'fuzz "$0"'
