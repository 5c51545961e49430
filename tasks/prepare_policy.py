"""Stage: the policy that training starts from, warm-started by imitation where that is asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tasks.exit_codes import leave
from tasks.stage import Stage, run_stage

if TYPE_CHECKING:
    from skillpress.policy import Policy
    from skillpress.unfinished import Unfinished

MLFLOW_UPDATES = 20
"""Updates between two points of the imitation's curve."""


def main(stage: Stage) -> None:
    """Write models/base, and the imitation's loss curve."""
    from skillpress.assembly import starting_policy
    from skillpress.policy import save_policy
    from skillpress.storage import write_json
    from tasks.data import BASE_POLICY, RESULTS, split_file, unfinished, write_curve

    policy = starting_policy(stage.params)
    work = unfinished(stage, split_file("train"))
    losses = warm_start(stage, policy, work) if stage.params.imitation.demonstrations else []
    metrics = {"parameters": float(policy.parameters)}
    if losses:
        last = losses[-(len(losses) // 10 + 1) :]
        metrics |= {"loss": sum(last) / len(last), "updates": float(len(losses))}
    save_policy(policy, BASE_POLICY)
    shown = [number for number in range(1, len(losses) + 1) if reported(number, len(losses))]
    write_curve(RESULTS / "imitation.csv", [{"update": float(n), "loss": losses[n - 1]} for n in shown])
    write_json(RESULTS / "imitation.json", metrics)
    stage.run.log_metrics({f"imitation/{name}": value for name, value in metrics.items()})
    work.forget()


def warm_start(stage: Stage, policy: Policy, work: Unfinished) -> list[float]:
    """Imitate demonstrations of the training tasks; returns the loss of every update."""
    from skillpress.assembly import environment_of, prompter_of, rendering_of, state_update_of
    from skillpress.rollout.demonstrations import demonstrate
    from skillpress.training.demonstrated import demonstrated
    from skillpress.training.imitation import imitate
    from tasks.data import load_tasks

    params, section = stage.params, stage.params.imitation
    bundle = environment_of(params)
    tasks = load_tasks(bundle)["train"]
    shown = partial(
        demonstrate, tasks, section.demonstrations, bundle, params.environment, rendering_of(params),
        state_update_of(params), section.detour_rate, params.seed,
    )  # fmt: skip
    with stage.progress(section.demonstrations, "demonstration") as progress:
        samples = demonstrated(
            shown, section.demonstrations, prompter_of(params, policy), policy, work, progress
        )
    with stage.progress(section.epochs * -(-len(samples) // section.batch_size), "update") as progress:

        def on_update(done: int, total: int, loss: float) -> None:
            progress(done, loss=loss)
            if reported(done, total):
                stage.run.log_metrics({"loss": loss}, step=done)

        checkpoint = work.folder / "imitation.pt"
        return imitate(policy, samples, section, params.seed, on_update, checkpoint)


def reported(done: int, total: int) -> bool:
    """Whether an update is a point of the curve."""
    return done % MLFLOW_UPDATES == 0 or done == total


if __name__ == "__main__":
    leave(run_stage("prepare_policy", main))
