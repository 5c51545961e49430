"""The first stage: it writes what decides each stage's result besides data and parameters.

``python -m skillpress.pipeline.inputs`` computes the fingerprint of every stage of dvc.yaml that depends on
one (:mod:`skillpress.pipeline.fingerprints`), says what has changed since the last time, and writes the files
that differ. DVC runs this command every time; the stages below run again only where their file has changed.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from skillpress.core.errors import UserError
from skillpress.core.log_lines import set_up
from skillpress.core.registry import registries
from skillpress.core.storage import read_json, sweep, write_json
from skillpress.experiment.params import load_params
from skillpress.pipeline import exit_codes, parent
from skillpress.pipeline.fingerprints import Fingerprints, changes
from skillpress.pipeline.graph import FINGERPRINTS, read_stages

_LOG = logging.getLogger("skillpress.pipeline.inputs")

LONGEST_LIST = 6
"""Messages name at most this many changed files per stage."""


def main() -> int:
    """Write the fingerprints; returns the exit code."""
    try:
        set_up()
        for table in registries():
            table.offered()  # refuses names that two packages offer
        fingerprints = Fingerprints.here(load_params())
        made = {
            FINGERPRINTS / f"{stage.name}.json": fingerprints.of(stage)
            for stage in read_stages()
            if stage.fingerprint in stage.dependencies
        }
    except UserError as error:
        exit_codes.say(str(error))
        return exit_codes.USER_ERROR
    fingerprints.code.sources.save()
    sweep(FINGERPRINTS)
    for file, fingerprint in made.items():
        _write(file, fingerprint)
    return 0


def _write(file: Path, fingerprint: dict[str, object]) -> None:
    """Write one stage's file if it differs from the existing file, and print what has changed."""
    sweep(file)
    before = read_json(file) if file.exists() else None
    if before == fingerprint:
        return
    if before is not None:
        changed = changes(before, fingerprint)
        more = f" and {len(changed) - LONGEST_LIST} more" if len(changed) > LONGEST_LIST else ""
        _LOG.info("%s: changed: %s%s", file.stem, ", ".join(changed[:LONGEST_LIST]), more)
    write_json(file, fingerprint)


if __name__ == "__main__":
    parent.end_with_named_process()
    sys.exit(main())
