"""Stage: the policy that training starts from, warm-started by imitation where that is asked for."""

from __future__ import annotations

from tasks.exit_codes import leave
from tasks.stage import Stage, run_stage

TOKENIZED_AT_ONCE = 10_000
"""Demonstrated steps; as text they take much more memory than as tokens."""
MLFLOW_UPDATES = 20
"""Updates between two points of the imitation's curve."""


def main(stage: Stage) -> None:
    """Write models/base, and the imitation's loss curve."""
    from skillpress.assembly import (
        environment_of,
        prompter_of,
        rendering_of,
        starting_policy,
        state_update_of,
    )
    from skillpress.policy import save_policy
    from skillpress.rollout.demonstrations import DemonstratedStep, demonstrate
    from skillpress.storage import write_json
    from skillpress.training.imitation import imitate, tokenize
    from tasks.data import BASE_POLICY, RESULTS, load_tasks, write_curve

    params = stage.params
    section = params.imitation
    bundle = environment_of(params)
    tasks = load_tasks(bundle)["train"]
    policy = starting_policy(params)
    metrics = {"parameters": float(policy.parameters)}
    curve: list[dict[str, float]] = []
    if section.demonstrations:
        prompter = prompter_of(params, policy)
        rows, steps = [], list[DemonstratedStep]()
        with stage.progress(section.demonstrations, "demonstration") as progress:
            demonstrations = demonstrate(
                tasks, section.demonstrations, bundle, params.environment, rendering_of(params),
                state_update_of(params), section.detour_rate, params.seed,
            )  # fmt: skip
            for count, demonstration in enumerate(demonstrations, 1):
                steps += demonstration
                if len(steps) >= TOKENIZED_AT_ONCE or count == section.demonstrations:
                    rows += tokenize(steps, prompter, policy)
                    steps.clear()
                progress(count)
        with stage.progress(section.epochs * -(-len(rows) // section.batch_size), "update") as progress:

            def on_update(done: int, total: int, update: dict[str, float]) -> None:
                progress(done, **update)
                if done % MLFLOW_UPDATES == 0 or done == total:
                    curve.append({"update": float(done), **update})
                    stage.run.log_metrics(update, step=done)

            metrics |= imitate(policy, rows, section, params.seed, on_update)
    save_policy(policy, BASE_POLICY)
    write_curve(RESULTS / "imitation.csv", curve)
    write_json(RESULTS / "imitation.json", metrics)
    stage.run.log_metrics({f"imitation/{name}": value for name, value in metrics.items()})


if __name__ == "__main__":
    leave(run_stage("prepare_policy", main))
