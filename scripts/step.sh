#!/bin/bash
# Runs one step of a preparation: step.sh NAME COMMAND [ARGUMENT...]
# Says when it begins and how many seconds it took. What the command says is shown as it comes, set in: a person sees
# what the minutes go to, and where a step fails its last lines stand right above the line that names it. Exits as the
# command does.
set -euo pipefail
name="$1"
shift
echo "== $name"
status=0
"$@" 2>&1 | sed -u 's/^/   /' || status="${PIPESTATUS[0]}"
if [ "$status" -ne 0 ]; then
  echo "step failed: $name, after $SECONDS s, with exit status $status"
  exit "$status"
fi
echo "== $name: $SECONDS s"
