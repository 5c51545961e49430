"""Methods x seeds, side by side, and one comparison at the end.

    python -m flows.ablation --params params/grpo.yaml --params params/segcost.yaml --seeds 0 1 2

Every experiment is a process of its own (``python -m tasks.reproduce``) with one thread, in its own
workspace; there are as many at once as there are cores. The first method of every seed goes ahead: the
stages that it shares with the others are then restored from DVC's cache instead of run again. Methods
are tested against the first one listed. Starting an interrupted ablation again goes on.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from prefect import flow, task
from prefect.artifacts import create_table_artifact
from prefect.client.schemas.objects import State
from prefect.futures import PrefectFuture, wait
from prefect.runtime import flow_run
from prefect.states import Completed, Failed
from prefect.task_runners import ThreadPoolTaskRunner

from flows.children import children_stopped, process_stopped
from skillpress.params import ParamsError
from skillpress.storage import StorageError, write_json, write_text
from tasks import exit_codes
from tasks.comparison import Experiment, as_json, page, paired_tests, table
from tasks.data import RESULTS
from tasks.lock import DEFAULT_WAIT_SECONDS, LockTimeoutError, exclusive
from tasks.settings import ROOT
from tasks.tracking import FLOW_RUN_VARIABLE, create_database, log_comparison, revision
from tasks.workspace import FOLDER, Variant

METHODS = tuple(
    f"params/{method}.yaml"
    for method in ("imitation", "grpo", "round_length", "segcost", "segcost_no_buffer")
)
SEEDS = (0, 1, 2)
PROCESSES = len(os.sched_getaffinity(0))


class ExperimentFailedError(RuntimeError):
    """An experiment's process failed; its log says why."""


@task(name="experiment", task_run_name="{variant.name}", retries=1, retry_delay_seconds=10)
def run_experiment(variant: Variant) -> Experiment:
    """Reproduce a variant in a process of its own; what it prints goes to workspaces/<name>.log.

    Raises:
        ExperimentFailedError: the process failed.
    """
    assert variant.seed is not None
    log = ROOT / FOLDER / f"{variant.name}.log"
    options = [option for overlay in variant.overlays for option in ("--params", str(overlay))]
    command = [sys.executable, "-m", "tasks.reproduce", *options, "--seed", str(variant.seed)]
    with log.open("a", encoding="utf-8") as output:
        process = subprocess.Popen(command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT)
        with process_stopped(process.pid):
            code = process.wait()
    if code:
        raise ExperimentFailedError(f"{variant.name} failed with exit code {code}; see {log}\n{tail(log)}")
    return Experiment(variant.overlays[-1].stem, variant.seed, ROOT / FOLDER / variant.name)


def tail(log: Path, lines: int = 15) -> str:
    """The end of a log."""
    return "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:])


@flow(name="ablation", task_runner=ThreadPoolTaskRunner(max_workers=PROCESSES))
def ablation(
    methods: Sequence[str] = METHODS,
    seeds: Sequence[int] = SEEDS,
    common: Sequence[str] = (),
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
) -> State[None]:
    """Run and compare ``methods`` x ``seeds``.

    Args:
        methods: one overlay each; the first is what the others are tested against.
        seeds: of each method.
        common: overlays that every method's own is laid over.
        wait_seconds: how long to wait for another ablation.
    """
    try:
        for method in methods:
            Variant((*map(Path, common), Path(method))).values(ROOT)
        create_database()
        with exclusive(ROOT / FOLDER / ".ablation.lock", "the ablation", wait_seconds), children_stopped():
            finished, failures = run_all(methods, seeds, common)
            if finished:
                publish(finished)
    except (ParamsError, StorageError, LockTimeoutError) as error:
        return Failed(message=str(error))
    if failures:
        return Failed(message="\n".join(failures))
    return Completed(message=str(ROOT / RESULTS / "ablation.html"))


def run_all(
    methods: Sequence[str], seeds: Sequence[int], common: Sequence[str]
) -> tuple[list[Experiment], list[str]]:
    """(finished experiments by method and seed, what the others failed of)."""
    futures: dict[tuple[str, int], PrefectFuture[Experiment]] = {}
    for wave in (methods[:1], methods[1:]):
        started = {
            (method, seed): run_experiment.submit(Variant((*map(Path, common), Path(method)), seed))
            for seed in seeds
            for method in wave
        }
        wait(list(started.values()))
        futures |= started
    finished, failures = [], []
    for method in methods:
        for seed in seeds:
            state = futures[method, seed].state
            if state.is_completed():
                finished.append(futures[method, seed].result())
            else:
                failures.append(str(state.message))
    return finished, failures


def publish(experiments: Sequence[Experiment]) -> None:
    """The comparison: results/ablation.{json,html}, an MLflow run, a Prefect artifact, and a print."""
    rows, tests = table(experiments), paired_tests(experiments)
    html, values = ROOT / RESULTS / "ablation.html", ROOT / RESULTS / "ablation.json"
    write_json(values, as_json(rows, tests))
    versions = {"code": revision(), "Python": platform.python_version(), "machine": platform.platform()}
    write_text(html, page(experiments, tests, versions))
    os.environ[FLOW_RUN_VARIABLE] = str(flow_run.id)
    parameters = {
        "methods": sorted({e.method for e in experiments}),
        "seeds": sorted({e.seed for e in experiments}),
    }
    metrics = {f"{row.method}/pass_at_1".replace(" ", "_"): row.pass_at_1 for row in rows}
    metrics |= {f"{row.method}/budget_area".replace(" ", "_"): row.budget_area for row in rows}
    log_comparison("ablation", parameters, metrics, [html, values])
    create_table_artifact([asdict(row) for row in rows], key="ablation", description="Methods compared")
    for row in rows:
        spread = "" if row.std_over_seeds is None else f" (std over seeds {row.std_over_seeds:.3f})"
        print(f"{row.method:20} Pass@1 {row.pass_at_1:.3f} [{row.low:.3f}, {row.high:.3f}]{spread}")
    for name, test in tests.items():
        last = test.tests[-1]
        print(
            f"{name}: {last.difference:+.3f} [{last.low:+.3f}, {last.high:+.3f}], "
            f"bootstrap p {last.bootstrap_p:.3f}, McNemar p {last.mcnemar_p:.3f}"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--params", action="append", help="overlay of a method; repeat for each (the paper's)"
    )
    parser.add_argument("--common", action="append", default=[], help="overlay under every method's")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--wait", type=float, default=DEFAULT_WAIT_SECONDS, help="seconds to wait")
    chosen = parser.parse_args(arguments)
    state = ablation(chosen.params or METHODS, chosen.seeds, chosen.common, chosen.wait, return_state=True)
    print(f"ablation: {state.message}", file=sys.stdout if state.is_completed() else sys.stderr)
    return 0 if state.is_completed() else exit_codes.USER_ERROR


if __name__ == "__main__":
    sys.exit(main())
