"""The code that affects what a command plays or samples. If it changed, unfinished work cannot continue."""

from __future__ import annotations

from typing import Any

from skillpress.experiment.params import Params
from skillpress.pipeline.fingerprints import Fingerprints

AROUND = ("skillpress/cli/", "skillpress/pipeline/", "skillpress/reports/", "skillpress/evaluation/")
"""Folders whose code starts, records and describes an evaluation, but does not affect its episodes."""
PLAYED = ("environment", "policy", "engine.name", "reward", "skills.library")
"""The parameters that name the parts that play."""


def deciding_code(params: Params, module: str) -> dict[str, Any]:
    """Hashes of the library's files that a module runs for an experiment, and the parts that the experiment
    names. Versions of libraries are not included; each caller adds those that matter to it.
    """
    fingerprints = Fingerprints.here(params)
    found = fingerprints.closure([module], PLAYED)
    files = {file: digest for file, digest in found.files.items() if not file.startswith(AROUND)}
    fingerprints.code.sources.save()
    parts = {key: sorted(map(str, named)) for key, named in found.parts.items()}
    return {"code": files, "parts": parts}
