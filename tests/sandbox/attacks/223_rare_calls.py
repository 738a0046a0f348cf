# CLASS: kernel   SEVERITY: must   TIMEOUT: 10   SHARED: calls
# EXPECT: calls that no program of this kind needs are refused before the kernel looks at their arguments.
RARE = {
    "mount": 165, "umount2": 166, "pivot_root": 155, "chroot": 161, "swapon": 167, "swapoff": 168, "reboot": 169,
    "sethostname": 170, "setdomainname": 171, "iopl": 172, "ioperm": 173, "init_module": 175, "delete_module": 176,
    "acct": 163, "settimeofday": 164, "syslog": 103, "vhangup": 153, "kexec_load": 246,
    "finit_module": 313, "kexec_file_load": 320, "clock_settime": 227, "clock_adjtime": 305, "lookup_dcookie": 212,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "fspick": 433,
    "mount_setattr": 442, "quotactl_fd": 443, "setns": 308, "statmount": 457, "listmount": 458,
    "_sysctl": 156, "uselib": 134, "ustat": 136, "sysfs": 139, "nfsservctl": 180,
}  # fmt: skip
for name, number in RARE.items():
    called(name, number, -1, -1, -1, -1, -1, -1, x32=name in ("mount", "setns", "kexec_load"))
called("personality", 135, 0x0400000)
called("unshare", 272, 0x10000000)
called("unshare of files and mounts", 272, 0x20000 | 0x4000000 | 0x8000000)
