"""Calls DVC and translates its result to one of this project's exit codes.

DVC ends with 255 whatever a stage ended with. Only the text of its error gives the stage's own code.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from skillpress.core.errors import ParamsError, did_you_mean
from skillpress.core.yaml_files import read_yaml_file
from skillpress.pipeline import exit_codes

_EXIT_CODE = re.compile(r"exited with (-?\d+)$")
_INTERRUPTED = 252
"""DVC's own code after Ctrl-C."""


def call_dvc(stages: Sequence[str] = ()) -> int:
    """``dvc repro`` here; returns one of ``exit_codes``. ``ParamsError`` for an unknown stage."""
    from dvc.cli import main

    check_stages(stages)
    with _errors_noted() as errors:
        code = int(main(["repro", *stages]))
    if code == _INTERRUPTED:
        return exit_codes.INTERRUPTED
    return code and exit_code_of(errors[-1] if errors else None)


def check_stages(stages: Collection[str]) -> None:
    """Raise ``ParamsError`` for the first stage that the current folder's dvc.yaml does not have."""
    known = read_yaml_file("dvc.yaml")["stages"]
    for stage in stages:
        if stage not in known:
            raise ParamsError(
                f"--stages: there is no stage {stage!r}; there are {', '.join(known)}"
                f"{did_you_mean(stage, known)}"
            )


def stage_exit_code(error: BaseException | None) -> int | None:
    """The exit code of a stage's process, from DVC's error; None if no stage failed."""
    found = _EXIT_CODE.search(str(error.__cause__)) if error is not None else None
    return None if found is None else int(found[1])


def exit_code_of(error: BaseException | None) -> int:
    """A command's exit code after DVC's error: the stage's own code, if it is one of ``exit_codes``."""
    code = stage_exit_code(error)
    return code if code in (exit_codes.USER_ERROR, exit_codes.INTERRUPTED) else exit_codes.RETRY


@contextmanager
def _errors_noted() -> Iterator[list[BaseException]]:
    """Collects the errors that DVC's command line logs before it ends."""
    errors: list[BaseException] = []

    class Note(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info and record.exc_info[1] is not None:
                errors.append(record.exc_info[1])

    logger, note = logging.getLogger("dvc.cli"), Note()
    logger.addHandler(note)
    try:
        yield errors
    finally:
        logger.removeHandler(note)


ROUTINE = ("dvc.dvcfile", "dvc.repo.scm_context")
"""Modules of DVC whose remarks are left out; their warnings are shown."""


def leave_out_routine() -> None:
    """Make DVC, in this process, print only the stages that it runs or skips, and errors."""
    for module in ROUTINE:
        logging.getLogger(module).setLevel(logging.WARNING)
