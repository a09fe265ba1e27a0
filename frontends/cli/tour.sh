#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The short tour of ./quickstart: starts a bridge with the OpenSandbox that comes with it, shows with
# sbx what it does, and checks each thing that it shows.
#   tour.sh SANDBOX_BRIDGE SBX
# Exits 0 when everything was as it should be. However it ends, it leaves nothing running.
set -euo pipefail

bridge=$1
sbx=$2
work=$(mktemp -d)
bridge_pid=

now_ms() { echo "$((${EPOCHREALTIME/[.,]/} / 1000))"; }
began=$(now_ms)

# step WORDS: a heading; done_: how long the step took.
step() {
  printf '\n--- %s\n' "$*"
  began=$(now_ms)
}
done_() { printf '    (%s ms)%s\n' "$(($(now_ms) - began))" "${1:+ $1}"; }
show() { printf '    $ %s\n' "$*"; }
fail() {
  printf '\ntour: %s\n' "$*" >&2
  [[ ! -s $work/bridge.log ]] || { echo "the bridge's log:" && tail -n 20 "$work/bridge.log"; } >&2
  exit 1
}

stop_bridge() {
  [[ -n $bridge_pid ]] || return 0
  local pid=$bridge_pid code=0
  bridge_pid=
  kill -TERM "$pid" 2>/dev/null || true
  wait "$pid" || code=$?
  return "$code"
}
leave() {
  local code=$?
  trap - EXIT INT TERM HUP
  stop_bridge || code=${code/#0/1}
  rm -rf "$work"
  exit "$code"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP

step "start a bridge with the local OpenSandbox, on a free port of this machine"
show "sandbox_bridge --upstream=local --listen=127.0.0.1:0"
: >"$work/bridge.log" # read below, perhaps before the bridge's process has opened it
# In a session of its own: a Ctrl-C is for this script, which then ends the bridge in order.
setsid "$bridge" --upstream=local --listen=127.0.0.1:0 2>"$work/bridge.log" &
bridge_pid=$!
address=
for ((i = 0; i < 600; i++)); do
  address=$(sed -n 's/.*msg="listening on \([^" ]*\)".*/\1/p' "$work/bridge.log" | head -n 1)
  [[ -z $address ]] || break
  kill -0 "$bridge_pid" 2>/dev/null || fail "the bridge ended"
  sleep 0.05
done
[[ -n $address ]] || fail "the bridge does not listen after 30 seconds"
export SANDBOX_BRIDGE_ADDRESS=$address
done_ "it listens on $address"

step "create a sandbox"
show "sbx create --ttl 10m --label made-by=tour"
id=$("$sbx" create --ttl 10m --label made-by=tour) || fail "create failed"
done_ "its id is $id"

step "run a Python program: its output comes while it runs, its exit code is passed on"
program='import sys, time
for i in range(3):
    print("working", i, flush=True)
    time.sleep(0.3)
print("giving up", file=sys.stderr)
sys.exit(3)'
show "sbx exec $id -- python3 -c '…'"
code=0
"$sbx" exec "$id" -- python3 -c "$program" 2>"$work/stderr" | while IFS= read -r line; do
  printf '    %5s ms  %s\n' "$(($(now_ms) - began))" "$line"
done || code=${PIPESTATUS[0]}
((code == 3)) || fail "the exit code is $code, not 3: $(cat "$work/stderr")"
done_ "exit code $code; on stderr: $(cat "$work/stderr")"

step "bytes that a path made of text lines would lose"
show "sbx exec $id -- printf 'a\\r\\n\\377b' | od -c"
"$sbx" exec "$id" -- printf 'a\r\n\377b' >"$work/bytes" || fail "printf failed"
od -c "$work/bytes" | sed 's/^/    /'
cmp -s "$work/bytes" <(printf 'a\r\n\377b') || fail "the bytes are not those that were printed"
done_ "exact"

step "pipe a file in"
show "head -c 1000000 /dev/urandom | sbx exec $id -- sha256sum"
head -c 1000000 /dev/urandom >"$work/random"
sum=$("$sbx" exec "$id" -- sha256sum <"$work/random" | cut -d' ' -f1)
[[ $sum == "$(sha256sum <"$work/random" | cut -d' ' -f1)" ]] || fail "the sums differ"
done_ "the same sum on both sides: ${sum:0:16}…"

step "Ctrl-C on a running command"
show "sbx exec $id -- sleep 1000        ^C after a second"
code=0
timeout --foreground --preserve-status --signal=INT 1 "$sbx" exec "$id" -- sleep 1000 \
  2>"$work/stderr" || code=$?
sed 's/^/    /' "$work/stderr"
((code == 130)) || fail "the exit code is $code, not 130"
left=$("$sbx" exec "$id" -c 'pgrep -c -x sleep || true')
[[ $left == 0 ]] || fail "a sleep still runs in the sandbox"
done_ "exit code $code; no sleep is left in the sandbox"

step "delete the sandbox and see the proof"
show "sbx rm $id"
"$sbx" rm "$id" | sed 's/^/    /' || fail "the sandbox is not known to be gone"
done_

step "stop the bridge"
pid=$bridge_pid
code=0
stop_bridge || code=$?
((code == 0)) || fail "the bridge ended with $code"
if pgrep -s "$pid" >/dev/null; then fail "the bridge left a process behind"; fi
done_ "exit code 0, nothing left running"
