#!/bin/bash
# Builds the peer for live streams from the Go module proxy, at the version and checksum of tools/peer: mediamtx.sh path/of/the/binary
set -euo pipefail
to="$(realpath -m "$1")"
cd "$(dirname "$0")/../../.."
go="${GO:-go}"
src="$("$go" -C tools/peer mod download -json github.com/bluenviron/mediamtx | sed -n 's/^\t"Dir": "\(.*\)",\{0,1\}$/\1/p')"
version="$(awk '$1 == "require" && $2 == "github.com/bluenviron/mediamtx" {print $3}' tools/peer/go.mod)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cp -r "$src/." "$work"
chmod -R u+w "$work"
# What its own build makes and the module leaves out: the version, and hls.js for its page, which nobody opens here.
echo "$version" >"$work/internal/core/VERSION"
: >"$work/internal/servers/hls/hls.min.js"
mkdir -p "$(dirname "$to")"
scripts/retry.sh "$go" -C "$work" mod download
"$go" -C "$work" build -trimpath -ldflags '-s -w' -o "$to" .
