#!/bin/bash
# Runs a command unless it has already passed on these very files: green.sh NAME COMMAND [ARGUMENT...]
# The user's cache folder remembers the git tree that it passed on, with Go's version. A work tree with changes, or with
# new files, always runs and is not remembered. FORCE=1 runs it all the same.
set -euo pipefail
name="$1"
shift
tree() { if [ -z "$(git status --porcelain)" ]; then git rev-parse 'HEAD^{tree}'; fi; }
before="$(tree)"
folder="${XDG_CACHE_HOME:-${HOME:?}/.cache}/millrace-test-green"
kept="$folder/$name-$before-$("${GO:-go}" env GOVERSION)"
if [ -n "$before" ] && [ -e "$kept" ] && [ "${FORCE:-}" != 1 ]; then
  echo "green already: $(cat "$kept"); FORCE=1 runs it again"
  exit 0
fi
"$@"
if [ -n "$before" ] && [ "$(tree)" = "$before" ]; then
  mkdir -p "$folder"
  date -u '+%Y-%m-%d %H:%M UTC' >"$kept"
fi
