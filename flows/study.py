"""Make the runs that the study's record lacks, in the plan's order.

    python -m flows.study                                  all questions, all benchmarks
    python -m flows.study --questions q1 q2 --only countdown --seeds 10 11
    python -m flows.study --dry-run                        what exists, what is missing, how long it takes

Every run is a separate process (``skillpress run``) in its own workspace. It is added to studies/study/ as
soon as it is done. Only that record says which runs are missing, also in another clone and after changes of
the code. An interrupted study, killed at any point, continues when it is started again: finished runs come
from the record, the others continue from their last checkpoint.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from prefect import flow, task
from prefect.client.schemas.objects import State, TaskRun
from prefect.futures import PrefectFuture, as_completed
from prefect.states import Completed, Failed
from prefect.task_runners import ThreadPoolTaskRunner
from prefect.tasks import Task
from tqdm import tqdm

from flows.ablation import AT_ONCE, ExperimentTooSlowError, reproduce, room
from flows.children import children_stopped
from flows.interrupts import interruptible
from flows.prefect_database import create_for_flow
from skillpress.core.arguments import CommandParser, many_seeds, output_folder, real, whole
from skillpress.core.errors import UserError
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.evaluation.study.plan import read_plan
from skillpress.experiment.indistinct import warnings
from skillpress.experiment.params import Params, check_params
from skillpress.pipeline import exit_codes, parent
from skillpress.pipeline.finished.run import read_run
from skillpress.pipeline.reproduce.dvc_cache import cached_files
from skillpress.pipeline.reproduce.lock import DEFAULT_WAIT_SECONDS, exclusive
from skillpress.pipeline.reproduce.workspace import FOLDER as WORKSPACES
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.study import store
from skillpress.pipeline.study.clearing import clear
from skillpress.pipeline.study.facts import facts_of
from skillpress.pipeline.study.forecast import describe, in_words
from skillpress.pipeline.study.record import RecordedRun, code_revision, outcomes_of, record_of
from skillpress.pipeline.study.runs import PlannedRun, Queue, planned_runs
from skillpress.pipeline.tracking.runs import create_database
from skillpress.rollouts.workers import cores

PLAN = Path("params/study")
"""The folder in which DVC keeps the files made by stages."""
LIMIT_MINUTES = 180.0
"""The default time limit of a run."""
LAST_STAGE = "evaluate_policy"
"""The stage whose results the record needs; the report is made only for workspaces that are kept."""
TRACES = "SKILLPRESS_TRACES"


@dataclass(frozen=True)
class StudyChoice:
    """The runs of the study to make, and how to make them."""

    questions: tuple[str, ...] = ()
    """Questions, by their names or the beginnings of names; empty means all."""
    benchmarks: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    """The seeds to run; empty means all. All runs of a seed share one start, so finish a seed on one machine.
    """
    at_once: int = 0
    """Runs at once; 0 means as many as fit on the cores."""
    limit_minutes: float = LIMIT_MINUTES
    """The time limit of each run."""
    start_minutes: float | None = None
    """The time after which no further run starts; None means never."""
    keep: bool = False
    """Whether to keep the workspaces of recorded runs."""
    plan: Path = PLAN
    record: Path = store.FOLDER

    def runs(self) -> list[PlannedRun]:
        """All planned runs, recorded or not.

        Raises:
            UserError: the plan or an overlay is wrong, or has none of the seeds.
        """
        plan = read_plan(ROOT / self.plan)
        runs = planned_runs(plan, plan.chosen(self.questions, self.benchmarks), ROOT)
        if unknown := set(self.seeds) - {run.seed for run in runs}:
            raise UserError(f"--seeds: {self.plan} has no run of seed {min(unknown)} here")
        return [run for run in runs if not self.seeds or run.seed in self.seeds]

    def beside(self, runs: Sequence[PlannedRun]) -> int:
        """How many runs to make at once."""
        processes = [run.params["processes"] for run in runs] or [1]
        return min(AT_ONCE, self.at_once or room(cores(), processes))


def worth_retrying(task: Task[Any, Any], run: TaskRun, state: State[Any]) -> bool:
    """Whether to retry: not if the run took too long, nor for an error that the user must fix."""
    error = state.result(raise_on_failure=False)
    return not isinstance(error, (ExperimentTooSlowError, UserError))


@task(
    name="run",
    task_run_name="{run.name}",
    retries=1,
    retry_delay_seconds=10,
    retry_condition_fn=worth_retrying,
)
def run_and_record(run: PlannedRun, choice: StudyChoice) -> RecordedRun:
    """Make a run, add it to the record, and remove its workspace."""
    workspace = ROOT / WORKSPACES / run.variant.name
    how = {"revision": code_revision(), "resumed": workspace.exists()}
    overlays = [option for overlay in run.variant.overlays for option in ("--params", str(overlay))]
    started = time.monotonic()
    stages = () if choice.keep else ("--stages", LAST_STAGE)
    reproduce(run.variant, [*overlays, "--seed", str(run.seed), *stages], 60 * choice.limit_minutes)
    finished = read_run(workspace, run.method)
    record = record_of(run, finished, {**how, "wall_seconds": round(time.monotonic() - started, 1)})
    facts = facts_of(finished, run.facts)
    record = store.add(ROOT / choice.record, record, outcomes_of(finished), facts)
    if not choice.keep:
        clear(workspace, cached_files(ROOT))
    return record


# Prefect declares its parameter for another kind of future than its own runner has.
_RUNNER: Any = ThreadPoolTaskRunner(max_workers=AT_ONCE)


@flow(name="study", task_runner=_RUNNER)
def study(choice: StudyChoice) -> State[None]:
    """Make the missing runs."""
    try:
        runs = choice.runs()
        create_database()
        os.environ.setdefault(TRACES, "0")  # the traces of a hundred runs have no reader
        lock = ROOT / WORKSPACES / ".study.lock"
        with (
            interruptible("study", kept_of(choice)),
            exclusive(lock, "the study", DEFAULT_WAIT_SECONDS),
            children_stopped(),
        ):
            parent.name_this_process()
            clear_recorded(runs, choice)
            failures = run_missing(runs, choice)
    except UserError as error:
        return Failed(message=str(error))
    missing = missing_of(runs, choice)
    if failures:
        return Failed(message="\n".join(failures))
    return Completed(message=f"{len(runs) - len(missing)} of {len(runs)} runs are recorded")


def kept_of(choice: StudyChoice) -> str:
    """The words for the results that an interrupted study keeps."""
    return f"finished runs are in {choice.record}/, the checkpoints of others in {WORKSPACES}/"


def clear_recorded(runs: Sequence[PlannedRun], choice: StudyChoice) -> None:
    """Remove the workspaces that a flow left when it was killed right after recording a run."""
    missing = {run.name for run in missing_of(runs, choice)}
    for run in runs:
        workspace = ROOT / WORKSPACES / run.variant.name
        if run.name not in missing and workspace.exists() and not choice.keep:
            clear(workspace, cached_files(ROOT))


def missing_of(runs: Sequence[PlannedRun], choice: StudyChoice) -> list[PlannedRun]:
    """The runs that the record does not have."""
    found = store.read_record(ROOT / choice.record).matching(runs, ROOT)
    return [run for run in runs if run.name not in found]


def run_missing(runs: Sequence[PlannedRun], choice: StudyChoice) -> list[str]:
    """Make the missing runs; returns the error messages of those that failed."""
    missing = missing_of(runs, choice)
    for line in (*forecast(runs, choice), *alike_among(runs)):
        tqdm.write(line)
    if not missing:
        return []
    with tqdm(total=len(missing), unit="run", disable=not sys.stderr.isatty()) as bar:
        return run_all(Queue(missing), runs, choice, bar)


def run_all(queue: Queue, runs: Sequence[PlannedRun], choice: StudyChoice, bar: tqdm[NoReturn]) -> list[str]:
    """Make the runs of a queue, several at once; returns the error messages of those that failed."""
    at_once, began = choice.beside(runs), time.monotonic()
    running: dict[PrefectFuture[RecordedRun], PlannedRun] = {}
    failures: list[str] = []
    while True:
        while len(running) < at_once and not _late(began, choice) and (run := queue.next()):
            tqdm.write(f"{run.name} starts")
            running[run_and_record.submit(run, choice)] = run
        if not running:
            return failures
        future = next(as_completed(list(running)))
        run = running.pop(future)
        future.wait()  # only this makes its state final; the server may still report it as running
        queue.done(run)
        bar.update()
        if future.state.is_completed():
            tqdm.write(f"{run.name} is recorded after {in_words(future.result().wall_seconds)}")
        else:
            failures.append(str(future.state.message))
            tqdm.write(f"{run.name} failed: {future.state.message}")
        for line in forecast(runs, choice):
            tqdm.write(line)


def forecast(runs: Sequence[PlannedRun], choice: StudyChoice) -> list[str]:
    """The recorded runs, and how long the rest takes."""
    recorded = store.read_record(ROOT / choice.record).runs
    missing = missing_of(runs, choice)
    return list(describe(missing, recorded, len(runs), choice.beside(runs), datetime.now().astimezone()))


def alike_among(runs: Sequence[PlannedRun]) -> Iterator[str]:
    """A warning for each two methods of a benchmark that cannot differ."""
    of_benchmark: dict[str, dict[str, Params]] = {}
    for run in runs:
        methods = of_benchmark.setdefault(run.benchmark, {})
        if run.method not in methods:
            methods[run.method] = check_params(run.params, run.name)
    for benchmark, methods in of_benchmark.items():
        yield from (f"warning: {benchmark}: {line}" for line in warnings(methods))


def _late(began: float, choice: StudyChoice) -> bool:
    return choice.start_minutes is not None and time.monotonic() - began > 60 * choice.start_minutes


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument("--questions", nargs="+", default=(), help="such as q1 q4 (all)")
    parser.add_argument(
        "--only",
        nargs="+",
        default=(),
        dest="benchmarks",
        metavar="BENCHMARK",
        help="such as countdown (all)",
    )
    parser.add_argument(
        "--seeds", nargs="+", type=many_seeds, default=[], metavar="N", help="such as 10 11 or 10,11 (all)"
    )
    parser.add_argument(
        "--at-once", type=whole(), default=0, help="runs beside each other (as the cores allow)"
    )
    parser.add_argument(
        "--limit-minutes", type=real(above=0), default=LIMIT_MINUTES, help="of each run (180)"
    )
    parser.add_argument("--start-minutes", type=real(at_least=0), help="start no run after so many minutes")
    parser.add_argument("--keep", action="store_true", help="keep workspaces of recorded runs, with reports")
    parser.add_argument("--plan", type=Path, default=PLAN, help="folder of the plan")
    parser.add_argument(
        "--record", type=output_folder, default=str(store.FOLDER), help="folder of the record"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what is there and what is missing")
    chosen = vars(parser.parse_args(arguments))
    only_say = chosen.pop("dry_run")
    chosen["seeds"] = [seed for word in chosen["seeds"] for seed in word]
    given: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in chosen.items()
    }
    choice = StudyChoice(**given)
    if only_say:
        return dry_run(choice)
    with interruptible("study", kept_of(choice)):
        create_for_flow(choice.runs)
        state = study(choice, return_state=True)
    return exit_codes.ended(state.is_completed(), f"study: {state.message}")


def dry_run(choice: StudyChoice) -> int:
    """Print the missing runs in their order, and the forecast; returns the exit code."""
    try:
        runs = choice.runs()
        for run in missing_of(runs, choice):
            print(run.name)
        print("\n".join((*forecast(runs, choice), *alike_among(runs))))
    except UserError as error:
        exit_codes.say(error)
        return exit_codes.USER_ERROR
    return 0


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    sys.exit(main())
