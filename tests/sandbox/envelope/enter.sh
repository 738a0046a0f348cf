#!/usr/bin/env bash
# Runs a command isolated from the machine, and exits with its exit status.
#
#   enter.sh UID CONTROLLERS FILE FOLDER... -- COMMAND...
#
# UID          user that the command runs as, without capabilities; 0 needs root and keeps those of a container's root
# CONTROLLERS  cgroup controllers (version 1) whose cgroup of this process the command sees as /sys/fs/cgroup; "v2"; or ""
# FILE         file in one of the folders that is replaced by a copy that belongs to the command's user; or ""
# FOLDER       folder of the machine that the command needs besides the system itself; read-only, at the same path
#
# OPEN_PROC    environment variable; if not empty, root can write to /proc/sys, so that the command can mount a /proc
#
# The command has its own mount, pid, network, IPC and UTS namespaces. Writable folders and home folders are replaced by
# an empty tmpfs of limited size; everything else is read-only. Needs util-linux, iproute2, and root or unprivileged user
# namespaces. Killing the first process here ends all others.
set -euo pipefail

namespaces=(--mount --cgroup --pid --fork --net --ipc --uts --kill-child=KILL)
if [ "$(id -u)" -ne 0 ]; then namespaces+=(--user --map-root-user); fi

# The rest runs as root in these namespaces.
exec unshare "${namespaces[@]}" bash -euo pipefail -c '
outside=$1 uid=$2 controllers=$3 owned=$4; shift 4
folders=()
while [ "$1" != -- ]; do folders+=("$1"); shift; done
shift

mount --make-rprivate /
mount -t proc proc /proc
held=()  # an open folder can still be bound after an empty tmpfs hides its path
for folder in "${folders[@]}"; do exec {fd}<"$folder"; held+=("$fd"); done

mount -o remount,bind,ro / 2>/dev/null || true  # fails on some machines without root, where little is writable anyway
empty() { if [ -d "$1" ]; then mount -t tmpfs -o "size=$2,mode=1777,nosuid,nodev" tmpfs "$1"; fi; }
empty /tmp 1400m
for place in /root /home /srv /media /mnt /run /var/tmp; do empty "$place" 400m; done
for folder in "${folders[@]}"; do
  top=/$(echo "$folder" | cut -d/ -f2)
  case $top in
    /usr | /lib* | /bin | /sbin | /etc | /opt | /var | /proc | /dev | /sys | /tmp | /root | /home | /srv | /media | /mnt | /run) ;;
    *) mountpoint -q "$top" && [ "$(stat -f -c %T "$top")" = tmpfs ] || empty "$top" 400m ;;
  esac
done
for i in "${!folders[@]}"; do
  mkdir -p "${folders[i]}" 2>/dev/null || true
  mount --no-canonicalize --bind "/proc/self/fd/${held[i]}" "${folders[i]}"
  mount -o remount,bind,ro,nosuid "${folders[i]}"
  exec {held[i]}<&-
done

if [ -f "$owned" ]; then  # like the files of a virtual environment that the user made
  mkdir /tmp/owned
  cp "$owned" /tmp/owned/file
  chmod 644 /tmp/owned/file
  if [ "$outside" -eq 0 ]; then chown "$uid:$uid" /tmp/owned/file; fi
  mount --bind /tmp/owned/file "$owned"
  mount -o remount,bind,ro,nosuid "$owned"
fi

mkdir /tmp/dev
mount -t tmpfs -o mode=755,nosuid tmpfs /tmp/dev
mkdir /tmp/dev/pts /tmp/dev/shm
for device in null zero full random urandom tty; do
  touch "/tmp/dev/$device"
  mount --bind "/dev/$device" "/tmp/dev/$device"
done
mount --move /tmp/dev /dev
rmdir /tmp/dev
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts /dev/pts
ln -s pts/ptmx /dev/ptmx
for name in fd:fd stdin:fd/0 stdout:fd/1 stderr:fd/2; do ln -s "/proc/self/${name#*:}" "/dev/${name%:*}"; done
mount -o remount,bind,ro /dev
empty /dev/shm 400m
cgroups() {
  if [ ! -d /sys/fs/cgroup ]; then return; fi
  if [ "$controllers" = v2 ]; then mount -t cgroup2 cgroup2 /sys/fs/cgroup; return; fi
  mount -t tmpfs tmpfs /sys/fs/cgroup
  for controller in $controllers; do
    mkdir "/sys/fs/cgroup/$controller"
    mount -t cgroup -o "$controller" cgroup "/sys/fs/cgroup/$controller"
  done
  mount -o remount,ro /sys/fs/cgroup
}
ip link set lo up
ip address add 169.254.169.254/32 dev lo  # address of the metadata service of clouds
echo 0 > /proc/sys/net/ipv4/ip_unprivileged_port_start

cd /tmp
if [ "$uid" -eq 0 ]; then
  protected=(/sys)  # a /proc with mounts on it cannot be mounted again in another namespace
  if [ -z "${OPEN_PROC:-}" ]; then protected+=(/proc/sys /proc/sysrq-trigger); fi
  for place in "${protected[@]}"; do
    if [ -e "$place" ]; then mount --bind "$place" "$place" && mount -o remount,bind,ro "$place"; fi
  done
  cgroups
  kept=chown,+dac_override,+fowner,+fsetid,+kill,+setgid,+setuid,+setpcap,+net_bind_service,+net_raw,+sys_chroot,+mknod,+setfcap
  exec setpriv --bounding-set="-all,+$kept" --inh-caps=-all "$@"
fi
cgroups
if [ "$outside" -eq 0 ]; then
  exec setpriv --reuid="$uid" --regid="$uid" --clear-groups --bounding-set=-all --inh-caps=-all "$@"
fi
exec unshare --user --map-user="$uid" --map-group="$uid" "$@"
' enter "$(id -u)" "$@"
