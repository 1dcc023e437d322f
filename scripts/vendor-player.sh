#!/bin/bash
# Copies the player library that is embedded in the binary from its npm package, at the version and with the checksum
# below. Run it after changing them; `vendor-player.sh --check` says whether what is in the tree is what it would write.
set -euo pipefail
version=1.7.4
integrity="sha512-3GlxGdPvT2YHvQYOt+yOzT/DEior/qJVNIylHA77kgeoBTdQQqi70GwefNEUmHQeNGyjC8U62+bruqW/Tpm+tg=="
to="$(cd "$(dirname "${BASH_SOURCE[0]}")/../internal/web/watch/assets" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
npm pack --silent "hls.js@$version" >/dev/null
got="sha512-$(openssl dgst -sha512 -binary "hls.js-$version.tgz" | base64 -w0)"
if [ "$got" != "$integrity" ]; then
  echo "vendor-player: hls.js $version has checksum $got, want $integrity" >&2
  exit 1
fi
tar -xzf "hls.js-$version.tgz" package/dist/hls.min.js package/LICENSE
# The source map is not shipped, so nothing may ask for it.
sed '/^\/\/# sourceMappingURL=/d' package/dist/hls.min.js >hls.min.js
{ echo "hls.js $version"; echo; cat package/LICENSE; } >hls.LICENSE
if [ "${1:-}" = --check ]; then
  gzip -dc "$to/hls.min.js.gz" | cmp hls.min.js -
  cmp hls.LICENSE "$to/hls.LICENSE"
else
  gzip -9nc hls.min.js >"$to/hls.min.js.gz" # the binary has it as browsers get it: a third of the bytes
  cp hls.LICENSE "$to/hls.LICENSE"
fi
