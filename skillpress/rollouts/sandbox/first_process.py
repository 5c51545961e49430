"""The first process inside gVisor; it does the work that bwrap does in the other isolation.

    python first_process.py SCRIPT ARGUMENTS...

It loads the seccomp filter for all that runs inside, and runs the script in a child. It passes the host's
interrupts on to that child, collects processes whose parent has ended, and exits with the child's exit code.
"""

import ctypes
import os
import runpy
import signal
import socket
import struct
import sys
import threading

FILTER = "/run/seccomp"
"""The seccomp filter: ``runsc`` reads filters only in another form."""
INTERRUPTS = "/run/interrupts"
"""The host's socket, each byte of which is an interrupt; none for a program."""
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
SIGNALLED = 128
"""Added to a signal's number to form an exit code, as in a shell."""


def _load_filter() -> None:
    """Load the filter; ``OSError`` if the kernel refuses it."""
    with open(FILTER, "rb") as file:
        content = file.read()
    instructions = ctypes.create_string_buffer(content, len(content))
    program = struct.pack("HP", len(content) // 8, ctypes.addressof(instructions))  # struct sock_fprog
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program, 0, 0):
        raise OSError(ctypes.get_errno(), f"the seccomp filter {FILTER} cannot be loaded")


def _pass_on(interrupts: socket.socket, child: int) -> None:
    while interrupts.recv(1):
        os.kill(child, signal.SIGINT)


def main() -> None:
    """Run the script in a child process until it ends."""
    _load_filter()
    interrupts = None
    if os.path.exists(INTERRUPTS):
        interrupts = socket.socket(socket.AF_UNIX)
        interrupts.connect(INTERRUPTS)
    child = os.fork()
    if not child:
        if interrupts is not None:
            interrupts.close()
        sys.argv = sys.argv[1:]
        runpy.run_path(sys.argv[0], run_name="__main__")
        return
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # the child alone has the host's socket
    if interrupts is not None:
        threading.Thread(target=_pass_on, args=(interrupts, child), daemon=True).start()
    ended, status = 0, 0
    while ended != child:
        ended, status = os.wait()
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else SIGNALLED - code)


if __name__ == "__main__":
    main()
