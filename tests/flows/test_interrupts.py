"""Ctrl-C in a flow ends it with one line, and with the processes that it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

PROGRAM = """
import logging, subprocess, sys, threading, time
from flows.interrupts import interruptible

def task():
    program = "import time; print('child', flush=True); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", program])
    child.wait()
    logging.error("a task failed")
    threading.Event().wait()

with interruptible("ablation", "finished stages are kept in workspaces/"):
    threading.Thread(target=task).start()
    try:
        time.sleep(60)
    except KeyboardInterrupt:
        raise KeyboardInterrupt("1 of 4 experiments are done") from None
"""


@pytest.mark.slow
def test_one_line_says_what_is_done_what_is_kept_and_how_to_go_on(repository: Path) -> None:
    """The thread that waits for the child would keep an ordinary program alive."""
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=repository, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "child\n"
    children = psutil.Process(process.pid).children()
    os.kill(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert said == (
        "ablation: interrupted; 1 of 4 experiments are done; finished stages are kept in workspaces/; "
        "run the same command again to go on\n"
    )
    assert len(children) == 1 and not children[0].is_running()


def test_a_block_without_ctrl_c_leaves_the_handler_as_it_was() -> None:
    from flows.interrupts import interruptible

    before = signal.getsignal(signal.SIGINT)
    with interruptible("ablation", "nothing"):
        pass
    assert signal.getsignal(signal.SIGINT) is before
