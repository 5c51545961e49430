"""System calls that nothing in a sandbox needs and that can break isolation if the kernel has a bug."""

from __future__ import annotations

import errno
import fcntl
import functools
import os
import socket
import tempfile

from skillpress.rollouts.sandbox.limits import SandboxUnavailableError

FORBIDDEN = (
    # other processes
    "ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd",
    # large parts of the kernel through which code has often escaped
    "io_uring_setup", "io_uring_enter", "io_uring_register", "bpf", "perf_event_open", "userfaultfd",
    "keyctl", "add_key", "request_key", "fanotify_init", "name_to_handle_at", "open_by_handle_at",
    # namespaces and mounts
    "unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen",
    "fsconfig", "fsmount", "fspick", "mount_setattr",
    # memory that no process has mapped, so it would not be counted
    "memfd_create", "memfd_secret", "shmget", "semget", "msgget", "mq_open", "vmsplice",
    # the machine
    "kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon",
    "swapoff", "acct", "quotactl", "syslog", "iopl", "ioperm", "settimeofday", "clock_settime",
    "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "vhangup", "modify_ldt", "personality",
    "mbind", "set_mempolicy", "migrate_pages", "move_pages",
)  # fmt: skip

NEW_NAMESPACES = tuple(1 << bit for bit in (7, 17, 25, 26, 27, 28, 29, 30))
"""CLONE_NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET."""
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16
NETLINK_ROUTE = 0
TIOCSTI, TIOCLINUX = 0x5412, 0x541C
PR_SET_DUMPABLE = 4
INT = 0xFFFFFFFF
"""The bits of an argument of type int that the kernel reads; the rest of its register may hold anything."""


@functools.cache
def seccomp_program(ip_sockets: bool, routes: bool = False) -> bytes:
    """The filter, in the format that bwrap reads. A forbidden call fails with EPERM.

    ``clone3`` fails with ENOSYS, since a filter cannot see its flags; libc then uses ``clone``. A request for
    larger socket buffers succeeds without any effect, as a kernel may grant less than the request. So the
    maximum content of a socket is known (``processes.py``).

    Args:
        ip_sockets: whether sockets of IPv4 and IPv6 can be made. routes: whether sockets that list network
        interfaces can be made (netlink's protocol 0), in addition to ``ip_sockets``.

    Raises:
        SandboxUnavailableError: pyseccomp or libseccomp is missing.
    """
    try:
        import pyseccomp as seccomp
    except (ImportError, RuntimeError) as error:  # RuntimeError if the library is missing
        raise SandboxUnavailableError(
            f"sandboxes need pyseccomp and libseccomp ({error}); pip install 'skillpress[sandbox]', and as "
            "root: apt-get install libseccomp2"
        ) from error
    rules = seccomp.SyscallFilter(seccomp.ALLOW)
    refuse = seccomp.ERRNO(errno.EPERM)
    for name in FORBIDDEN:
        rules.add_rule(refuse, name)
    rules.add_rule(seccomp.ERRNO(errno.ENOSYS), "clone3")
    for flag in NEW_NAMESPACES:
        rules.add_rule(refuse, "clone", seccomp.Arg(0, seccomp.MASKED_EQ, flag, flag))

    def is_int(place: int, value: int) -> object:
        return seccomp.Arg(place, seccomp.MASKED_EQ, INT, value)

    rules.add_rule(refuse, "socketpair", seccomp.Arg(0, seccomp.NE, AF_UNIX))
    if ip_sockets:
        for family in [0, *range(AF_INET + 1, AF_INET6)]:
            rules.add_rule(refuse, "socket", seccomp.Arg(0, seccomp.EQ, family))
        if routes:
            rules.add_rule(refuse, "socket", is_int(0, AF_NETLINK), seccomp.Arg(2, seccomp.NE, NETLINK_ROUTE))
            for family in range(AF_INET6 + 1, AF_NETLINK):
                rules.add_rule(refuse, "socket", seccomp.Arg(0, seccomp.EQ, family))
        rules.add_rule(refuse, "socket", seccomp.Arg(0, seccomp.GT, AF_NETLINK if routes else AF_INET6))
    else:
        rules.add_rule(refuse, "socket", seccomp.Arg(0, seccomp.NE, AF_UNIX))

    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        rules.add_rule(seccomp.ERRNO(0), "setsockopt", is_int(1, socket.SOL_SOCKET), is_int(2, option))
    rules.add_rule(refuse, "fcntl", is_int(1, fcntl.F_SETPIPE_SZ))
    rules.add_rule(refuse, "prctl", is_int(0, PR_SET_DUMPABLE), seccomp.Arg(1, seccomp.NE, 0))
    for request in (TIOCSTI, TIOCLINUX):
        rules.add_rule(refuse, "ioctl", is_int(1, request))
    with tempfile.TemporaryFile() as file:
        rules.export_bpf(file)
        return os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0)
