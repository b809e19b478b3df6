#!/usr/bin/env bash
# ab -k of Apache's: HTTP/1.0 whose connections are kept, as all its requests are answered on the few that it opens.
set -euo pipefail
at=http://127.0.0.1:$TCP_PORT
body=$(mktemp)
trap 'rm -f "$body"' EXIT
printf '{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}' >"$body"

accepted() { curl -s "$at/metrics" | sed -n 's/^wirecall_connections_accepted_total //p'; }

check() {  # AB'S OPTIONS AND ADDRESS
  local before after told
  before=$(accepted)
  told=$(ab -q -k -n 2000 -c 10 "$@" 2>&1) || { echo "$told" >&2; exit 1; }
  after=$(accepted)
  grep -Eq '^Complete requests: +2000$' <<<"$told" && grep -Eq '^Failed requests: +0$' <<<"$told" &&
    grep -Eq '^Keep-Alive requests: +2000$' <<<"$told" && ! grep -q '^Non-2xx' <<<"$told" || { echo "$told" >&2; exit 1; }
  # Ten of ab's, one that it may open ahead, and that of the second look.
  ((after - before <= 12)) || { echo "$((after - before)) connections for 2000 requests" >&2; exit 1; }
}

check "$at/healthz"
check -p "$body" -T application/json "$at/rpc"
