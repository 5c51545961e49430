"""Stage: the policy that training starts from, after imitation if the parameters ask for it."""

from __future__ import annotations

import logging
from contextlib import ExitStack
from typing import TYPE_CHECKING

from skillpress.core.storage import write_json
from skillpress.experiment import imitation
from skillpress.pipeline.files import BASE_POLICY, RESULTS, load_tasks, split_file, write_curve

if TYPE_CHECKING:
    from skillpress.pipeline.stage import Stage

MLFLOW_UPDATES = 20
"""Updates between two points of the imitation's curve."""


def main(stage: Stage) -> None:
    """Write models/base, and the imitation's loss curve."""
    if stage.params.imitation.wanted:
        load_tasks(stage.params.environment)  # checks that splits do not overlap
        result = warm_start(stage)
    else:
        result = imitation.without_demonstrations(stage.params, BASE_POLICY)
    losses, metrics = result.losses, result.metrics()
    if stage.params.policy.domain_tokens:
        from skillpress.experiment.token_counts import token_counts_of_start

        metrics |= token_counts_of_start(stage.params, BASE_POLICY, split_file("train"))
    shown = [number for number in range(1, len(losses) + 1) if reported(number, len(losses))]
    write_curve(RESULTS / "imitation.csv", [{"update": float(n), "loss": losses[n - 1]} for n in shown])
    write_json(RESULTS / "imitation.json", metrics)
    stage.run.log_metrics({f"imitation/{name}": value for name, value in metrics.items()})
    if stage.params.environment.offers("make_reader"):
        note_of_tools()


def note_of_tools() -> None:
    """Print a note if the policy cannot be shown tools. A program's tools are known only when it asks."""
    from skillpress.models.policy.chat_template import saved_without_tools

    if reason := saved_without_tools(BASE_POLICY):
        said = "note: %s. The first request with tools would end the run."
        logging.getLogger("skillpress.tasks").warning(said, reason)


def warm_start(stage: Stage) -> imitation.ImitationResult:
    """Imitate demonstrations of the training tasks, thoughts, and recorded episodes."""
    params = stage.params.imitation
    episodes = params.gather(stage.store.folder)
    job = imitation.ImitationJob(
        stage.params, split_file("train"), output=BASE_POLICY, store=stage.store, episodes=episodes
    )
    done: dict[int, int] = {}
    with ExitStack() as shown:
        progress = shown.enter_context(stage.progress(params.demonstrations, "demonstration", all_work=False))

        def on_progress(rank: int, at: imitation.ImitationProgress) -> None:
            nonlocal progress
            done[rank] = at.done
            if at.loss is None:
                return progress(sum(done.values()))
            if progress.unit != "update":
                shown.close()
                progress = shown.enter_context(stage.progress(at.total, "update"))
            progress(at.done, loss=at.loss)
            if reported(at.done, at.total):
                stage.run.log_metrics({"loss": at.loss}, step=at.done)

        result = imitation.imitate_demonstrations(job, on_progress)
    if episodes is not None and result.episodes is not None:
        stage.say(f"imitation.episodes: {episodes.told(result.episodes)}")
    return result


def reported(done: int, total: int) -> bool:
    """Whether an update is a point of the curve."""
    return done % MLFLOW_UPDATES == 0 or done == total
