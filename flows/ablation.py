"""Runs methods x seeds concurrently, with one comparison at the end.

    python -m flows.ablation --params params/grpo.yaml --params params/segcost.yaml --seeds 0 1 2
    python -m flows.ablation --grid training.learning_rate=1e-4,3e-4 --grid skills.buffer=0,64 --seeds 1,2,3
    python -m flows.ablation --remote URL ...     sharing results with other machines (docs/scaling.md)

Every experiment is a separate process (``skillpress run``) in its own workspace, with as many processes as
its parameters say. As many experiments run at once as fit on the cores, or on the GPUs. The first method of
every seed runs ahead, so that the others restore the stages they share with it from DVC's cache instead of
running them again. The first listed method is the one that the others are tested against. An interrupted
ablation continues when it is started again.
"""

from __future__ import annotations

import json
import logging
import platform
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from pathlib import Path
from typing import Any

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture
from prefect.runtime import flow_run
from prefect.states import Completed, Failed
from prefect.task_runners import ThreadPoolTaskRunner

from flows.children import children_stopped, process_stopped
from flows.following import Following, log_of, tail
from flows.interrupts import interruptible
from flows.prefect_database import create_for_flow
from skillpress.core.arguments import CommandParser, many_seeds, real
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.lab import overlay
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.core.storage import private, write_json, write_text
from skillpress.core.yaml_files import parse_yaml
from skillpress.experiment.indistinct import warnings
from skillpress.experiment.layers import assigned_layers
from skillpress.experiment.params import check_params
from skillpress.pipeline import exit_codes, parent
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.finished.comparison import as_json, page, paired_tests, table, text
from skillpress.pipeline.finished.run import FinishedRun, read_run
from skillpress.pipeline.reproduce.lock import DEFAULT_WAIT_SECONDS, exclusive
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant, assigned_name
from skillpress.pipeline.revision import revision
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.tracking.comparison_run import ComparisonRun, comparison_run
from skillpress.rollouts.workers import cores
from skillpress.rollouts.workers.ranks import exit_in_words

_LOG = logging.getLogger("skillpress.flows")

METHODS = tuple(
    f"params/{method}.yaml"
    for method in ("imitation", "grpo", "round_length", "segcost_buffer", "segcost_no_buffer")
)
SEEDS = (0, 1, 2)
KEPT = f"finished stages and checkpoints are kept in {FOLDER}/"
AT_ONCE = 64
"""The flow runs at most this many experiments at once; a thread here waits for each."""


class ExperimentFailedError(RuntimeError):
    """An experiment's process failed; its log says why."""


class ExperimentTooSlowError(RuntimeError):
    """An experiment's process exceeded its time limit."""


@task(name="experiment", task_run_name="{variant.name}", retries=1, retry_delay_seconds=10)
def run_experiment(label: str, variant: Variant, remote: str | None = None) -> FinishedRun:
    """Reproduce a variant in a separate process, whose output goes to workspaces/<name>.log."""
    reproduce(variant, [*variant.options, *(["--remote", remote] if remote else [])])
    return read_run(ROOT / FOLDER / variant.name, label)


def reproduce(variant: Variant, options: Sequence[str], limit_seconds: float | None = None) -> None:
    """Run ``skillpress run`` here with these options, stopped after ``limit_seconds`` if given.

    Raises:
        ExperimentFailedError: it failed.
        ExperimentTooSlowError: it was stopped.
    """
    log = log_of(variant)
    command = [sys.executable, "-m", "skillpress.pipeline.reproduce", *options]
    with open(log, "a", encoding="utf-8", opener=private) as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        with process_stopped(process.pid):
            try:
                code = process.wait(limit_seconds)
            except subprocess.TimeoutExpired as error:
                raise ExperimentTooSlowError(
                    f"{variant.name} did not finish within {error.timeout / 60:.0f} minutes and was stopped; "
                    f"if it is started again, it resumes from its last checkpoint. See {log}\n{tail(log)}"
                ) from None
    if code:
        said = f"see {log}\n{tail(log)}"
        raise ExperimentFailedError(f"{variant.name} failed with {exit_in_words(code)}; {said}")


# Prefect declares its parameter for another kind of future than its own runner has.
_RUNNER: Any = ThreadPoolTaskRunner(max_workers=AT_ONCE)


@flow(name="ablation", task_runner=_RUNNER)
def ablation(
    methods: Sequence[str] = METHODS,
    seeds: Sequence[int] = SEEDS,
    common: Sequence[str] = (),
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    remote: str | None = None,
    grid: Sequence[str] = (),
    assignments: Sequence[str] = (),
) -> State[None]:
    """Run and compare ``methods`` x ``grid`` x ``seeds``.

    Args:
        methods: one overlay each; the others are tested against the first.
        seeds: the seeds of each method.
        common: overlays below every method's own.
        wait_seconds: how long to wait for another ablation.
        remote: a DVC remote, with which results of other machines are shared.
        grid: keys with several values, such as ``training.learning_rate=1e-4,3e-4``.
        assignments: such as ``training.steps=5``, in every experiment.
    """
    try:
        variants, found = checked(methods, seeds, common, grid, assignments)
        processes = [values["processes"] for values in found.values()]
        alike = [f"warning: {line}" for line in alike_among(found)]
        for line in alike:
            _LOG.warning("%s", line)
        compared = {"methods": list(methods), "seeds": list(seeds), "common": list(common)}
        compared |= {"grid": list(grid)} if grid else {}  # without them an older, unfinished run goes on
        compared |= {"set": list(assignments)} if assignments else {}
        with (
            interruptible("ablation", KEPT),
            exclusive(ROOT / FOLDER / ".ablation.lock", "the ablation", wait_seconds),
            comparison_run("ablation", compared, str(flow_run.id)) as run,
            children_stopped(),
        ):
            parent.name_this_process()
            finished, failures = run_all(variants, seeds, min(AT_ONCE, room(places(), processes)), remote)
            for experiment in finished:
                run.adopt(experiment.params)
            if finished:
                publish(finished, run)
                print("\n".join(alike), end="\n" * bool(alike))
    except UserError as error:
        return Failed(message=str(error))
    if failures:
        return Failed(message="\n".join(failures))
    return Completed(message=str(ROOT / RESULTS / "ablation.html"))


def checked(
    methods: Sequence[str],
    seeds: Sequence[int],
    common: Sequence[str],
    grid: Sequence[str],
    assignments: Sequence[str],
) -> tuple[dict[str, Variant], dict[str, dict[str, Any]]]:
    """(variants, the parameters of each), by label; ``ParamsError`` if they are wrong, or two would count as
    one."""
    check_different(methods, seeds)
    variants = variants_of(methods, common, grid, assignments)
    return variants, {label: variant.values(ROOT) for label, variant in variants.items()}


def alike_among(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A line for each two variants, given by label and merged parameters, that cannot differ."""
    return warnings({label: check_params(values, label) for label, values in found.items()})


def check_different(methods: Sequence[str], seeds: Sequence[int]) -> None:
    """Refuse arguments that would count an experiment twice, or two methods as one."""
    named: dict[str, str] = {}
    for method in methods:
        name = Path(method).stem
        if name in named:
            raise ParamsError(
                f"--params: {named[name]} and {method} are both {name} in the comparison; name one of them, "
                "or rename its file"
            )
        named[name] = method
    for place, seed in enumerate(seeds):
        if seed in seeds[:place]:
            raise ParamsError(f"--seeds: {seed} is named twice; name different seeds")


def variants_of(
    methods: Sequence[str],
    common: Sequence[str] = (),
    grid: Sequence[str] = (),
    assignments: Sequence[str] = (),
) -> dict[str, Variant]:
    """Label to variant, without seeds: every method, or the default experiment if there is none, with every
    combination of the grid's values. A label has the method and all keys of the grid.

    Raises:
        ParamsError: the grid cannot be read, or has a value or a key twice.
    """
    found: dict[str, Variant] = {}
    keys = [grid_of(line) for line in grid]
    assigned_layers([*assignments, *(values[0] for values in keys)])  # refuses a key that is named twice
    for method in methods or [""]:
        overlays = tuple(map(Path, (*common, *([method] if method else []))))
        for cell in product(*keys):
            label = " ".join([*([Path(method).stem] if method else []), *map(assigned_name, cell)])
            if label in found:
                raise ParamsError(f"--grid: {label} occurs twice; name different values")
            found[label or "default"] = Variant(overlays, None, (*assignments, *cell))
    return found


def grid_of(line: str) -> list[str]:
    """The assignments of one ``--grid``: ``training.steps=5,10`` gives ``training.steps=5`` and ``=10``."""
    key, _, text = line.partition("=")
    values = parse_yaml(f"[{text}]", f"--grid {line}") if text.strip() else []
    if not values:
        raise ParamsError(f"--grid {line}: must be key=value,value, such as training.learning_rate=1e-4,3e-4")
    return [f"{key}={json.dumps(value)}" for value in values]


def places() -> int:
    """How many processes can run at once: each needs a core and, on a machine with GPUs, a GPU."""
    import torch  # in seconds; overlays are checked before

    return min(cores(), torch.cuda.device_count() or cores())


def room(places: int, processes: Sequence[int]) -> int:
    """How many experiments with this many processes each run at once; at least one."""
    return max(1, places // max(processes))


def run_all(
    variants: Mapping[str, Variant],
    seeds: Sequence[int],
    at_once: int,
    remote: str | None = None,
) -> tuple[list[FinishedRun], list[str]]:
    """(finished experiments by method and seed, error messages of the others)."""
    futures: dict[tuple[str, int], PrefectFuture[FinishedRun]] = {}
    following = Following(len(variants) * len(seeds), at_once)
    labels = list(variants)
    try:
        for wave in (labels[:1], labels[1:]):
            for seed in seeds:
                for label in wave:
                    following.until_fewer_than(at_once)
                    variant = replace(variants[label], seed=seed)
                    futures[label, seed] = run_experiment.submit(label, variant, remote)
                    following.begins(variant, futures[label, seed])
            following.until_fewer_than(1)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(following.progress) from None
    finished, failures = [], []
    for label in labels:
        for seed in seeds:
            state = futures[label, seed].state
            if state.is_completed():
                finished.append(futures[label, seed].result())
            else:
                failures.append(str(state.message))
    return finished, failures


def publish(experiments: Sequence[FinishedRun], run: ComparisonRun) -> None:
    """Write results/ablation.{json,html}, MLflow's run and a Prefect artifact, and print the comparison."""
    rows, tests = table(experiments), paired_tests(experiments)
    html, values = ROOT / RESULTS / "ablation.html", ROOT / RESULTS / "ablation.json"
    write_json(values, as_json(rows, tests))
    versions = {"code": revision(), "Python": platform.python_version(), "machine": platform.platform()}
    write_text(html, page(experiments, rows, tests, versions))
    names = {row.method: re.sub(r"[^\w./:-]", "_", row.method) for row in rows}  # all that MLflow takes
    metrics = {f"{names[row.method]}/pass_at_1": row.pass_at_1 for row in rows}
    metrics |= {f"{names[row.method]}/budget_area": row.budget_area for row in rows}
    run.log(metrics, [html, values])
    create_table_artifact([asdict(row) for row in rows], key="ablation", description="Methods compared")
    for line in text(rows, tests):
        print(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument(
        "--params", type=overlay, action="append", default=[],
        help="overlay of a method; repeat for each (the paper's; with --grid the default experiment)",
    )  # fmt: skip
    parser.add_argument(
        "--common", type=overlay, action="append", default=[], help="overlay under every method's"
    )
    parser.add_argument(
        "--grid", action="append", default=[], metavar="KEY=VALUE,VALUE",
        help="every method with each of these values; repeat for combinations of keys",
    )  # fmt: skip
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="in every experiment; may be repeated"
    )
    parser.add_argument("--seeds", type=many_seeds, nargs="+", default=[SEEDS], help="as 0 1 2 or 0,1,2")
    parser.add_argument("--remote", help="DVC remote: take from there what other machines have done")
    parser.add_argument("--wait", type=real(at_least=0), default=DEFAULT_WAIT_SECONDS, help="seconds to wait")
    chosen = parser.parse_args(arguments)
    methods = [str(file) for file in chosen.params] or (() if chosen.grid else METHODS)
    common, seeds = [str(file) for file in chosen.common], [seed for word in chosen.seeds for seed in word]
    with interruptible("ablation", KEPT):
        create_for_flow(lambda: checked(methods, seeds, common, chosen.grid, chosen.set))
        state = ablation(
            methods, seeds, common, chosen.wait, chosen.remote, chosen.grid, chosen.set, return_state=True
        )
    return exit_codes.ended(state.is_completed(), f"ablation: {state.message}")


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    parent.end_with_named_process()
    sys.exit(main())
