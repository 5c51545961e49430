"""Every kind of part in a lab's folder is found in the same way, from every process that needs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from skillpress.core.registry import registries

PARTS = """
class AnyKind(type):
    def __getattr__(cls, name):  # what a registry asks for: Parameters, ...
        if name.startswith("__"):
            raise AttributeError(name)
        return dict

class Part(metaclass=AnyKind):
    pass

def function(*arguments, **named):
    return True
"""
LOOK = """
import json, multiprocessing, sys
from pathlib import Path

def found():
    from skillpress.core.names import load
    from skillpress.core.registry import registries
    from skillpress.environments.program.verifier import verifier
    from skillpress.rollouts.programs.functions import Called, Functions
    from skillpress.core.lab import ROOT

    kinds = []
    for registry in filter(lambda each: each.group, registries()):
        load(registry, "own_parts:Part")
        kinds.append(registry.parameter)
    verifier("own_parts:function", 1.0)
    Functions(Called("own_parts:function", (Path.cwd(), ROOT)), 1).close()
    return kinds

if __name__ == "__main__":
    if "child" in sys.argv:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(json.dumps(pool.apply(found)))
    else:
        print(json.dumps(found()))
"""
STARTS = {
    "the command, in the lab": (["-P"], "", []),
    "the command, in a folder of the lab": (["-P"], "params", []),
    "python -m, in the lab": ([], "", []),
    "python -m, in a folder of the lab": ([], "params", []),
    "a process that a command starts": (["-P"], "params", ["child"]),
}
"""How Python is started: its options, the working directory in the lab, and what is started further. ``-P``
keeps the working directory out of the modules' path, as an installed command has it."""


@pytest.mark.heavy
@pytest.mark.parametrize("start", STARTS)
def test_every_kind_of_part_is_found_from_every_kind_of_start(
    start: str, tmp_path: Path, repository: Path
) -> None:
    options, folder, further = STARTS[start]
    lab = tmp_path / "lab"
    (lab / "params").mkdir(parents=True)
    for mark in ("params.yaml", "dvc.yaml"):
        (lab / mark).touch()
    (lab / "own_parts.py").write_text(PARTS)
    look = tmp_path / "look.py"
    look.write_text(LOOK)
    environment = os.environ | {"PYTHONPATH": str(repository)}
    done = subprocess.run(
        [sys.executable, *options, str(look), *further],
        cwd=lab / folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == [each.parameter for each in registries() if each.group]
