"""Reproduces an experiment together with other machines, which share results through a DVC remote.

Machines share only the remote, an MLflow server and the revision of the code. Each works in its own
checkout with its own cache. Before a stage runs, DVC searches the remote for a run with the same inputs and
parameters. If it finds none, the stage runs here and its results go to the remote for the others.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.core.errors import UserError
from skillpress.pipeline import exit_codes
from skillpress.pipeline.reproduce.dvc_call import check_stages, exit_code_of, stage_exit_code
from skillpress.pipeline.revision import revision


class RevisionError(UserError):
    """This checkout is not at the revision that the experiment needs."""


def check_revision(wanted: str) -> None:
    """Raise ``RevisionError`` unless the code here is the wanted commit without changes."""
    if (here := revision()) != wanted:
        raise RevisionError(
            f"this checkout is at {here}, and the experiment is to run at {wanted}: nothing was run. Check "
            "that commit out on every machine, without changes"
        )


def reproduce_with(remote: str, stages: Sequence[str] = ()) -> int:
    """Reproduce the current folder's experiment, restoring what the remote has; returns the exit code.

    Args:
        remote: what ``dvc remote add`` takes: a URL, or a folder that all machines see.
        stages: what to reproduce, with all that it depends on; everything if no stage is named.

    Raises:
        ParamsError: there is no such stage.
    """
    from dvc.exceptions import DvcException
    from dvc.repo import Repo

    check_stages(stages)
    try:
        with Repo(config={"core": {"remote": "shared"}, "remote": {"shared": {"url": remote}}}) as repo:
            repo.reproduce(list(stages) or None, pull=True)
            repo.push(run_cache=True)
    except DvcException as error:
        why = f": {error.__cause__}" if error.__cause__ else ""
        kept = "" if stage_exit_code(error) else "; what was computed is kept here, run again to share it"
        exit_codes.say(f"with the remote {remote}: {error}{why}{kept}")
        return exit_code_of(error)
    return 0
