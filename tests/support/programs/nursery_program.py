"""Imports all modules that trainings need, then forks the programs that a test orders: ``nursery_program.py
SOCKET``.

SOCKET is the number of an open Unix socket. An order is a JSON list, program and arguments, with two open
files for its output and its errors. The first answer, at once, is the process's number; the second, at its
end, is its return code as ``subprocess`` defines it. When the socket closes, this program ends.
"""

from __future__ import annotations

import json
import os
import runpy
import socket
import sys
import traceback
from typing import NoReturn

import deepspeed.runtime.zero.muon.muon_optimizer
import deepspeed.runtime.zero.stage3
import deepspeed.runtime.zero.stage_1_and_2  # noqa: F401
import transformers.models.llama.modeling_llama  # noqa: F401

import skillpress.experiment.collection
import skillpress.experiment.imitation
import skillpress.experiment.training  # noqa: F401

LONGEST_ORDER = 65_536


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    while True:
        order, files, _, _ = socket.recv_fds(control, LONGEST_ORDER, 2)
        if not order:
            return
        child = os.fork()
        if child == 0:
            control.close()
            become(json.loads(order), *files)
        for file in files:
            os.close(file)
        control.sendall(f"{child}\n".encode())
        _, status = os.waitpid(child, 0)
        control.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def become(command: list[str], output: int, errors: int) -> NoReturn:
    """Run a program as if this process had been started with it.

    It ends without Python's clean-up, which would visit all inherited memory and take three seconds.
    """
    os.dup2(output, 1)
    os.dup2(errors, 2)
    os.close(output)
    os.close(errors)
    sys.argv = command
    code = 1
    try:
        runpy.run_path(command[0], run_name="__main__")
        code = 0
    except SystemExit as error:
        code = error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:
        traceback.print_exc()
        raise
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
