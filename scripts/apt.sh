#!/bin/bash
# Runs apt-get as root, without a question: apt.sh update, apt.sh install PACKAGE...
# What it says is shown only when it fails. Another apt-get is waited for, for LOCK_WAIT seconds (300): dpkg's lock has
# an option for that; those of the lists and of the archives have none (apt 2.6), so apt-get is started again.
set -euo pipefail
wait="${LOCK_WAIT:-300}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "apt: run again as root, or install sudo" >&2
    exit 1
  fi
  as_root=(sudo)
fi
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
told=""
until "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Acquire::Retries=3 \
  -o DPkg::Lock::Timeout="$wait" "$@" >"$log" 2>&1 </dev/null; do
  if ! grep -q '^E: Could not get lock' "$log" || [ "$SECONDS" -ge "$wait" ]; then
    tail -n 30 "$log" >&2
    exit 1
  fi
  if [ -z "$told" ]; then
    grep -m 1 '^E: Could not get lock' "$log" >&2
    echo "waiting for it, for $wait s at most" >&2
    told=1
  fi
  sleep 2
done
