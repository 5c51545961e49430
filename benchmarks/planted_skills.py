"""Which routines ``skillpress skills --write`` chooses, against two simpler ways: planted ones, and decoys.

    python -m benchmarks.planted_skills > benchmarks/results/planted_skills.json

Sessions of a scripted coding agent hold three routines, and decoys: frequent commands in any order, a routine
that goes with failure, and one of two sessions only. Between two steps of a routine stands another command
with the chance ``noise``. Each way may name as many routines as it likes, up to ``--most``:

- ``ours``: the choice of ``--write`` with its defaults, on outcomes that are known.
- ``ours_without_outcomes``: the same on the same sessions, without outcomes.
- ``ngrams``: the most frequent sequences of 3 to 6 commands, each if it shares at most half of its steps with
  those above it, in at least three sessions.
- ``common_subsequence``: the longest common subsequences of pairs of sessions with at least three commands,
  the most frequent first, with the same two conditions.

A routine is found if a named one shares more than half of its steps, in order, and is no longer than one step
more. Precision is the share of named routines that find a planted one, each planted one once. ``exact`` is
the share of planted routines that are named as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from skillpress.logs.fields import Wanted, success_field
from skillpress.logs.log import read_log
from skillpress.logs.projection import NameProjection
from skillpress.reports.skill_files.choosing import Choosing, choose, overlapping
from skillpress.reports.skill_files.words import longest_common
from tests.support.skills.scripted_sessions import PLANTED, Session, sessions

NOISE = (0.0, 0.1, 0.3, 0.5)
MIN_RUNS = 3
PAIRS = 2000

Routine = tuple[str, ...]


@dataclass(frozen=True)
class Score:
    """How well routines fit the planted ones."""

    precision: float
    recall: float
    exact: float
    named: int


def score(named: Sequence[Routine]) -> Score:
    """The score of the named routines."""
    found = [
        any(overlapping(routine, one) and len(one) <= len(routine) + 1 for one in named)
        for routine in PLANTED
    ]
    exact = sum(routine in named for routine in PLANTED) / len(PLANTED)
    return Score(sum(found) / len(named) if named else 0.0, sum(found) / len(found), exact, len(named))


def ours(played: Sequence[Session], outcomes: bool, most: int) -> list[Routine]:
    """The routines of ``--write``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "log.jsonl"
        path.write_text("".join(json.dumps(_record(session, outcomes)) + "\n" for session in played))
        wanted = Wanted(success=success_field("resolved") if outcomes else None)
        log = read_log([path], NameProjection(), wanted, 0.0)
    choice = choose(log, [session.task for session in played], Choosing(MIN_RUNS, most))
    return [found.phrase for found in choice.chosen]


def _record(session: Session, outcomes: bool) -> dict[str, object]:
    calls = [
        {"id": str(n), "function": {"name": name, "arguments": "{}"}}
        for n, name in enumerate(session.programs)
    ]
    messages = [{"role": "user", "content": session.message}, {"role": "assistant", "tool_calls": calls}]
    return {"messages": messages, **({"resolved": session.success} if outcomes else {})}


def ngrams(played: Sequence[Session], most: int) -> list[Routine]:
    """The most frequent sequences of commands."""
    counts = Counter(
        gram
        for session in played
        for gram in {
            session.programs[begin : begin + length]
            for length in range(3, 7)
            for begin in range(len(session.programs) - length + 1)
        }
    )
    return _apart(counts, most)


def common_subsequences(played: Sequence[Session], most: int, seed: int) -> list[Routine]:
    """The most frequent longest common subsequences of pairs of sessions."""
    chance = random.Random(seed)
    pairs = (chance.sample(played, 2) for _ in range(PAIRS))
    counts = Counter(longest_common(one.programs, other.programs) for one, other in pairs)
    return _apart({found: count for found, count in counts.items() if len(found) >= 3}, most)


def _apart(counts: dict[Routine, int] | Counter[Routine], most: int) -> list[Routine]:
    kept: list[Routine] = []
    ranked = sorted(counts, key=lambda found: (-counts[found], -len(found), found))
    for found in ranked:
        if len(kept) == most or counts[found] < MIN_RUNS:
            break
        if not any(overlapping(found, other) for other in kept):
            kept.append(found)
    return kept


def main() -> int:
    """Score every way at every level of noise; print JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[60, 200])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--most", type=int, default=20)
    chosen = parser.parse_args()
    rows = [
        row
        for count in chosen.sessions
        for noise in NOISE
        for row in _rows(count, noise, chosen.seeds, chosen.most)
    ]
    print(json.dumps({"setting": vars(chosen), "cores": os.cpu_count(), "rows": rows}, indent=1))
    return 0


def _rows(count: int, noise: float, seeds: int, most: int) -> Iterable[dict[str, object]]:
    ways: dict[str, Callable[[Sequence[Session], int], list[Routine]]] = {
        "ours": lambda played, _: ours(played, True, most),
        "ours_without_outcomes": lambda played, _: ours(played, False, most),
        "ngrams": lambda played, _: ngrams(played, most),
        "common_subsequence": lambda played, seed: common_subsequences(played, most, seed),
    }
    for name, way in ways.items():
        begun = time.process_time()
        scores = [score(way(sessions(count, seed, noise), seed)) for seed in range(seeds)]
        row: dict[str, object] = {"sessions": count, "noise": noise, "way": name}
        for key in ("precision", "recall", "exact", "named"):
            values = [getattr(each, key) for each in scores]
            row[key] = {"mean": round(sum(values) / seeds, 3), "least": min(values), "most": max(values)}
        yield row | {"cpu_seconds": round((time.process_time() - begun) / seeds, 2)}


if __name__ == "__main__":
    sys.exit(main())
