"""``python -m tasks STAGE``: run one stage of dvc.yaml in this folder."""

from __future__ import annotations

import pkgutil
import traceback
from collections.abc import Sequence

import tasks
from skillpress.core.arguments import CommandParser
from skillpress.pipeline import exit_codes, parent, settings


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    settings.apply_all()
    modules = [module.name for module in pkgutil.iter_modules(tasks.__path__)]
    names = [name for name in modules if name != "__main__"]
    parser = CommandParser(prog="python -m tasks", description=__doc__)
    parser.add_argument("stage", choices=names, metavar="STAGE", help=", ".join(names))
    stage = parser.parse_args(arguments).stage
    from skillpress.pipeline.stage import run_stage  # half a second, which a misspelt stage need not wait

    return run_stage(stage)


if __name__ == "__main__":
    parent.end_with_named_process()
    try:
        code = main()
    except Exception:  # noqa: BLE001  the traceback is shown; only the interpreter's slow exit is skipped
        exit_codes.say(traceback.format_exc().rstrip())
        code = 1
    exit_codes.leave(code)
