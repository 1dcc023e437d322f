#!/bin/bash
# Prints the path of a tool of the tests:
# tool.sh golangci-lint|versitygw|h2spec|mediamtx|nginx|prometheus|caddy|image-root
# Builds it when it is not there yet: from the Go module proxy, pinned with checksums in tools/*/go.mod; nginx, Caddy
# and Prometheus (with promtool beside it) are unpacked from the distribution's packages; image-root is the folder that
# deploy/image/root.sh makes. All clones of a user share the tools, in the user's cache folder, by version, Go and
# processor. What nobody has asked for in two weeks is removed when another one is built.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go="${GO:-go}"
cache="${XDG_CACHE_HOME:-${HOME:?}/.cache}/millrace-test-tools"
mkdir -p "$cache"

# A tool stands under its name when it is whole, whoever else makes it meanwhile or is killed: it is made under another
# name in the cache, and then renamed.
work=""
trap 'rm -rf "$work"' EXIT
begin() {
  find "$cache" -mindepth 1 -maxdepth 1 -mtime +14 -exec rm -rf {} + || true # another one may remove the same
  work="$(mktemp -d "$cache/making-XXXXXX")"
}

# built TOOL FOLDER PACKAGE TIME [FILE]: what go builds of a package, as the module in FOLDER pins it; FILE takes part.
built() {
  local tool="$1" folder="$2" package="$3" takes="$4" version sum
  version="$(awk -v p="$package/" '{sub(/^require /, "")} index(p, $1 "/") == 1 {print $2; exit}' "$folder/go.mod")"
  sum="$(cat "$folder"/go.* "${@:5}" | sha256sum | cut -c1-8)"
  kept="$cache/$tool-$version-$("$go" -C "$folder" env GOVERSION)-$("$go" env GOARCH)-$sum"
  if [ -x "$kept" ]; then return; fi
  echo "building $tool $version ($takes, once)" >&2
  begin
  scripts/retry.sh "$go" -C "$folder" mod download >&2
  if [ "$tool" = mediamtx ]; then
    test/bench/peers/mediamtx.sh "$work/$tool" >&2
  else
    "$go" -C "$folder" build -trimpath -ldflags '-s -w' -o "$work/$tool" "$package" >&2
  fi
  mv "$work/$tool" "$kept"
}

# unpacked TOOL PROGRAM PACKAGE…: a program of this distribution, unless it is installed.
unpacked() {
  local tool="$1"
  if command -v "$tool"; then exit; fi
  # shellcheck source=/dev/null
  kept="$cache/$tool-$(. /etc/os-release && echo "$ID${VERSION_ID:-}")-$(uname -m)"
  if [ ! -d "$kept" ]; then
    begin
    scripts/unpack.sh "$work/$tool" "${@:2}" >&2
    mv -T "$work/$tool" "$kept" || [ -d "$kept" ] # another one was quicker
  fi
  touch "$kept"
  echo "$kept/$2"
  exit
}

# root: what the container image has of Debian, for this processor.
root() {
  local arch
  arch="$("$go" env GOARCH)"
  kept="$cache/image-root-$arch-$(sha256sum deploy/image/root.sh | cut -c1-8)"
  if [ -d "$kept" ]; then return; fi
  echo "unpacking Debian's part of the container image (about a minute, once)" >&2
  begin
  scripts/retry.sh bash -c 'rm -rf "$1" && deploy/image/root.sh "$0" "$1"' "$arch" "$work/root" >&2
  mv -T "$work/root" "$kept" || [ -d "$kept" ] # another one was quicker
}

case "$1" in
  golangci-lint) built "$1" tools/lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint "some minutes" ;;
  versitygw) built "$1" tools/s3 github.com/versity/versitygw/cmd/versitygw "about two minutes" ;;
  h2spec) built "$1" tools/h2spec github.com/summerwind/h2spec/cmd/h2spec "some seconds" ;;
  mediamtx) built "$1" tools/peer github.com/bluenviron/mediamtx "some minutes" test/bench/peers/mediamtx.sh ;;
  nginx) unpacked nginx usr/sbin/nginx nginx libnginx-mod-rtmp ;;
  caddy) unpacked caddy usr/bin/caddy caddy ;;
  prometheus) unpacked prometheus usr/bin/prometheus prometheus ;;
  image-root) root ;;
  *) echo "tool: unknown name $1" >&2; exit 2 ;;
esac
touch "$kept"
echo "$kept"
