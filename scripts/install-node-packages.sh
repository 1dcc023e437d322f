#!/bin/bash
# Installs the node packages of the tests, as locked in test/browser/driver (the browser itself is the distribution's)
# and in test/sdk. Does nothing for a folder where the packages of its lock are there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for folder in test/browser/driver test/sdk; do
  stamp="$folder/node_modules/.installed"
  sum="$(cat "$folder/package-lock.json" "$folder/package.json" | sha256sum)"
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]; then continue; fi
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 scripts/retry.sh npm --prefix "$folder" ci --prefer-offline --ignore-scripts \
    --no-audit --no-fund --loglevel=error </dev/null
  echo "$sum" >"$stamp"
done
