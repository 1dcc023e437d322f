#!/bin/bash
# Says what of this machine decides whether a run of the tests can pass: free space where a run writes, and what earlier
# runs have left. Fails where a run is sure to fill a disk. Removes nothing: it may be another one's, or a server's
# that starts again.
set -euo pipefail
writes=12000 enough=15000 least=2000 # MB: what a run writes, below which it is warned of, below which no run begins
aged=180                             # minutes after which no run is still at work
temp="${TMPDIR:-/tmp}" shm="${SHM:-/dev/shm}"

free() { df --output=avail -B1000000 "$1" | tail -n 1 | tr -d ' '; }

# Folders of journals (internal/media/journal) that no process holds.
unheld() {
  local d n=0
  for d in "$shm/millrace-$(id -u)"/*/; do
    if [ -d "$d" ] && flock -n "$d" true; then n=$((n + 1)); fi
  done
  echo "$n"
}

# Folders that tests and their servers make, of runs that can't be at work any more.
old() {
  find "$1" -mindepth 1 -maxdepth 1 -user "$(id -u)" -mmin "+$aged" -regextype posix-extended \
    -regex '.*/millrace-(pg|s3|bin|clip|chromium|blob)-[^/]*'
}

echo "$(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg)"
status=0
for dir in "$PWD" "$temp"; do
  mb="$(free "$dir")"
  echo "$dir: $((mb / 1000)) GB free"
  if [ "$mb" -lt "$enough" ]; then
    echo "WARNING: a run writes about $((writes / 1000)) GB. Make room (old clones, make clean, go clean -cache" \
      "-fuzzcache), or set TMPDIR to a folder on another disk."
  fi
  if [ "$mb" -lt "$least" ]; then
    echo "less than $((least / 1000)) GB: no run can pass, so none begins"
    status=1
  fi
done
if [ -d "$shm" ]; then
  echo "$shm: $(free "$shm") MB free, $(unheld) folders of ended servers (a start removes those of yesterday)"
fi
left="$({ old "$temp"; if [ -d "$shm" ]; then old "$shm"; fi; } | sort)"
[ -z "$left" ] || printf 'left by runs that were killed, to be removed with rm -r:\n%s\n' "$left"
exit "$status"
