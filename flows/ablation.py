"""Methods x seeds, side by side, with one comparison at the end.

    python -m flows.ablation --params params/grpo.yaml --params params/segcost.yaml --seeds 0 1 2
    python -m flows.ablation --cluster HOST:PORT --remote URL ...     on the nodes of a Ray cluster

Every experiment is a separate process (``skillpress run``) in its own workspace, with as many processes as
its parameters say. As many experiments run at once as fit on the cores, or, on a cluster, on the nodes
(``machines.py``). The first method of every seed runs ahead, so that the others restore the stages they share
with it from DVC's cache instead of running them again. The first listed method is the one that the others are
tested against. An interrupted ablation continues when it is started again.
"""

from __future__ import annotations

import platform
import subprocess
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
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
from flows.machines import LIMIT_SECONDS, Machines
from flows.prefect_database import create_for_flow
from skillpress.core.arguments import Parser, any_seed, real
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.storage import write_json, write_text
from skillpress.pipeline import exit_codes, nursery, parent
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.finished.comparison import as_json, page, paired_tests, table, text
from skillpress.pipeline.finished.run import FinishedRun, read_run
from skillpress.pipeline.redaction import hide_secrets_of_tracebacks, without_secrets
from skillpress.pipeline.reproduce.lock import DEFAULT_WAIT_SECONDS, exclusive
from skillpress.pipeline.reproduce.workspace import FOLDER, Variant
from skillpress.pipeline.revision import revision
from skillpress.pipeline.settings import ROOT
from skillpress.pipeline.tracking.comparison_run import ComparisonRun, comparison_run
from skillpress.play.workers import cores

METHODS = tuple(
    f"params/{method}.yaml"
    for method in ("imitation", "grpo", "round_length", "segcost", "segcost_no_buffer")
)
SEEDS = (0, 1, 2)
AT_ONCE = 64
"""The most experiments at once; each has a thread here that waits for it."""


class ExperimentFailedError(RuntimeError):
    """An experiment's process failed; its log says why."""


class ExperimentTooSlowError(RuntimeError):
    """An experiment's process exceeded its time limit."""


@task(name="experiment", task_run_name="{variant.name}", retries=1, retry_delay_seconds=10)
def run_experiment(variant: Variant, machines: Machines | None = None) -> FinishedRun:
    """Reproduce a variant in a separate process, here or on another machine. Its output goes to
    workspaces/<name>.log of that machine."""
    assert variant.seed is not None
    if machines is None:
        overlays = [option for overlay in variant.overlays for option in ("--params", str(overlay))]
        reproduce(variant, [*overlays, "--seed", str(variant.seed)])
    else:
        outcome = machines.run(variant, variant.values(ROOT)["processes"])
        if outcome.exit_code:
            what = f"{variant.name} failed on {outcome.node} with exit code {outcome.exit_code}"
            raise ExperimentFailedError(f"{what}\n{outcome.said}")
        lock = ROOT / FOLDER / f"{variant.name}.lock"
        write_text(lock, outcome.lock)
        reproduce(variant, [*machines.options(variant), "--lock", str(lock)])
    return read_run(ROOT / FOLDER / variant.name, variant.overlays[-1].stem)


def reproduce(variant: Variant, options: Sequence[str], limit_seconds: float | None = None) -> None:
    """Run ``skillpress run`` here with these options, stopped after ``limit_seconds`` if given.

    Raises:
        ExperimentFailedError: it failed.
        ExperimentTooSlowError: it was stopped.
    """
    log = log_of(variant)
    command = nursery.command("skillpress.pipeline.reproduce", *options)
    with log.open("a", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        with process_stopped(process.pid):
            try:
                code = process.wait(limit_seconds)
            except subprocess.TimeoutExpired as error:
                raise ExperimentTooSlowError(
                    f"{variant.name} was not done after {error.timeout / 60:.0f} minutes and was stopped; "
                    f"started again, it goes on from its last checkpoint. See {log}\n{tail(log)}"
                ) from None
    if code:
        raise ExperimentFailedError(f"{variant.name} failed with exit code {code}; see {log}\n{tail(log)}")


@flow(name="ablation", task_runner=ThreadPoolTaskRunner(max_workers=AT_ONCE))
def ablation(
    methods: Sequence[str] = METHODS,
    seeds: Sequence[int] = SEEDS,
    common: Sequence[str] = (),
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    machines: Machines | None = None,
) -> State[None]:
    """Run and compare ``methods`` x ``seeds``.

    Args:
        methods: one overlay each; the others are tested against the first.
        seeds: the seeds of each method.
        common: overlays below every method's own.
        wait_seconds: how long to wait for another ablation.
        machines: where the experiments run; None means here.
    """
    try:
        processes = [values["processes"] for values in checked(methods, seeds, common)]
        compared = {"methods": list(methods), "seeds": list(seeds), "common": list(common)}
        with (
            exclusive(ROOT / FOLDER / ".ablation.lock", "the ablation", wait_seconds),
            places(machines, processes) as at_once,
            comparison_run("ablation", compared, str(flow_run.id)) as run,
            children_stopped(),
        ):
            parent.name_this_process()
            finished, failures = run_all(methods, seeds, common, min(AT_ONCE, at_once), machines)
            for experiment in finished:
                run.adopt(experiment.params)
            if finished:
                publish(finished, run)
    except UserError as error:
        return Failed(message=str(error))
    if failures:
        return Failed(message="\n".join(failures))
    return Completed(message=str(ROOT / RESULTS / "ablation.html"))


def checked(methods: Sequence[str], seeds: Sequence[int], common: Sequence[str]) -> list[dict[str, Any]]:
    """The parameters of each method; ``ParamsError`` if they are wrong, or two would count as one."""
    check_different(methods, seeds)
    return [Variant((*map(Path, common), Path(method))).values(ROOT) for method in methods]


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


def room(cores: int, processes: Sequence[int]) -> int:
    """How many experiments with so many processes each run at once; at least one."""
    return max(1, cores // max(processes))


def places(machines: Machines | None, processes: Sequence[int]) -> AbstractContextManager[int]:
    """Yields how many experiments run at once."""
    return machines.joined(max(processes)) if machines else nullcontext(room(cores(), processes))


def run_all(
    methods: Sequence[str],
    seeds: Sequence[int],
    common: Sequence[str],
    at_once: int,
    machines: Machines | None = None,
) -> tuple[list[FinishedRun], list[str]]:
    """(finished experiments by method and seed, error messages of the others)."""
    futures: dict[tuple[str, int], PrefectFuture[FinishedRun]] = {}
    following = Following(len(methods) * len(seeds), at_once, here=machines is None)
    for wave in (methods[:1], methods[1:]):
        for seed in seeds:
            for method in wave:
                following.until_fewer_than(at_once)
                variant = Variant((*map(Path, common), Path(method)), seed)
                futures[method, seed] = run_experiment.submit(variant, machines)
                following.begins(variant, futures[method, seed])
        following.until_fewer_than(1)
    finished, failures = [], []
    for method in methods:
        for seed in seeds:
            state = futures[method, seed].state
            if state.is_completed():
                finished.append(futures[method, seed].result())
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
    metrics = {f"{row.method}/pass_at_1".replace(" ", "_"): row.pass_at_1 for row in rows}
    metrics |= {f"{row.method}/budget_area".replace(" ", "_"): row.budget_area for row in rows}
    run.log(metrics, [html, values])
    create_table_artifact([asdict(row) for row in rows], key="ablation", description="Methods compared")
    for line in text(rows, tests):
        print(line)


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = Parser(description=__doc__)
    parser.add_argument(
        "--params", action="append", help="overlay of a method; repeat for each (the paper's)"
    )
    parser.add_argument("--common", action="append", default=[], help="overlay under every method's")
    parser.add_argument("--seeds", type=any_seed, nargs="+", default=SEEDS)
    parser.add_argument("--cluster", metavar="HOST:PORT", help="Ray cluster to run on (docs/scaling.md)")
    parser.add_argument("--remote", help="DVC remote that the cluster's machines share results by")
    parser.add_argument(
        "--limit", type=real(above=0), default=LIMIT_SECONDS, help="with --cluster: seconds of each"
    )
    parser.add_argument("--wait", type=real(at_least=0), default=DEFAULT_WAIT_SECONDS, help="seconds to wait")
    chosen = parser.parse_args(arguments)
    if (chosen.cluster is None) != (chosen.remote is None):
        parser.error("--cluster and --remote go together: results reach this machine through the remote")
    machines = Machines(chosen.cluster, chosen.remote, chosen.limit) if chosen.cluster else None
    methods, wait_seconds = chosen.params or METHODS, chosen.wait
    create_for_flow(lambda: checked(methods, chosen.seeds, chosen.common))
    state = ablation(methods, chosen.seeds, chosen.common, wait_seconds, machines, return_state=True)
    print(
        without_secrets(f"ablation: {state.message}"), file=sys.stdout if state.is_completed() else sys.stderr
    )
    return 0 if state.is_completed() else exit_codes.USER_ERROR


if __name__ == "__main__":
    hide_secrets_of_tracebacks()
    sys.exit(main())
