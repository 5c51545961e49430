"""What each benchmark leaves a segmentation cost to choose from: how its start policies win.

    python -m studies.critical.measure_choices
    python -m studies.critical.measure_choices tau_bench=tau-bench/historical_trajectories/gpt-4o-airline.json

``skillpress run`` makes the tasks and the start policy of every benchmark and seed that choices.json lacks,
and lets it play 128 training tasks eight times each. ``skillpress.evaluation.analysis.choice`` says what its
wins differ in. ALFWorld and TextWorld-Cooking need their games (README); a start there takes up to an hour.

With NAME=PATH it measures public logs instead, from copies of the files that ``choices.LOGS`` names. All of a
log's successes are one corpus. A run whose record names no task belongs to the task that its file is called.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, asdict
from pathlib import Path

from skillpress.cli.choice import choice_of
from skillpress.core.storage import write_json
from skillpress.core.trajectory import Skills
from skillpress.evaluation.analysis.choice import Choice, choice
from skillpress.experiment.params import load_params
from skillpress.logs.fields import Wanted, success_field
from skillpress.logs.log import read_log
from skillpress.logs.projection import NameProjection
from skillpress.pipeline.reproduce.workspace import Variant
from skillpress.pipeline.settings import ROOT
from studies.critical.choices import FILE, LOG, LOGS, OVERLAYS, Choices, read_choices

SEEDS = (20, 21, 22)
"""Seeds of the start policies."""
LIMIT_SECONDS = 3 * 3600
"""How long one start may take."""


def main(arguments: Sequence[str]) -> int:
    """Add what studies/critical/choices.json lacks, or the logs that are named; returns the exit code."""
    folder = ROOT / "studies" / "critical"
    found = {name: dict(seeds) for name, seeds in read_choices(folder).items()}
    for name, path in (argument.split("=", 1) for argument in arguments):
        found[name] = {LOG: choice_of_log(Path(path), LOGS[name].success)}
        _write(folder, found)
    for name, seed in () if arguments else missing(found):
        print(f"{name}, seed {seed}", flush=True)
        found.setdefault(name, {})[str(seed)] = measured(name, seed)
        _write(folder, found)
    return 0


def _write(folder: Path, found: Choices) -> None:
    content = {
        known: {key: _fields(one) for key, one in sorted(found[known].items())}
        for known in (*OVERLAYS, *LOGS)
        if known in found
    }
    write_json(folder / FILE, content)


def _fields(one: Choice) -> dict[str, object]:
    """The fields that were measured: earlier records lack those that have a default."""
    return {name: value for name, value in asdict(one).items() if value != getattr(Choice, name, MISSING)}


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


def choice_of_log(path: Path, success: str | None) -> Choice:
    """What the successes of a log differ in, under the default experiment's way to fit dictionaries.

    Raises:
        TracesError: the log cannot be read.
    """
    wanted = Wanted(success=None if success is None else success_field(success))
    log = read_log([path], NameProjection(None), wanted, most_bad=0.0)
    wins: dict[str, list[Skills]] = {}
    for trace in log.traces:
        if trace.success is not None:
            mine = wins.setdefault(trace.task or log.files[trace.place.file].stem, [])
            mine += [trace.skills] * trace.success
    params = load_params(ROOT / "params.yaml")
    longest = max(trace.steps for trace in log.traces)
    per_segment = params.reward.shaping_weight / longest / params.reward.success
    return choice(wins, log.alphabet, params.skills, len(wins), per_segment, params.seed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
