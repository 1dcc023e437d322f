#!/bin/bash
# Unpacks what the image has of Debian into a new folder: root.sh ARCHITECTURE FOLDER
# ffmpeg with its libraries, certificates and the model of speech recognition, but no shell and no package manager.
# Nothing is installed or run, so any Debian machine makes this for any architecture, as anybody.
set -euo pipefail
arch="${1:?}" root="$(realpath -m "${2:?}")"
packages=(base-files ca-certificates ffmpeg pocketsphinx-en-us)
# What packages depend on, but nothing here loads: drivers for screens, and programs.
without=(debconf fontconfig libasound2-data libdrm-amdgpu1 libdrm-intel1 libdrm-nouveau2 libdrm-radeon1
  libedit2 libelf1 libgdk-pixbuf2.0-common libgl1-mesa-dri libglapi-mesa libglx-mesa0 libllvm15 libopenal-data
  libpciaccess0 libsensors5 libsensors-config libx11-data libxcb-dri2-0 libxcb-glx0 libxcb-present0 libxcb-randr0
  libxcb-sync1 libxshmfence1 libxxf86vm1 libz3-4 lsb-base mawk openssl shared-mime-info sysvinit-utils x11-common
  xkb-data)

if ! command -v apt-get dpkg-deb >/dev/null; then
  echo "root.sh: needs Debian's apt-get and dpkg-deb" >&2
  exit 1
fi
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/{lists,archives}/partial
: >"$work/status"
for suite in debian:bookworm debian:bookworm-updates debian-security:bookworm-security; do
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
    "http://deb.debian.org/${suite%:*} ${suite#*:} main"
done >"$work/sources.list"
cat >"$work/apt.conf" <<END
Dir::State "$work";
Dir::State::lists "$work/lists";
Dir::State::status "$work/status";
Dir::Cache "$work";
Dir::Cache::archives "$work/archives";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
APT::Architecture "$arch";
APT::Architectures "$arch";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
END
apt() { LC_ALL=C APT_CONFIG="$work/apt.conf" apt-get -q -y "$@"; }
if ! { apt update && apt --print-uris install "${packages[@]}"; } >"$work/uris" 2>"$work/log"; then
  cat "$work/log" >&2
  exit 1
fi
names="$(awk '/^.http/ {sub(/_.*/, "", $2); print $2}' "$work/uris" | grep -vxF -f <(printf '%s\n' "${without[@]}"))"
cd "$work/archives"
# shellcheck disable=SC2086 # one word is one name
if ! apt download $names >"$work/log" 2>&1; then
  cat "$work/log" >&2
  exit 1
fi

mkdir -p "$root"/usr/{bin,sbin,lib,lib64} "$root/var/lib/dpkg/status.d"
for dir in bin sbin lib lib64; do ln -s "usr/$dir" "$root/$dir"; done
export LC_ALL=C # the order of the files
for package in *.deb; do
  dpkg-deb --fsys-tarfile "$package" | tar -x -C "$root" --no-same-owner --keep-directory-symlink \
    --exclude='./usr/share/doc/*/?*.gz' --exclude=./usr/share/{man,info,locale,lintian,bug,applications,menu,pixmaps} \
    --exclude=./etc/{cron.daily,default,init.d,logrotate.d,update-motd.d}
  # Where scanners look for the versions of packages in an image without dpkg.
  dpkg-deb --field "$package" >"$root/var/lib/dpkg/status.d/${package%%_*}"
done

# What the packages' scripts would have done.
cd "$root"
mkdir -p etc/ssl/certs
cat usr/share/ca-certificates/mozilla/*.crt >etc/ssl/certs/ca-certificates.crt
for library in usr/lib/*/blas/libblas.so.3 usr/lib/*/lapack/liblapack.so.3; do
  ln -s "$(basename "$(dirname "$library")")/$(basename "$library")" "${library%/*/*}/$(basename "$library")"
done
cat >etc/passwd <<'END'
root:x:0:0:root:/root:/usr/sbin/nologin
millrace:x:10001:10001:Millrace:/var/lib/millrace:/usr/sbin/nologin
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
END
cat >etc/group <<'END'
root:x:0:
millrace:x:10001:
nogroup:x:65534:
END
rm -rf var/cache/* var/backups var/mail var/local usr/local/* usr/share/ca-certificates usr/sbin/*
find . -type f -perm /6000 -exec chmod ug-s {} +
find . -exec touch --no-dereference --date=@0 {} + # the same packages make the same layer
