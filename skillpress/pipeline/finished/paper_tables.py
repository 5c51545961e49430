"""The paper's tables from any set of finished runs.

    skillpress tables . workspaces/grpo-seed0 workspaces/grpo-seed1 --out results/paper

A run is a folder in which an experiment was reproduced: the repository, or a workspace. Its method follows
from all of its parameters, so the folder's name does not matter. Runs that differ only in the seed are
pooled. A run that is not a row of the paper has the nearest row's name with the keys that differ. Runs of one
environment must agree in everything that affects the start of training and the evaluation. The first run that
is a row also defines the settings of training. Writes tables.md, tables.csv and tables.html.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from skillpress.core.arguments import CommandParser, output_folder
from skillpress.core.storage import write_text
from skillpress.evaluation.paper import environment_figures
from skillpress.evaluation.paper.layout import Line, PaperTable, paper_tables
from skillpress.evaluation.paper.method_episodes import MethodEpisodes
from skillpress.evaluation.paper.methods import Method, keys_of, untrained
from skillpress.evaluation.paper.phrases import fit_each, membership_lines, phrase_lines
from skillpress.evaluation.paper.text import csv_text, markdown
from skillpress.evaluation.statistics.episodes import EvaluationSteps, pooled
from skillpress.experiment.params import Params
from skillpress.pipeline.files import RESULTS, START, TRAINED
from skillpress.pipeline.finished.run import BASELINES, FinishedRun, RunsError, by_environment, read_unchanged
from skillpress.reports.report.paper_page import render_paper_page


def tables_of(runs: Sequence[FinishedRun]) -> list[PaperTable]:
    """The tables that get rows from these runs, or ``RunsError``; tables of dictionaries come last."""
    of_environment = by_environment(runs)
    of_methods = {name: episodes_by_method(group) for name, group in of_environment.items()}
    figures = {name: environment_figures(name) for name in of_methods}
    tables = paper_tables(of_methods, {name: found.panels for name, found in figures.items()})
    phrases: list[Line] = []
    named: list[Line] = []
    for name, group in of_environment.items():
        if not figures[name].panels:
            continue
        params = group[0][0].params
        longest, projection = params.skills.max_phrase_length, params.environment.make_projection()
        fitted = fit_each(projection, of_methods[name], longest)
        phrases += phrase_lines(name, figures[name].panels[0].heading, fitted, of_methods[name])
        named += membership_lines(name, tuple(figures[name].named_skills), fitted, of_methods[name])
    dictionaries = ((10, phrases), (11, named))
    return [*tables, *(PaperTable(number, tuple(lines)) for number, lines in dictionaries if lines)]


def tables_or_reason(runs: Sequence[FinishedRun]) -> tuple[list[PaperTable], list[str]]:
    """(the tables, notes on them) for a page; runs that do not fit in one table give only a note."""
    try:
        return tables_of(runs), notes_on(runs)
    except RunsError as error:
        return [], [f"No tables of the paper here: {error}."]


def episodes_by_method(runs: Sequence[tuple[FinishedRun, Method]]) -> dict[str, MethodEpisodes]:
    """The episodes of each method in one environment; all methods share the baselines of a seed."""
    parts: dict[tuple[str, int], EvaluationSteps] = {}
    grades: dict[tuple[str, int], pl.DataFrame] = {}
    for run, called in runs:
        baselines = BASELINES | {START: untrained(keys_of(run.params))}
        for policy, method in (*baselines.items(), (TRAINED, called.name)):
            parts.setdefault((method, run.params.seed), run.steps(policy))
            grades.setdefault((method, run.params.seed), run.grades(policy))
    tasks = {task.task_id: task for run, _ in runs for task in run.tasks}
    methods = dict.fromkeys(method for method, _ in parts)
    params = runs[0][0].params
    return {
        method: MethodEpisodes(
            steps=(steps := pooled(part for (name, _), part in parts.items() if name == method)),
            tasks={name: tasks[name] for name in sorted(steps.counts(pl.col("task_id")))},
            votes=params.evaluation.votes,
            max_steps=params.environment.max_steps,
            model=params.policy.model,
            last_dictionaries=[
                last
                for run, called in runs
                if called.name == method and (last := run.last_dictionary) is not None
            ],
            grades=pl.concat(part for (name, _), part in grades.items() if name == method),
        )
        for method in methods
    }


def notes_on(runs: Sequence[FinishedRun]) -> list[str]:
    """How the figures were computed, one sentence each."""
    seeds: dict[str, list[str]] = {}
    for run, called in (pair for group in by_environment(runs).values() for pair in group):
        seeds.setdefault(f"{run.played}: {called.label}", []).append(str(run.seed))
    trained = sorted({run.checkpoint.step for run in runs if run.params.training.steps})
    steps = ", ".join(map(str, trained)) or "0"
    listed = [f"{name} (seed {', '.join(those)})" for name, those in seeds.items()]
    return [
        f"Runs: {'; '.join(listed)}.",
        "A run has a row of the paper only if all of its parameters are the row's. Others have the nearest "
        "row's name with the keys of params.yaml that differ.",
        f"Checkpoint of every trained policy: {runs[0].checkpoint.rule} (training step {steps}); no other "
        "was evaluated.",
        *(played(params) for params in {run.environment: run.params for run in runs}.values()),
        "A table looks at the episodes that its heading names, those of all seeds together. A report's table "
        "“Behaviour” looks at all test episodes and shows the mean of the seeds' figures, which differs from "
        "a figure of all episodes where seeds have unequal numbers of them.",
        "Below a figure its 95% interval over tasks and the number n of episodes behind it; a task that "
        "several seeds played is one task. The interval holds for these trained policies: other tasks of the "
        "same kind, not other trainings, whose luck ± shows: the deviation over training seeds, or over "
        "evaluation runs where there is one seed, which then shows the episodes' luck alone.",
        "“paper” is what the paper printed, for its own models; – is a method without a run here.",
    ]


def played(params: Params) -> str:
    """How an environment's runs were evaluated, and what the method Vanilla means for them."""
    section, demonstrations = params.evaluation, params.imitation.demonstrations
    after = f" after imitating {demonstrations:,} demonstrations" if demonstrations else ""
    return (
        f"{params.environment.title}: every test task exactly {section.votes}x in each of "
        f"{section.runs} runs per seed, at temperature {section.temperature:g}; “Vanilla” is what training "
        f"started from, {params.policy.model}{after}."
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folder of a finished run")
    parser.add_argument(
        "--out", type=output_folder, default=str(RESULTS / "paper"), help="folder to write to"
    )
    parser.add_run_code()
    chosen = parser.parse_args(arguments)
    runs = [read_unchanged(folder) for folder in chosen.runs]
    tables, notes = tables_of(runs), notes_on(runs)
    write_text(chosen.out / "tables.md", markdown(tables, notes))
    write_text(chosen.out / "tables.csv", csv_text(tables, runs[0].checkpoint.rule))
    write_text(chosen.out / "tables.html", render_paper_page(tables, notes))
    print(
        f"tables: {len(tables)} tables of {len(runs)} {'run' if len(runs) == 1 else 'runs'} in {chosen.out}"
    )
    return 0
