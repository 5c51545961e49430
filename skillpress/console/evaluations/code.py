"""Which code decides what a command plays or samples, and with it whether unfinished work may go on."""

from __future__ import annotations

from typing import Any

from skillpress.experiment.params import Params
from skillpress.pipeline.fingerprints import Fingerprints

AROUND = ("skillpress/console/", "skillpress/pipeline/", "skillpress/show/", "skillpress/measure/")
"""Folders whose code starts, records and describes an evaluation, and decides none of its episodes."""
PLAYED = ("environment", "policy", "engine.name", "reward", "skills.library")
"""The parameters by which the parts are named that play."""


def deciding_code(params: Params, module: str) -> dict[str, Any]:
    """The code of the library that a module runs with an experiment's names: file to hash, and the parts that
    the experiment names. The versions of libraries are not in it; whoever asks knows which of them decide.
    """
    fingerprints = Fingerprints.here(params)
    found = fingerprints.closure([module], PLAYED)
    files = {file: digest for file, digest in found.files.items() if not file.startswith(AROUND)}
    fingerprints.code.sources.save()
    parts = {key: sorted(map(str, named)) for key, named in found.parts.items()}
    return {"code": files, "parts": parts}
