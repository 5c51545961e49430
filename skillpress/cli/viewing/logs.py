"""Any log that ``skillpress skills`` reads, as a rollout file for the viewer."""

from __future__ import annotations

from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from skillpress.cli.evaluations.folder import EvaluationFolder
from skillpress.cli.reading import read, wanted_by
from skillpress.cli.viewing.found import experiment_of
from skillpress.core.logprobs import as_logprobs
from skillpress.core.rollout_files import join_rollouts, write_rollouts
from skillpress.core.trajectory import Step, Trajectory
from skillpress.environments.calls.steps import TraceStep, text_of
from skillpress.logs.log import Log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from skillpress.logs.rollouts import is_rollouts
from skillpress.logs.trace import Dialogue, Trace
from skillpress.reports.viewer.source import SourceFiles

MOST = 10_000
"""The viewer shows at most this many traces, the first ones of the log."""
TOGETHER = 2_000
"""Number of traces in memory at once. A file is read again for each such batch."""
OUTCOMES = {True: "success", False: "failure", None: "unknown"}
AGENT = "assistant"


def is_log(path: Path) -> bool:
    """Whether to read a path as a log: a file of another program, or a folder that no experiment or
    evaluation made.
    """
    if path.is_file():
        return not is_rollouts(path)
    folder = EvaluationFolder(path)
    ours = experiment_of(path) is not None or folder.finished or folder.parameters.is_file()
    return path.is_dir() and not ours and any(path.iterdir())


def log_source(paths: Sequence[Path], chosen: Namespace, folder: Path) -> tuple[SourceFiles, str]:
    """A log as a rollout file in ``folder``, and a note on how it was read.

    Args:
        chosen: the options of ``reading.add_reading_options`` and ``add_field_options``.

    Raises:
        TracesError: no trace was found, too many lines are bad, or an option does not fit the log.
    """
    log, wanted = read("view", paths, NameProjection(), wanted_by(chosen), chosen.most_bad)
    tasks, parts = Counter[str](), list[Path]()
    shown = range(min(len(log), MOST))
    for first in shown[::TOGETHER]:
        positions = shown[first : first + TOGETHER]
        parts.append(folder / f"traces-{len(parts)}.parquet")
        played = (trajectory(found, position, tasks) for position, found in traces_at(log, wanted, positions))
        write_rollouts(parts[-1], played)
    join_rollouts(folder / "log.parquet", parts)
    name = ", ".join(path.name for path in paths)
    return SourceFiles(name=name, rollouts=folder / "log.parquet"), " ".join(_notes(log))


def _notes(log: Log) -> Iterator[str]:
    kinds = ", ".join(f"{count:,} of the format {kind}" for kind, count in log.formats.most_common())
    yield f"Traces of a log: {kinds}."
    if len(log) > MOST:
        yield f"The first {MOST:,} of {len(log):,} are shown."
    if log.bad_lines:
        yield f"Lines that were skipped because they are not traces: {log.bad_lines:,}."
    if unknown := sum(trace.success is None for trace in log.traces):
        yield f"The outcome of {unknown:,} is unknown; such a trace does not count as won."
    for what, count in log.left_out.items():
        yield f"Left out: {count:,} {what}."
    yield from (f"{warning[0].upper()}{warning[1:]}." for warning in log.warnings)


def trajectory(trace: Trace, position: int, tasks: Counter[str]) -> Trajectory:
    """A trace as an episode; ``tasks`` counts the earlier episodes of each task."""
    task = trace.task or trace.name or f"trace {position + 1}"
    tasks[task] += 1
    return Trajectory(
        task_id=task,
        group_id=task,
        rollout_index=tasks[task] - 1,
        steps=tuple(map(_step, trace.steps)),
        won=trace.success is True,
        terminated=True,
        truncated=False,
        outcome=OUTCOMES[trace.success],
        policy_version=0,
        seed=0,
        first_observation=_beginning(trace.dialogue),
        policy=trace.version,
    )


def _step(step: TraceStep) -> Step:
    action = text_of(step.content)
    return Step(
        prompt_ids=(),
        response_ids=(),
        logprobs=as_logprobs(()),
        thought="",
        action=action if step.tool is None else f"{step.tool or '(no name)'} {action}".rstrip(),
        observation=text_of(step.answer),
        invalid="refused" if step.refused else None,
        reward_parts=(),
    )


def _beginning(dialogue: Dialogue | None) -> str:
    """The messages before the agent's first answer; empty if the log's format keeps no messages."""
    if dialogue is None:
        return ""
    before = takewhile(lambda turn: turn.role != AGENT, dialogue.turns[dialogue.shown :])
    return "\n\n".join(f"{turn.role}: {text_of(turn.words)}" for turn in before)
