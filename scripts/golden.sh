#!/bin/bash
# Runs the tests of each package that has an -update flag, with it.
set -euo pipefail
go="${GO:-go}"
for dir in $(git grep -lE 'flag\.Bool\("update"' -- '*_test.go' | xargs -rn1 dirname | sort -u); do
  "$go" test "./$dir" -update
done
git status --short -- '*golden*' '*testdata*'
