#!/usr/bin/env bash
# What a change has to pass beside the tests of the release build: format, include ranks, and the tests under clang's
# sanitizers. The AddressSanitizer build is also the clang warning build, and carries the fuzzers. Every step prints
# its seconds; the first that fails ends the run.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
jobs=${JOBS:-$(nproc)}

step() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@" || { echo "== $name: FAILED after $((SECONDS - start)) s"; exit 1; }
  echo "== $name: $((SECONDS - start)) s"
}

check_format() {
  git ls-files -z --cached --others --exclude-standard '*.cpp' '*.hpp' | xargs -0 -r clang-format-19 --dry-run -Werror
}

launcher=()
command -v ccache >/dev/null && launcher=(-D CMAKE_CXX_COMPILER_LAUNCHER=ccache)

# configure FOLDER OPTION... : a clang build in FOLDER.
configure() {
  local folder=$1
  shift
  [[ -f $folder/build.ninja ]] ||
    cmake -S . -B "$folder" -G Ninja --log-level=WARNING -D CMAKE_CXX_COMPILER=clang++-19 "${launcher[@]}" \
      -D CMAKE_BUILD_TYPE=Check -D CMAKE_CXX_FLAGS_CHECK=-O1 -D WIRECALL_BENCH=OFF -D WIRECALL_UNITY=ON "$@"
}

build_asan() {
  configure "$build/asan" -D WIRECALL_SANITIZE=address,undefined -D WIRECALL_FUZZ=ON -D WIRECALL_XDP=ON
  cmake --build "$build/asan" --parallel "$jobs"
}

test_asan() {
  ctest --test-dir "$build/asan" --parallel "$jobs" --output-on-failure
}

build_tsan() {
  configure "$build/tsan" -D WIRECALL_SANITIZE=thread -D WIRECALL_EXAMPLES=OFF
  cmake --build "$build/tsan" --parallel "$jobs" --target threaded_tests
}

test_tsan() {
  ctest --test-dir "$build/tsan" --parallel "$jobs" --output-on-failure --label-regex threaded
}

step "format" check_format
step "include ranks" python3 tools/check_includes.py
step "links of the pages" python3 tools/check_links.py
step "AddressSanitizer and UndefinedBehaviorSanitizer: build" build_asan
step "AddressSanitizer and UndefinedBehaviorSanitizer: tests and fuzzers" test_asan
step "ThreadSanitizer: build" build_tsan
step "ThreadSanitizer: tests" test_tsan
