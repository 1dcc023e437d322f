#!/bin/bash
# Unpacks the distribution's nginx, with its RTMP module, into a new folder: nginx.sh FOLDER
# Nothing is installed or started.
set -euo pipefail
dir="$(realpath -m "$1")"
scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../scripts" && pwd)"
if ! command -v apt-get >/dev/null; then
  echo "nginx.sh: please install nginx by hand: this system has no apt-get" >&2
  exit 1
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
packages=(nginx libnginx-mod-rtmp)
# Old lists name packages that are no longer there: the second try begins with new ones.
again='"$0" update && apt-get -q download "$@" >log 2>&1' # for a shell of its own
if ! apt-get -q download "${packages[@]}" >log 2>&1 &&
  ! "$scripts/retry.sh" bash -c "$again" "$scripts/apt.sh" "${packages[@]}"; then
  cat log >&2
  exit 1
fi
mkdir "$dir"
for package in *.deb; do dpkg-deb -x "$package" "$dir"; done
if ! "$dir/usr/sbin/nginx" -v 2>/dev/null; then
  echo "nginx.sh: the unpacked nginx lacks libraries: please install nginx by hand" >&2
  exit 1
fi
