"""The command of a page that is made from a plan and its record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

from skillpress.core.errors import UserError
from skillpress.core.storage import write_text
from skillpress.pipeline import exit_codes
from skillpress.pipeline.settings import ROOT
from studies.study.results import Results

Found = TypeVar("Found")


def make_pages(
    read: Callable[[], Found],
    files: Callable[[Found, Path], Mapping[Path, str]],
    results: Callable[[Found], Results],
) -> int:
    """Write all that the record gives, and say how much of the plan is recorded; returns the exit code.

    Args:
        read: reads plan and record, and may raise ``UserError``.
        files: of what was read and the repository, path within it to what it is to hold.
        results: the runs of what was read.
    """
    try:
        found = read()
        for path, text in files(found, ROOT).items():
            write_text(ROOT / path, text)
    except UserError as error:
        exit_codes.say(error)
        return exit_codes.USER_ERROR
    recorded, planned = (sum(of.values()) for of in (results(found).recorded, results(found).planned))
    print(f"{recorded} of {planned} runs; the pages are made anew")
    return 0
