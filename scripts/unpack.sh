#!/bin/bash
# Unpacks packages of the distribution into a new folder, for a program in them: unpack.sh FOLDER PROGRAM PACKAGE…
# Nothing is installed or started.
set -euo pipefail
dir="$(realpath -m "$1")" program="$2"
packages=("${@:3}")
scripts="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
if ! command -v apt-get >/dev/null; then
  echo "unpack.sh: please install ${packages[0]} by hand: this system has no apt-get" >&2
  exit 1
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
cd "$work"
# Old lists name packages that are no longer there: the second try begins with new ones.
again='"$0" update && apt-get -q download "$@" >log 2>&1' # for a shell of its own
if ! apt-get -q download "${packages[@]}" >log 2>&1 &&
  ! "$scripts/retry.sh" bash -c "$again" "$scripts/apt.sh" "${packages[@]}"; then
  cat log >&2
  exit 1
fi
mkdir "$dir"
for package in *.deb; do dpkg-deb -x "$package" "$dir"; done
if [ ! -x "$dir/$program" ] || ldd "$dir/$program" 2>/dev/null | grep -q 'not found'; then
  echo "unpack.sh: the unpacked $program lacks libraries: please install ${packages[0]} by hand" >&2
  exit 1
fi
