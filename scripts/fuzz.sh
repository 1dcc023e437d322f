#!/bin/bash
# Runs every fuzz target of the named packages for FUZZTIME each: fuzz.sh ./...
# With FUZZKEEP=n the n smallest inputs that reached something new, of at most 4 KiB, are kept beside the tests, in testdata/fuzz: from
# then on every run of the tests goes through them.
set -euo pipefail
go="${GO:-go}"
failed=0

keep() {
  [ -n "${FUZZKEEP:-}" ] || return 0
  local found kept="$2/testdata/fuzz/$3"
  found="$("$go" env GOCACHE)/fuzz/$1/$3"
  [ -d "$found" ] || return 0
  mkdir -p "$kept"
  find "$found" -type f -size -4096c -printf '%s %p\n' | sort -n | head -n "$FUZZKEEP" | cut -d' ' -f2- | while read -r f; do
    cp -n "$f" "$kept/"
  done
}

for pkg in $("$go" list "${@:-./...}"); do
  dir="$("$go" list -f '{{.Dir}}' "$pkg")"
  for target in $(grep -hoE '^func Fuzz[A-Za-z0-9_]*' "$dir"/*_test.go 2>/dev/null | sed 's/^func //' | sort -u); do
    echo "== $pkg $target"
    "$go" test -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-2m}" -fuzzminimizetime 10x "$pkg" || failed=1
    keep "$pkg" "$dir" "$target"
  done
done
exit "$failed"
