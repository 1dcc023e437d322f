#!/bin/bash
# Runs the tests again and again, each time in a new clone of what is committed: runs.sh N [FIRST]
# FIRST is the run that it begins with, to go on after an earlier call has been ended. The odd runs have the machine to
# themselves, the even ones stand beside two busy loops. Prints a table for CONTRIBUTING.md, and below it what failed
# and what was flaky; the logs stay in tmp/runs. COMMAND: not make test.
set -euo pipefail
n="${1:?how many runs?}" first="${2:-1}"
cd "$(dirname "${BASH_SOURCE[0]}")/.."
logs="$PWD/tmp/runs"
mkdir -p "$logs"
work="$(mktemp -d)"
loops=() run=""

# A loop also ends by itself, soon after this script has gone, however it has gone.
busy() {
  local self=$$
  for _ in 1 2; do
    while kill -0 "$self" 2>/dev/null; do for ((i = 0; i < 100000; i++)); do :; done; done &
    loops+=("$!")
  done
}

quiet() {
  if [ ${#loops[@]} -gt 0 ]; then
    kill "${loops[@]}" 2>/dev/null || true
    wait "${loops[@]}" 2>/dev/null || true
  fi
  loops=()
}

leave() {
  if [ -n "$run" ]; then
    kill -- "-$run" 2>/dev/null || true
    wait "$run" 2>/dev/null || true
  fi
  quiet
  rm -rf "$work"
}
trap leave EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# In the background, in a process group of its own: so a signal to this script ends it at once.
tests() {
  git clone -q . "$work/clone"
  set -m
  # Without -count=1 the second run would take from the cache what has not changed.
  (
    cd "$work/clone"
    GOFLAGS="$(go env GOFLAGS) -count=1" exec bash -c "${COMMAND:-make test}"
  ) >"$1" 2>&1 </dev/null &
  run=$!
  set +m
  wait "$run" || true
  run=""
  rm -rf "$work/clone"
}

# row RUN LOAD SECONDS LOG
row() {
  local passed="-" failed flaky
  failed="$(sed -n 's/^step failed: \([^,]*\),.*/\1/p' "$4" | tail -n 1)"
  if grep -qE '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$4"; then
    read -r passed failed < <(sed -nE 's/^([0-9]+) passed, ([0-9]+) failed, [0-9]+ skipped$/\1 \2/p' "$4" | tail -n 1)
  fi
  flaky="$(sed -n 's/^flaky, passed when run again, alone: //p' "$4" | tail -n 1)"
  echo "| $1 | $2 | $(awk -v s="$3" 'BEGIN {printf "%.1f", s / 60}') | $passed | ${failed:-did not end} | ${flaky:-0} |"
}

echo "| run | load | minutes | passed | failed | flaky |"
echo "|---|---|---|---|---|---|"
for ((i = first; i <= n; i++)); do
  load=none
  if [ $((i % 2)) -eq 0 ]; then
    load="two busy loops"
    busy
  fi
  begin=$SECONDS
  tests "$logs/$i.log"
  quiet
  row "$i" "$load" $((SECONDS - begin)) "$logs/$i.log"
done
for ((i = first; i <= n; i++)); do
  names="$(sed -n '/^failed:$/,/^$/p; /^flaky, passed when run again/,/^$/p' "$logs/$i.log" | grep '^  ' || true)"
  if [ -n "$names" ]; then printf '\nrun %s:\n%s\n' "$i" "$names"; fi
done
