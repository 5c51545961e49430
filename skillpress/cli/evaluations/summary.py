"""An evaluation's figures, its page, and its lines in the terminal, computed from its episodes."""

from __future__ import annotations

import platform
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

import polars as pl

from skillpress.cli.evaluations.endings import TOTAL, count_endings, endings_told
from skillpress.cli.evaluations.folder import ALL, EvaluationFolder, EvaluationRecord, SplitFigures, splits_of
from skillpress.cli.evaluations.players import Player
from skillpress.core.resume import ResumeStore
from skillpress.core.storage import write_text
from skillpress.evaluation.analysis.failures import failure_figures, kinds_of_episodes
from skillpress.evaluation.paper import environment_figures
from skillpress.evaluation.statistics import SuccessRate, evaluate, evaluation_steps
from skillpress.experiment.params import Params
from skillpress.pipeline.revision import revision
from skillpress.reports.report.data import PolicyResult, ReportData
from skillpress.reports.report.page import render_report
from skillpress.rollouts.chat.journal import UNCOUNTED

LIBRARIES = ("skillpress", "torch", "transformers", "polars", "numpy")
READING = {
    "pass_at_1": "episodes won / episodes (tasks x votes x runs)",
    "self_consistency": "tasks of which more than half of the k = votes episodes were won / tasks, per run",
    "budget": "episodes won within so many steps / episodes",
    "behavior": "each figure names the episodes that it is divided by",
    "intervals": "95%, over tasks: other tasks of the same kind and these same weights, no other training",
    "std": "over the independent runs of this evaluation; none where there is one run",
}
"""For each figure, its denominator and what its interval covers."""


def record_of(
    agent: str,
    player: Player,
    of_agent: Mapping[str, Any],
    params: Params,
    parameters: Mapping[str, Any],
    folder: EvaluationFolder,
    store: ResumeStore,
) -> EvaluationRecord:
    """All figures of the episodes in the folder.

    Raises:
        EvaluationError: some task was not played exactly as often as requested.
    """
    rollouts, cost = folder.rollouts(), player.cost(store)
    steps = evaluation_steps(rollouts)
    parts = {}
    for name, tasks in splits_of(folder.tasks()).items():
        played = steps.of(tasks)
        section = params.evaluation
        parts[name] = SplitFigures(
            evaluate(
                played, tasks, runs=section.runs, votes=section.votes, max_steps=params.environment.max_steps
            ),
            environment_figures(params.environment.name).behavior(played).figures,
        )
    return EvaluationRecord(
        label=player.label,
        agent=agent,
        deciding=of_agent,
        repeats=player.repeats(params),
        parameters=parameters,
        parts=parts,
        tokens=tokens(rollouts),
        cost=cost,
        versions={"code": revision(), "Python": platform.python_version(), "machine": platform.platform()}
        | {name: version(name) for name in LIBRARIES}
        | dict(params.environment.surroundings()),
        reading=READING,
        endings=count_endings(rollouts) if cost else {},
        left_out=player.left_out(store),
        environment_title=params.environment.title,
    )


def tokens(rollouts: pl.LazyFrame) -> dict[str, int]:
    """The number of tokens in all prompts and in all responses of the episodes."""
    lengths = {"prompt": pl.col("prompt_ids"), "response": pl.col("response_ids")}
    sums = rollouts.select(**{name: ids.list.len().cast(pl.Int64).sum() for name, ids in lengths.items()})
    return {name: int(count) for name, count in sums.collect(engine="streaming").row(0, named=True).items()}


def write_page(folder: EvaluationFolder, record: EvaluationRecord) -> None:
    """Write the evaluation's own report."""
    steps = evaluation_steps(folder.rollouts())
    results = [
        PolicyResult(
            method=record.label if name == ALL else f"{record.label}, {name.upper()} tasks",
            summary=part.summary,
            seed=record.seed,
            environment_behavior=environment_figures(record.environment).behavior(played),
            failures=failure_figures(kinds_of_episodes(played)),
        )
        for (name, part), tasks in zip(record.parts.items(), splits_of(folder.tasks()).values(), strict=True)
        for played in [steps.of(tasks)]
    ]
    data = ReportData(
        title=f"{record.label} on {record.played}",
        policies=results,
        facts=facts(record),
        parameters={**record.parameters, "agent": {"name": record.agent, **record.deciding}},
        versions=record.versions,
    )
    write_text(folder.page, render_report(data))


def facts(record: EvaluationRecord) -> dict[str, str]:
    """The top of the page: what was measured, how often, and what the figures are valid for."""
    whole = record.parts[ALL].summary
    sampling, policy = record.parameters["evaluation"], record.parameters["policy"]
    runs = f" in each of {whole.runs} runs" if whole.runs > 1 else ""
    found = {
        "Who played": "; ".join([f"agent {record.agent}", *(f"{k} {v}" for k, v in record.deciding.items())]),
        "Tasks": f"{whole.tasks:,} test tasks of {record.played} (seed {record.seed}), each exactly "
        f"{whole.votes}x{runs}: {whole.pass_at_1.episodes:,} episodes, T = {record.max_steps} steps at most",
    }
    if counted := tokens_told(record):
        longest = record.parameters["sampling"]["max_new_tokens"]
        chosen = {
            "temperature": f"temperature {sampling['temperature']:g}",
            "top_p": f"top-p {sampling['top_p']:g}",
            "max_tokens": f"at most {longest} tokens a response",
        }
        sent = [told for name, told in chosen.items() if name not in record.left_out]
        found["Sampling"] = (
            f"{', '.join(sent) or 'as the server likes'}; prompts {policy['rendering']}, "
            f"state update {policy['state_update']}, history {policy['history']}"
        )
        if unsent := left_out_told(record):
            found["Not sent"] = unsent
        found["Tokens"] = counted
    if ended := answers_told(record):
        found["Answers"] = ended
    found["Pass@1"] = record.reading["pass_at_1"]
    if whole.votes > 1:
        found[f"SC@{whole.votes}"] = record.reading["self_consistency"]
    return found | {"Intervals": record.reading["intervals"], "Repeats": record.repeats}


def tokens_told(record: EvaluationRecord) -> str:
    """Tokens of the episodes and what a server counted; empty if no tokens were sampled."""
    cost = {name: count for name, count in record.cost.items() if name != UNCOUNTED}
    counted = {f"{name} tokens": count for name, count in record.tokens.items()}
    counted |= {f"{name.replace('_', ' ')} at the server": count for name, count in cost.items()}
    told = [f"{count:,} {name}" for name, count in counted.items() if count]
    if uncounted := record.cost.get(UNCOUNTED):
        told.append(f"the cost of {uncounted:,} of them unknown, since the server did not count their tokens")
    return ", ".join(told)


def left_out_told(record: EvaluationRecord) -> str:
    """The parameters that a server was not sent; empty if it got all of them."""
    return f"{', '.join(record.left_out)}: the server's own values" if record.left_out else ""


def answers_told(record: EvaluationRecord) -> str:
    """How many of a server's answers were cut off, refused and so on; empty if all were complete."""
    if not record.endings:
        return ""
    longest = record.parameters["sampling"]["max_new_tokens"]
    limit = f"{longest} tokens (raise sampling.max_new_tokens)"
    if "max_tokens" in record.left_out:
        limit = "the server's own limit (raise it there)"
    return endings_told(record.endings, record.endings[TOTAL], limit)


def lines(record: EvaluationRecord) -> Iterator[str]:
    """The headline: success per split, with its denominator."""
    whole = record.parts[ALL].summary
    runs = f" in each of {whole.runs} runs" if whole.runs > 1 else ""
    yield (
        f"{record.label} on {record.played}: {whole.tasks} tasks, each exactly {whole.votes}x{runs}, "
        f"T = {record.max_steps}, seed {record.seed}; 95% intervals over tasks"
    )
    for name, part in record.parts.items():
        summary = part.summary
        votes = f"   SC@{summary.votes} {_rate(summary.self_consistency)}" if summary.votes > 1 else ""
        yield (
            f"  {name:4} Pass@1 {_rate(summary.pass_at_1)} of {summary.pass_at_1.episodes} episodes{votes}"
            + (f" of {summary.tasks} tasks" if votes else "")
        )
    if counted := tokens_told(record):
        yield f"  {counted}"
    if unsent := left_out_told(record):
        yield f"  not sent: {unsent}"
    if ended := answers_told(record):
        yield f"  answers: {ended}"
    yield f"  repeats: {record.repeats}"


def _rate(rate: SuccessRate) -> str:
    return f"{rate.mean:.1%} ({rate.low:.1%} to {rate.high:.1%})"
