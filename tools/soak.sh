#!/usr/bin/env bash
# What takes too long for every change: each differential fuzzer for ten million executions, each other fuzzer for
# SOAK_SECONDS. Two at a time where there are two cores. It prints what each did, and fails when one found something;
# the input that did it is then in build/soak.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}
seconds=${SOAK_SECONDS:-300}
runs=${SOAK_RUNS:-10000000}

launcher=()
command -v ccache >/dev/null && launcher=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache)
# No AddressSanitizer here: the checks of every change have it, and ten million executions need the speed.
[[ -f $build/soak/build.ninja ]] ||
  cmake -S . -B "$build/soak" -G Ninja --log-level=WARNING -D CMAKE_CXX_COMPILER=clang++-19 "${launcher[@]}" \
    -D WIRECALL_TESTS=OFF -D WIRECALL_BENCH=OFF -D WIRECALL_EXAMPLES=OFF -D WIRECALL_TOOL=OFF -D WIRECALL_FUZZ=ON \
    -D WIRECALL_SANITIZE=undefined
cmake --build "$build/soak" --parallel "$jobs"

fuzz() {
  local program=$1 name found bound
  name=$(basename "$program")
  name=${name#fuzz_}
  found=$build/soak/found/$name
  mkdir -p "$found"
  bound=(-max_total_time="$seconds")
  [[ $name == *differential* ]] && bound=(-runs="$runs" -max_total_time=$((seconds * 6)))
  local seeds=()
  [[ -d fuzz/corpus/$name ]] && seeds=("fuzz/corpus/$name")
  if "$program" "${bound[@]}" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/soak/$name-" "$found" "${seeds[@]}" >"$build/soak/$name.log" 2>&1; then
    printf '%-28s ok      %s\n' "$name" "$(sed -n 's/^Done \(.*\)/\1/p' "$build/soak/$name.log")"
  else
    printf '%-28s FAILED  see %s\n' "$name" "$build/soak/$name.log"
    return 1
  fi
}
export -f fuzz
export build seconds runs

find "$build/soak/fuzz" -maxdepth 1 -type f -executable -name 'fuzz_*' -print0 | sort -z |
  xargs -0 -n 1 -P "$jobs" bash -c 'fuzz "$0"'
