#!/bin/bash
# Makes the container image of the release that stands in a folder: image.sh FOLDER [ARCHITECTURE…]
# Debian's part is made anew, from the packages of today.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go="${GO:-go}" out="$(realpath "${1:?}")"
shift
[ $# -gt 0 ] || set -- amd64 arm64
read -r version commit time <<<"$("$go" -C tools/release run . -root "$PWD" -show)"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
for arch in "$@"; do
  scripts/retry.sh bash -c 'rm -rf "$1" && deploy/image/root.sh "$0" "$1"' "$arch" "$work/$arch"
  "$go" -C tools/image run . -dockerfile "$PWD/Dockerfile" -debian "$work/$arch" -out "$out" -arch "$arch" \
    -release "$out/millrace-$version-linux-$arch.tar.gz" -version "$version" -commit "$commit" -time "$time"
  rm -rf "${work:?}/$arch"
done
