"""``make run``: check the parameters, take the workspace's lock, and let DVC reproduce what changed.

    python -m tasks.reproduce                                          the default experiment, here
    python -m tasks.reproduce --params params/grpo.yaml --seed 1       a variant, under workspaces/

DVC alone does the work (``dvc repro`` is the same without the lock and the check).
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from skillpress.params import ParamsError, load_params
from skillpress.storage import StorageError
from tasks import exit_codes
from tasks.lock import LockTimeoutError, exclusive
from tasks.settings import ROOT
from tasks.workspace import prepare_workspace


def reproduce(workspace: Path) -> int:
    """``dvc repro`` in ``workspace``, which must be this process's alone; returns its exit code.

    Raises:
        ParamsError: its params.yaml is wrong; nothing was run.
    """
    from dvc.cli import main as dvc

    os.chdir(workspace)
    load_params()
    return int(dvc(["repro"]))


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--params", type=Path, action="append", default=[], help="overlay; may be repeated")
    parser.add_argument("--seed", type=int, help="instead of the seed in the params files")
    chosen = parser.parse_args(arguments)
    try:
        workspace = ROOT
        if chosen.params or chosen.seed is not None:
            workspace = prepare_workspace(ROOT, chosen.params, chosen.seed)
        load_params(workspace / "params.yaml")
        with exclusive(workspace):
            code = reproduce(workspace)
    except (ParamsError, StorageError, LockTimeoutError) as error:
        print(error, file=sys.stderr)
        return exit_codes.USER_ERROR
    if code == 0:
        print(f"report: {workspace / 'results' / 'report.html'}\nruns: make ui")
    return code


if __name__ == "__main__":
    sys.exit(main())
