#!/bin/bash
# Runs every fuzz target of the named packages for FUZZTIME each: fuzz.sh ./...
set -euo pipefail
go="${GO:-go}"
failed=0
for pkg in $("$go" list "${@:-./...}"); do
  dir="$("$go" list -f '{{.Dir}}' "$pkg")"
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | sed 's/^func //' | sort -u); do
    echo "== $pkg $target"
    "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}" -fuzzminimizetime 10x "$pkg" || failed=1
  done
done
exit "$failed"
