#!/usr/bin/env bash
# Builds the wheels of the Python package, and holds each to what it says: check_wheels.sh PYTHON... with one interpreter
# of each version. That of 3.11 makes a wheel of its own (cp311), that of 3.12 one for all later versions (abi3); the
# others build none. Each wheel carries the command, py.typed and the stub; in a clean environment of each interpreter
# the one for it is installed, and a function is served and called. The wheels are left in build/wheels.
set -euo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build}
wheels=$build/wheels
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
rm -rf "$wheels"
mkdir -p "$wheels"

fail() { echo "$1" >&2; exit 1; }
version_of() { "$1" -c 'import sys; print("%d%d" % sys.version_info[:2])'; }

check_contents() {  # PYTHON WHEEL
  local members member
  members=$("$1" -c 'import sys, zipfile; print(*zipfile.ZipFile(sys.argv[1]).namelist(), sep="\n")' "$2")
  for member in wirecall/py.typed wirecall/_native.pyi 'wirecall/_native[^/]*\.so' '[^/]*\.data/scripts/wirecall'; do
    grep -qx "$member" <<<"$members" || fail "$2 has no $member"
  done
}

for python in "$@"; do
  version=$(version_of "$python")
  case $version in
    311) tag=cp311-cp311 ;;
    312) tag=cp312-abi3 ;;
    *) continue ;;
  esac
  "$python" -m venv "$scratch/build-$version"
  "$scratch/build-$version/bin/pip" --quiet --disable-pip-version-check wheel --no-deps --wheel-dir "$scratch/$version" ./python
  wheel=$(ls "$scratch/$version")
  [[ $wheel == wirecall-*-$tag-*.whl ]] || fail "$python has made $wheel, not one for $tag"
  check_contents "$python" "$scratch/$version/$wheel"
  mv "$scratch/$version/$wheel" "$wheels"
  echo "$wheel"
done

for python in "$@"; do
  version=$(version_of "$python")
  "$python" -m venv "$scratch/use-$version"
  "$scratch/use-$version/bin/pip" --quiet --disable-pip-version-check install --no-index --find-links "$wheels" wirecall
  (cd "$scratch" && "$scratch/use-$version/bin/python" - <<'PROGRAM')
import pathlib, subprocess, sys
import wirecall

app = wirecall.Server("calc")


@app
def add(a: int, b: int) -> int:
    return a + b


with app.serving() as uri, wirecall.connect(uri) as c:
    assert c.add(2, 3) == 5
    tool = pathlib.Path(sys.executable).with_name("wirecall")
    assert subprocess.run([tool, "call", "add", "2", "3", "--url", uri], capture_output=True, text=True).stdout == "5\n"
PROGRAM
  echo "$version: installed, served and called"
done
