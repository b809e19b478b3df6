#!/usr/bin/env bash
# curl: calls by POST and GET over TCP and unix, a batch, a notification, two requests on one connection, errors, the
# pages for people and monitors, items as server-sent events, and https.
set -euo pipefail
at=http://127.0.0.1:$TCP_PORT
rpc=(curl --silent --show-error --max-time 20 --header 'Content-Type: application/json')

expect() {  # WHAT GOT WANTED
  [[ $2 == "$3" ]] || { printf '%s:\n  got    %s\n  wanted %s\n' "$@" >&2; exit 1; }
}

call='{"jsonrpc":"2.0","method":"subtract","params":[42,23],"id":1}'
reply='{"jsonrpc":"2.0","result":19,"id":1}'
expect POST "$("${rpc[@]}" "$at/rpc" -d "$call")" "$reply"
expect unix "$("${rpc[@]}" --unix-socket "$UNIX_PATH" http://localhost/rpc -d "$call")" "$reply"
expect 'two on a connection' "$("${rpc[@]}" "$at/rpc" "$at/rpc" -d "$call")" "$reply$reply"
expect chunked "$("${rpc[@]}" "$at/rpc" -H 'Transfer-Encoding: chunked' -d "$call")" "$reply"
expect 'Expect: 100-continue' "$("${rpc[@]}" "$at/rpc" -H 'Expect: 100-continue' -d "$call")" "$reply"
expect batch "$("${rpc[@]}" "$at/rpc" -d "[$call,{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":[1]}]")" "[$reply]"
expect notification "$("${rpc[@]}" -w '%{http_code}' "$at/rpc" -d '{"jsonrpc":"2.0","method":"echo","params":[1]}')" 200
expect 'parse error' "$("${rpc[@]}" "$at/rpc" -d '{' | grep -o '"code":-32700')" '"code":-32700'
expect 'no such page' "$(curl -s -o /dev/null -w '%{http_code}' "$at/none")" 404
expect 'too large an Accept' "$(curl -s -o /dev/null -w '%{http_code}' -H "Accept: $(head -c 100000 /dev/zero | tr '\0' a)" \
  "$at/healthz")" 431
expect health "$(curl -s -w '%{http_code}' -o /dev/null "$at/healthz")" 200
curl -s "$at/metrics" | grep '^wirecall_' >/dev/null || { echo 'no metrics' >&2; exit 1; }
large=$(head -c 300000 /dev/zero | tr '\0' x)
expect '300 kB' "$("${rpc[@]}" "$at/rpc" --data-binary @- <<<"{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":[\"$large\"],\"id\":1}" |
  wc -c)" "$((300000 + 36))"
# HTTP/1.0 closes unless it asks for keep-alive: so many connections are made for each of two requests.
expect 'HTTP/1.0' "$(curl -s -0 -o /dev/null -o /dev/null -w '%{http_code} %{num_connects} ' "$at/healthz" "$at/healthz")" '200 1 200 1 '
expect 'HTTP/1.0 keep-alive' "$(curl -s -0 -H 'Connection: keep-alive' -o /dev/null -o /dev/null \
  -w '%{http_code} %{num_connects} ' "$at/healthz" "$at/healthz")" '200 1 200 0 '
# Who asks for health names no Host; nor need one that comes by a unix socket name ours.
expect 'health without Host' "$(curl -s -o /dev/null -w '%{http_code}' -H 'Host:' "$at/healthz")" 200
expect 'readiness without Host' "$(curl -s -0 -o /dev/null -w '%{http_code}' -H 'Host:' "$at/readyz")" 200
expect 'a call without Host' "$("${rpc[@]}" -o /dev/null -w '%{http_code}' -H 'Host:' "$at/rpc" -d "$call")" 400
expect "another's Host" "$("${rpc[@]}" -o /dev/null -w '%{http_code}' -H 'Host: a.example' "$at/rpc" -d "$call")" 403
expect "another's Host, unix" "$("${rpc[@]}" --unix-socket "$UNIX_PATH" http://a.example/rpc -d "$call")" "$reply"

# Items as server-sent events.
count='{"jsonrpc":"2.0","method":"count","params":[2],"id":1}'
item() { printf 'data: {"jsonrpc":"2.0","method":"rpc.item","params":{"id":1,"seq":%s,"value":%s}}\n\n' "$1" "$1"; }
events="$(item 0; item 1; printf 'data: {"jsonrpc":"2.0","result":null,"id":1}')"
expect events "$("${rpc[@]}" --no-buffer -H 'Accept: text/event-stream' "$at/rpc" -d "$count")" "$events"

# https, with a certificate of its own.
folder=$(mktemp -d)
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=curl \
  -addext subjectAltName=IP:127.0.0.1 -keyout "$folder/key.pem" -out "$folder/cert.pem" 2>/dev/null
mkfifo "$folder/says"
"$SERVED" --tls "$folder/cert.pem" "$folder/key.pem" tcp://127.0.0.1:0 2>"$folder/says" &
server=$!
trap 'kill "$server"; rm -r "$folder"' EXIT
exec 3<"$folder/says"
while read -r word uri <&3 && [[ $word != listening ]]; do :; done
cat <&3 >&2 &
secure=https://${uri#tcp://}
tls=("${rpc[@]}" --cacert "$folder/cert.pem")
expect https "$("${tls[@]}" "$secure/rpc" -d "$call")" "$reply"
expect 'two on a connection by https' "$("${tls[@]}" "$secure/rpc" "$secure/rpc" -d "$call")" "$reply$reply"
expect 'TLS 1.2' "$("${tls[@]}" --tls-max 1.2 "$secure/rpc" -d "$call")" "$reply"
expect 'events by https' "$("${tls[@]}" --no-buffer -H 'Accept: text/event-stream' "$secure/rpc" -d "$count")" "$events"
expect 'a certificate that is not trusted' "$("${rpc[@]}" "$secure/rpc" -d "$call" 2>/dev/null || echo $?)" 60
