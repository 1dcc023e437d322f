#!/bin/bash
# Runs what the network can break, three times at most: retry.sh COMMAND [ARGUMENT...]
# Between tries it waits for 5 s and then for 15 s (RETRY_PAUSE: the first pause, in seconds). Exits as the last try.
set -euo pipefail
pause="${RETRY_PAUSE:-5}"
for try in 1 2 3; do
  status=0
  "$@" || status=$?
  if [ "$status" -eq 0 ] || [ "$try" -eq 3 ]; then exit "$status"; fi
  echo "try $try of 3 failed: $*; again in $pause s" >&2
  sleep "$pause"
  pause=$((pause * 3))
done
