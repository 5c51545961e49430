"""A variant's workspace, held by one process and made ready for DVC."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path

from skillpress.core.storage import make_folder
from skillpress.pipeline.files import BASE_ROLLOUTS
from skillpress.pipeline.reproduce.dvc_call import leave_out_routine
from skillpress.pipeline.reproduce.lock import DEFAULT_WAIT_SECONDS, exclusive, workspace_lock
from skillpress.pipeline.reproduce.repair import repair
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant, prepare_workspace
from skillpress.pipeline.settings import ROOT


@contextmanager
def held_workspace(variant: Variant, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Iterator[Path]:
    """Hold the variant's workspace in the block, which runs in its folder; yields the folder.

    Raises:
        ParamsError: the parameters are wrong.
        LockTimeoutError: another run holds it for longer than ``wait_seconds``.
    """
    workspace = ROOT / FOLDER / variant.name if variant.name else ROOT
    with exclusive(workspace_lock(workspace), str(workspace), wait_seconds):
        prepare_workspace(ROOT, variant)
        for folder in (ROOT / ".dvc" / "cache", workspace / BASE_ROLLOUTS.parent):
            make_folder(folder, private=True)  # DVC's copies have modes of their own
        repair(workspace)
        leave_out_routine()
        with chdir(workspace):
            yield workspace
