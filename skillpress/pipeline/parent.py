"""Which process a command of this project ends with.

A stage must not outlive the run that started it: the next run would start a second one, and the two
would write into the same files. So a process that starts stages names itself in the environment, and a
stage (and ``skillpress run`` under make) ends when that process has ended. A stage started by hand names
nobody and lives as long as it likes, under ``nohup`` too.
"""

from __future__ import annotations

import os

from skillpress.play.workers.parent import end_with

VARIABLE = "SKILLPRESS_PARENT"
"""The number of the process with which those that it starts are to end."""
_STAGE_OF_DVC = "DVC_STAGE"
"""Set by DVC for the commands of dvc.yaml; its own process is right above, or a shell of it is."""


def name_this_process() -> None:
    """Commands that this process starts from now on end with it."""
    os.environ[VARIABLE] = str(os.getpid())


def end_with_named_process() -> None:
    """Follow the process that the environment names, if any; to be called before anything else."""
    named = os.environ.get(VARIABLE)
    if named is not None:
        end_with(int(named))
    elif _STAGE_OF_DVC in os.environ:  # `dvc repro` by hand
        end_with(os.getppid())
