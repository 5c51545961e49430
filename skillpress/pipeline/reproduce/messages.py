"""What DVC prints in a run and nobody needs to read: that it wrote dvc.lock, and how to add that to git."""

from __future__ import annotations

import logging

ROUTINE = ("dvc.dvcfile", "dvc.repo.scm_context")
"""Modules of DVC whose remarks are left out; their warnings are not."""


def leave_out_routine() -> None:
    """Have DVC, in this process, print the stages that it runs or skips and what goes wrong."""
    for module in ROUTINE:
        logging.getLogger(module).setLevel(logging.WARNING)
