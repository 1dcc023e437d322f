#!/bin/bash
# Installs what the tests and the demo need from the distribution: install-packages.sh ffmpeg|speech|postgresql|chromium|
# chromium-headless-shell|node|gstreamer|pebble|srt|haproxy|varnish|pgbouncer|systemd|rpm|crun ...
# Does nothing for what is there already. Needs root or sudo only when something is missing.
set -euo pipefail

have() {
  case "$1" in
    ffmpeg) command -v ffmpeg && command -v ffprobe ;;
    speech) [ -e /usr/share/pocketsphinx/model/en-us/en-us.lm.bin ] && compgen -G '/usr/lib/*/libpocketsphinx.so.3' && compgen -G '/usr/lib/*/libflite.so.1' ;;
    postgresql) command -v initdb || compgen -G '/usr/lib/postgresql/*/bin/initdb' ;;
    chromium|chromium-headless-shell) command -v "$1" ;;
    node) command -v node && command -v npm ;;
    gstreamer) for e in flvmux rtmpsink rtmp2sink hlsdemux souphttpsrc openh264dec faad; do gst-inspect-1.0 --exists "$e" || return 1; done 2>/dev/null && compgen -G '/usr/lib/*/gio/modules/libgiognutls.so' ;;
    pebble) command -v pebble ;;
    srt) command -v srt-live-transmit ;;
    haproxy) command -v haproxy ;;
    varnish) command -v varnishd && command -v varnishadm ;;
    pgbouncer) [ -x /usr/sbin/pgbouncer ] || command -v pgbouncer ;;
    systemd) command -v systemd-analyze && [ -e /lib/systemd/systemd ] ;;
    rpm|crun) command -v "$1" ;;
    *) echo "install-packages: unknown name $1" >&2; exit 2 ;;
  esac >/dev/null
}

packages() {
  case "$1" in
    speech) echo libpocketsphinx3 pocketsphinx-en-us libflite1 ;;
    node) echo nodejs npm ;;
    gstreamer) echo gstreamer1.0-tools gstreamer1.0-plugins-base gstreamer1.0-plugins-good gstreamer1.0-plugins-bad glib-networking ;;
    srt) echo srt-tools ;;
    haproxy) echo haproxy ;;
    varnish) echo varnish ;;
    *) echo "$1" ;;
  esac
}

missing=()
for name in "$@"; do
  have "$name" || missing+=("$name")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if ! command -v apt-get >/dev/null; then
  echo "install-packages: please install ${missing[*]} by hand: this system has no apt-get" >&2
  exit 1
fi

list=()
for name in "${missing[@]}"; do
  read -ra more <<<"$(packages "$name")"
  list+=("${more[@]}")
done
echo "installing ${list[*]} (a few minutes, once)"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
# Each try begins with new lists: the packages that old ones name are no longer there.
"$here/retry.sh" bash -c '"$0" update && "$0" install --no-install-recommends "$@"' "$here/apt.sh" "${list[@]}" ||
  { echo "install-packages: could not install ${list[*]}" >&2; exit 1; }
for name in "${missing[@]}"; do
  have "$name" || { echo "install-packages: $name is still missing after the installation" >&2; exit 1; }
done
