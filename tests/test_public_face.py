"""Files for GitHub, editors and citations say what the repository says. ``make style`` checks their form."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from skillpress.core.version import __version__
from tests.test_pins import PYTHONS

ROOT = Path(__file__).parents[1]
COMMAND = re.compile(r"^make .+$", re.MULTILINE)


def read(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text())


JOBS = read(".github/workflows/checks.yaml")["jobs"]
MATRIX = JOBS["make"]["strategy"]["matrix"]


def variants() -> Iterator[dict[str, str]]:
    """The values that each job of the matrix has."""
    for python, target in itertools.product(MATRIX["python"], MATRIX["target"]):
        yield {"python": python, "target": target}
    yield from MATRIX["include"]


def commands() -> Iterator[str]:
    """Every call of make in these files."""
    for job in JOBS.values():
        for line in COMMAND.findall("\n".join(step.get("run", "") for step in job["steps"])):
            for variant in variants():
                yield re.sub(r"\$\{\{ matrix\.(\w+) \}\}", lambda match, of=variant: of[match[1]], line)
    yield json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())["postCreateCommand"]
    yield from (hook["entry"] for repo in read(".pre-commit-config.yaml")["repos"] for hook in repo["hooks"])


@pytest.mark.heavy
@pytest.mark.parametrize("command", sorted(set(commands())))
def test_make_knows_what_each_file_asks_of_it(command: str) -> None:
    done = subprocess.run(
        [*command.split(), "--dry-run"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_workflow_runs_all_that_continuous_integration_runs() -> None:
    wanted = set(re.findall(r"^make (\S+)$", (ROOT / ".ci/run").read_text(), re.MULTILINE)) - {"setup-test"}
    assert wanted and wanted <= {variant["target"] for variant in variants()}


def test_the_workflow_tries_the_pythons_that_the_package_names() -> None:
    assert MATRIX["python"] == PYTHONS


def test_the_citation_has_the_version_of_the_package() -> None:
    assert read("CITATION.cff")["version"] == __version__


def test_every_paper_of_the_citation_is_on_the_page_of_papers() -> None:
    page = (ROOT / "docs/papers.md").read_text()
    for paper in read("CITATION.cff")["references"]:
        assert paper["title"].partition(":")[0] in page
        assert all(each["value"] in page for each in paper.get("identifiers", []))
