"""``python -m studies.reuserl``: update docs/reproduce.md from the manifest and the tables made here."""

from __future__ import annotations

import sys

from skillpress.core.errors import UserError
from skillpress.core.storage import write_text
from skillpress.pipeline import exit_codes
from skillpress.pipeline.settings import ROOT
from studies.reuserl.page import PAGE, page


def main() -> int:
    """The command; returns the exit code."""
    try:
        write_text(ROOT / PAGE, page(ROOT))
    except UserError as error:
        exit_codes.say(error)
        return exit_codes.USER_ERROR
    print(ROOT / PAGE)
    return 0


if __name__ == "__main__":
    sys.exit(main())
