#!/bin/bash
# Boots systemd on a copy of this machine: machine.sh NAME FOLDER RELEASE
# Started as the first process of new namespaces (mounts, processes, network, host name, IPC). The copy is an overlay in
# memory: it has this machine's programs and its list of packages, what is written to it never reaches this machine, and
# of the machine's services none runs but the journal. RELEASE is seen there as /mnt.
# machine.sh clean NAME FOLDER: in a new mount namespace, removes the control groups that are left.
set -euo pipefail

groups() { # FOLDER: this machine's tree of control groups
  mkdir -p "$1"
  mount -t cgroup2 none "$1"
}

devices() {
  mount -t tmpfs -o mode=755 dev dev
  mknod -m 666 dev/null c 1 3
  mknod -m 666 dev/zero c 1 5
  mknod -m 666 dev/full c 1 7
  mknod -m 666 dev/random c 1 8
  mknod -m 666 dev/urandom c 1 9
  mknod -m 666 dev/tty c 5 0
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
  mount -t tmpfs -o mode=1777 shm dev/shm
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  ln -s /proc/self/fd/0 dev/stdin
  ln -s /proc/self/fd/1 dev/stdout
  ln -s /proc/self/fd/2 dev/stderr
}

case "${1:?}" in
clean)
  groups "$3"
  if [ -d "$3/$2" ]; then find "$3/$2" -depth -type d -exec rmdir {} +; fi
  exit
  ;;
inside)
  folder="$2" release="$3"
  ;;
*)
  mount --make-rprivate /
  mount -t tmpfs -o mode=755 machine "$2"
  groups "$2/groups"
  mkdir "$2/groups/$1"
  echo 0 >"$2/groups/$1/cgroup.procs"
  umount "$2/groups"
  exec unshare --cgroup -- "$0" inside "$2" "$3" # whose groups begin below the one just made
  ;;
esac

mkdir "$folder"/{upper,work,root}
mount -t overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" overlay "$folder/root"
cd "$folder/root"
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys # the kernel's settings are this machine's
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
devices
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
mount --bind -o ro "$release" mnt

: >etc/fstab
rm -rf etc/systemd/system/* {usr/lib,lib}/systemd/system/*.wants var/lib/systemd/deb-systemd-helper-*
mkdir etc/systemd/system/sysinit.target.wants
ln -s /lib/systemd/system/systemd-journald.service etc/systemd/system/sysinit.target.wants/
rm -f usr/sbin/policy-rc.d # images of containers forbid services by it
# As if there never had been one here.
chroot . dpkg --purge millrace >/dev/null 2>&1 || true
rm -rf etc/millrace.yaml* var/lib/millrace
if chroot . getent passwd millrace >/dev/null; then chroot . userdel millrace; fi

mkdir .before
pivot_root . .before
umount -l .before
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=basic.target --log-target=console --log-level=warning --show-status=no
