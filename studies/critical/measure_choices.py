"""What each benchmark leaves a segmentation cost to choose from: how its start policies win.

    python -m studies.critical.measure_choices

``skillpress run`` makes the tasks and the start policy of every benchmark and seed that choices.json lacks,
and lets it play 128 training tasks eight times each. ``skillpress.evaluation.analysis.choice`` says what its
wins differ in. ALFWorld and TextWorld-Cooking need their games (README); a start there takes up to an hour.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict

from skillpress.cli.choice import choice_of
from skillpress.core.storage import write_json
from skillpress.evaluation.analysis.choice import Choice
from skillpress.pipeline.reproduce.workspace import Variant
from skillpress.pipeline.settings import ROOT
from studies.critical.choices import FILE, OVERLAYS, Choices, read_choices

SEEDS = (20, 21, 22)
"""Seeds of the start policies."""
LIMIT_SECONDS = 3 * 3600
"""How long one start may take."""


def main() -> int:
    """Add what studies/critical/choices.json lacks; returns the exit code."""
    folder = ROOT / "studies" / "critical"
    found = {name: dict(seeds) for name, seeds in read_choices(folder).items()}
    for name, seed in missing(found):
        print(f"{name}, seed {seed}", flush=True)
        found.setdefault(name, {})[str(seed)] = measured(name, seed)
        content = {
            known: {key: asdict(one) for key, one in sorted(found[known].items())}
            for known in OVERLAYS
            if known in found
        }
        write_json(folder / FILE, content)
    return 0


def missing(found: Choices) -> Iterator[tuple[str, int]]:
    """(benchmark, seed) of all that is not measured; the benchmarks whose starts take longest come last."""
    for name in OVERLAYS:
        yield from ((name, seed) for seed in SEEDS if str(seed) not in found.get(name, {}))


def measured(name: str, seed: int) -> Choice:
    """Make the start policy, let it play, and look at its wins.

    Raises:
        CalledProcessError: a stage failed; it has said why.
    """
    overlays = tuple(ROOT / "params" / f"{overlay}.yaml" for overlay in (*OVERLAYS[name], "critical/choice"))
    command = [sys.executable, "-m", "skillpress.pipeline.reproduce", "--seed", str(seed)]
    command += [part for overlay in overlays for part in ("--params", str(overlay))]
    command += ["--stages", "project_skills"]
    subprocess.run(command, check=True, cwd=ROOT, timeout=LIMIT_SECONDS)
    return choice_of(ROOT / "workspaces" / Variant(overlays, seed).name)


if __name__ == "__main__":
    sys.exit(main())
