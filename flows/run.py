"""``make run``: one experiment, reproduced stage by stage as a Prefect flow.

    python -m flows.run                                     the default experiment, here
    python -m flows.run --params params/grpo.yaml --seed 1  a variant, under workspaces/
    python -m flows.run --set training.learning_rate=1e-4   the same, one key at a time

The flow is ``flows/experiment.py``. It needs no server that was started before: the run brings its own, on
the file in ``PREFECT_HOME``, whose states, retries and artifacts ``make ui`` shows afterwards. If
``PREFECT_API_URL`` or a profile names a server, that one is used. ``dvc repro`` makes the same files without
Prefect, the lock and the check of the parameters.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from flows import secret
from flows.interrupts import KEPT, interruptible
from flows.own_server import OwnServer
from skillpress.core.arguments import CommandParser, real
from skillpress.core.errors import UserError
from skillpress.core.long_work import importing
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.pipeline import exit_codes, parent
from skillpress.pipeline.reproduce.lock import DEFAULT_WAIT_SECONDS
from skillpress.pipeline.reproduce.workspace import add_variant_options, variant_of
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.tracking.mirrors import trackers

CONSOLE_LEVEL = "PREFECT_LOGGING_HANDLERS_CONSOLE_LEVEL"
"""Prefect's variable. The stages print their progress; Prefect's own lines about it are in its database."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    add_variant_options(parser)
    parser.add_argument(
        "--wait", type=real(at_least=0), default=DEFAULT_WAIT_SECONDS, help="seconds to wait for another run"
    )
    chosen = parser.parse_args(arguments)
    try:
        variant = variant_of(chosen)
        variant.values(ROOT)  # overlays are wrong within a second, before a server is started
        trackers()
        os.environ.setdefault(CONSOLE_LEVEL, "WARNING")
        with interruptible("experiment", KEPT):
            server = None if secret.is_elsewhere() else OwnServer()
            with importing("Prefect and MLflow"):  # in seconds, while the server starts
                from flows.experiment import reproduce

            return reproduce(variant, chosen.wait, server)
    except UserError as error:
        exit_codes.say(error)
        return exit_codes.USER_ERROR


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    parent.end_with_named_process()
    sys.exit(main())
