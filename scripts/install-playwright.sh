#!/bin/bash
# Installs the browser tests' node packages as locked in test/browser/driver; the browser itself is the distribution's.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../test/browser/driver"
stamp=node_modules/.installed
sum="$(sha256sum package-lock.json package.json | sha256sum)"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$sum" ]; then
  exit 0
fi
PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 npm ci --ignore-scripts --no-audit --no-fund --loglevel=error </dev/null
echo "$sum" >"$stamp"
