#!/usr/bin/env bash
# Installs the Debian packages of the groups named as arguments, and of the groups these build on, as far as they are
# missing. This is the one list of what the project needs. Nothing is asked, and apt is not run when nothing is missing.
set -euo pipefail

declare -A groups=(
  # To build the command and the libraries, and to try the lines that the banner shows.
  [run]="g++ cmake ninja-build pkg-config liburing-dev zlib1g-dev libssl-dev libsqlite3-dev libfmt-dev libcli11-dev libtomlplusplus-dev netcat-openbsd curl libnats-dev"
  # To build and run tests, examples and benchmarks, and wirecall::protobuf; openssl makes the certificates of tests.
  [test]="libgtest-dev nlohmann-json3-dev rapidjson-dev libboost-json1.81-dev libsimdjson-dev libbenchmark-dev python3-minimal python3-venv openssl libprotobuf-dev protobuf-compiler liblmdb-dev nats-server"
  # To build the Python package, and to run its tests.
  [python]="python3-dev python3-venv openssl"
  # To build the TypeScript client and run its tests, and those that run in a browser.
  [typescript]="nodejs npm"
  [browser]="chromium"
  # To run several brokers as one on this machine.
  [cluster]="nats-server"
  # To measure beside others.
  [bench]="nats-server redis-server redis-tools libgrpc++-dev protobuf-compiler protobuf-compiler-grpc"
  # To check format, ranks and sanitizers; llvm-19 has what they find names with, for reports and for suppressions.
  [check]="clang-19 clang-format-19 libclang-rt-19-dev llvm-19 git"
)
declare -A builds_on=([run]="" [test]="run" [python]="run" [typescript]="" [browser]="" [cluster]="run" [bench]="test run" [check]="test run")

wanted=()
for group in "$@"; do
  if [[ -z ${groups[$group]:-} ]]; then
    echo "install_packages.sh: no group '$group'; there are: ${!groups[*]}" >&2
    exit 2
  fi
  for name in $group ${builds_on[$group]}; do
    # shellcheck disable=SC2206  # the lists are words
    wanted+=(${groups[$name]})
  done
done

if ! command -v dpkg-query >/dev/null; then
  echo "This is no Debian system; if the build fails, install what these Debian packages hold: ${wanted[*]}" >&2
  exit 0
fi

present=" $(dpkg-query --show --showformat '${db:Status-Status}=${Package} ' "${wanted[@]}" 2>/dev/null || true)"
missing=()
for package in "${wanted[@]}"; do
  [[ $present == *" installed=$package "* ]] || missing+=("$package")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

as_root=()
if [[ $(id -u) -ne 0 ]]; then
  if ! command -v sudo >/dev/null; then
    echo "Missing Debian packages, and neither root nor sudo is at hand. As root: apt-get install ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi

echo "Installing ${missing[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
export DEBIAN_FRONTEND=noninteractive
if ! { "${as_root[@]}" apt-get update -q &&
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"; } \
  >"$log" 2>&1 </dev/null; then
  cat "$log" >&2
  exit 1
fi
