"""The process whose end also ends a command of this project.

A stage must not outlive the run that started it: the next run would start a second one, and the two
would write to the same files. So a process that starts stages puts its pid into the environment, and a
stage (and ``skillpress run`` under make) ends when that process has ended. A stage started by hand has no
such pid, so it runs to its end, under ``nohup`` too.
"""

from __future__ import annotations

import os

from skillpress.rollouts.workers.parent import end_with

VARIABLE = "SKILLPRESS_PARENT"
"""The variable with the pid of the process whose end also ends the processes that it starts."""
_STAGE_OF_DVC = "DVC_STAGE"
"""DVC sets it for the commands of dvc.yaml. DVC's process is the parent, or the parent of a shell."""


def name_this_process() -> None:
    """Make all commands that this process starts later end when it ends."""
    os.environ[VARIABLE] = str(os.getpid())


def end_with_named_process() -> None:
    """End this process when the process that the environment names ends, if any. Call it before anything
    else.
    """
    named = os.environ.get(VARIABLE)
    if named is not None:
        end_with(int(named))
    elif _STAGE_OF_DVC in os.environ:  # the user called `dvc repro`
        end_with(os.getppid())
