#!/bin/bash
# Installs the node packages of the tests, as locked in test/browser/driver (the browser itself is the distribution's)
# and in test/sdk. Does nothing for a folder where the packages of its lock are there already; what was installed is
# noted as programtest.NodePackages notes it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
for folder in test/browser/driver test/sdk; do
  note="$folder/node_modules/.installed.json"
  if cmp -s "$folder/package-lock.json" "$note"; then continue; fi
  PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 scripts/retry.sh npm --prefix "$folder" ci --prefer-offline --ignore-scripts \
    --no-audit --no-fund --loglevel=error </dev/null
  cp "$folder/package-lock.json" "$note"
done
