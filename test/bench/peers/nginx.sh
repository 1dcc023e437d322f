#!/bin/bash
# Prints the path of an nginx to compare with: the system's, or the distribution's package, with that of the RTMP
# module, unpacked below the given folder (not installed, nothing is started).
set -euo pipefail
if command -v nginx; then exit 0; fi
dir="$(realpath -m "$1")"
scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")/../../../scripts" && pwd)"
if [ ! -x "$dir/usr/sbin/nginx" ] || [ ! -e "$dir/usr/lib/nginx/modules/ngx_rtmp_module.so" ]; then
  if ! command -v apt-get >/dev/null; then
    echo "nginx.sh: please install nginx by hand: this system has no apt-get" >&2
    exit 1
  fi
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  cd "$work"
  packages=(nginx libnginx-mod-rtmp)
  # Old lists name packages that are no longer there: the second try begins with new ones.
  if ! apt-get -q download "${packages[@]}" >log 2>&1 &&
    ! "$scripts/retry.sh" bash -c '"$0" update && apt-get -q download "$@" >log 2>&1' "$scripts/apt.sh" "${packages[@]}"; then
    cat log >&2
    exit 1
  fi
  rm -rf "$dir"
  mkdir -p "$dir"
  for package in *.deb; do dpkg-deb -x "$package" "$dir"; done
fi
if ! "$dir/usr/sbin/nginx" -v 2>/dev/null; then
  echo "nginx.sh: the unpacked nginx lacks libraries: please install nginx by hand" >&2
  exit 1
fi
echo "$dir/usr/sbin/nginx"
