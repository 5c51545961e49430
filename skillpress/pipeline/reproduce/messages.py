"""DVC's routine output that no reader needs: that it wrote dvc.lock, and how to add that to git."""

from __future__ import annotations

import logging

ROUTINE = ("dvc.dvcfile", "dvc.repo.scm_context")
"""Modules of DVC whose remarks are left out; their warnings are shown."""


def leave_out_routine() -> None:
    """Make DVC, in this process, print only the stages that it runs or skips, and errors."""
    for module in ROUTINE:
        logging.getLogger(module).setLevel(logging.WARNING)
