"""``skillpress reverse-parse``: thoughts that lead to known actions, as demonstrations to imitate.

    skillpress reverse-parse --model Qwen/Qwen2.5-7B-Instruct --environment alfworld --output thoughts
    skillpress reverse-parse --model smollm2-135m --environment countdown --answer completed --output found
    skillpress reverse-parse --model models/policy --environment countdown --untold --output found
        --tasks-file data/tasks/train.parquet --rollouts data/rollouts/training.parquet

The right action in a state comes from the environment's oracle or, with --rollouts, from the file's shortest
success. The model samples k responses per state. Those that its parser reads as the right action are kept
once each, ordered by their likelihood without the hint. The folder gets thoughts.parquet, which
imitation.thoughts names, the same rows for Hugging Face's datasets.load_from_disk in dataset/, and
summary.json. Responses from before an interruption are kept next to it, and the same command continues from
there.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from skillpress.cli.evaluations.code import deciding_code
from skillpress.cli.evaluations.models import COMPACT, check_wording, identify
from skillpress.cli.evaluations.options import add_parameter_options
from skillpress.cli.evaluations.parameters import evaluation_params
from skillpress.cli.parameter_options import add_environment
from skillpress.core.arguments import CommandParser, any_seed, output_folder, whole
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.resume import ResumeStore, content_key
from skillpress.core.rollout_files import iterate_rollouts
from skillpress.core.storage import make_folder, sweep, write_json
from skillpress.core.tables import write_table
from skillpress.core.task_files import read_tasks
from skillpress.core.trajectory import Task
from skillpress.environments.section import Oracle, SplitSizes
from skillpress.experiment.params import Params
from skillpress.integrations.formats.hugging_face import write_tables
from skillpress.pipeline.identities import environment_data, environment_libraries
from skillpress.pipeline.progress import StageProgress
from skillpress.rollouts.agents.parameters import ASKED_FOR
from skillpress.training.imitation.demonstrations import demonstrate
from skillpress.training.imitation.thoughts import KIND, SCHEMA, frame
from skillpress.training.reverse_parsing.targets import Recorded, Target, shortest_successes, targets_of

if TYPE_CHECKING:
    from skillpress.experiment.experiment import Experiment
    from skillpress.training.reverse_parsing.search import FoundThoughts

THOUGHTS, DATASET, SUMMARY = "thoughts.parquet", "dataset", "summary.json"
TASKS_AT_ONCE = 4
"""Number of tasks between two saves."""
COUNTS = ("states", "sampled", "led", "kept")


@dataclass(frozen=True)
class WantedTasks:
    """Tasks, and the demonstrator that shows the right actions in them."""

    tasks: list[Task]
    oracle: Oracle | None = None
    """The demonstrator; None means the environment's own oracle."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    output: Path = chosen.output
    if (output / SUMMARY).exists() or output.is_file():
        raise UserError(f"--output: {output} exists already; name another folder")
    params = evaluation_params(
        chosen.environment,
        chosen.model,
        chosen.params,
        {"policy": {"model": chosen.model}, "tasks": {"train": chosen.tasks}, "seed": chosen.seed},
        chosen.set,
    )
    _check(chosen, params)
    asked = _asked(chosen, params)
    wanted = _wanted(chosen, params)
    code = deciding_code(params, "skillpress.cli.reverse_parsing")
    store = ResumeStore(output.with_name(f"{output.name}.unfinished"), content_key(asked | code, []))
    parse_all(wanted, params, chosen, store)
    counts = _write(output, store, asked)
    store.clear()
    share = counts["led"] / counts["sampled"] if counts["sampled"] else 0.0
    print(
        f"{output / THOUGHTS}: {counts['kept']} thoughts for {counts['states']} states; {share:.1%} of "
        f"{counts['sampled']} responses led to the action; name it in imitation.thoughts"
    )
    return 0


def parse_all(wanted: WantedTasks, params: Params, chosen: Namespace, store: ResumeStore) -> None:
    """Sample responses for tasks that the store does not have yet, and save their thoughts."""
    import torch  # here, with all that imports it: wrong parameters need not wait for it

    from skillpress.experiment.experiment import Experiment
    from skillpress.models.policy.pretrained import load_pretrained
    from skillpress.rollouts.workers.distributed import Ranks
    from skillpress.training.reverse_parsing.search import ReverseParser

    there = store.spans(KIND)
    done, count = (there[-1][0] if there else 0), len(wanted.tasks)
    experiment = Experiment(params)
    with StageProgress("reverse-parse", count, "task") as progress:
        progress(done)
        if done == count:
            return
        policy = load_pretrained(chosen.model, params.policy.dtype)
        torch.nn.Module.to(policy.model, Ranks().device)
        with closing(experiment.engine(policy)) as engine:
            search = ReverseParser(
                policy=policy,
                engine=engine,
                prompter=experiment.prompter(policy),
                parse=experiment.parser,
                sampling=experiment.training_sampling,
                environment=params.environment.name,
                rendering=params.policy.rendering,
                samples=chosen.samples,
                best=chosen.best,
                told=not chosen.untold,
                answer=chosen.answer,
                seed=params.seed,
            )
            demonstrations = _demonstrations(wanted, experiment, done)
            while batch := list(islice(demonstrations, TASKS_AT_ONCE)):
                found = search([target for targets in batch for target in targets])
                _save(store, done, len(batch), found)
                done += len(batch)
                progress(done)


def _demonstrations(wanted: WantedTasks, experiment: Experiment, first: int) -> Iterator[list[Target]]:
    shown = demonstrate(
        tasks=wanted.tasks,
        count=len(wanted.tasks),
        oracle=wanted.oracle,
        section=experiment.params.environment,
        rendering=experiment.rendering,
        update_state=experiment.state_update,
        detour_rate=0.0,
        seed=experiment.params.seed,
        first=first,
    )
    return (targets_of(steps, experiment.parser) for steps in shown)


def _save(store: ResumeStore, done: int, tasks: int, found: Sequence[FoundThoughts]) -> None:
    """Save the counts first, because tasks with counts but no thoughts are repeated."""
    first, last = done + 1, done + tasks
    kept = [thought for each in found for thought in each.thoughts]
    row = [len(found), sum(f.sampled for f in found), sum(f.led for f in found), len(kept)]
    counts = pl.DataFrame([row], schema=dict.fromkeys(COUNTS, pl.Int64), orient="row")
    write_table(store.span("counts", first, last), counts, "counts")
    write_table(store.span(KIND, first, last), frame(kept), KIND)


def _write(output: Path, store: ResumeStore, asked: dict[str, Any]) -> dict[str, int]:
    """Write the folder. The summary comes last: without it the folder counts as unfinished."""
    counts = pl.concat([pl.read_parquet(file) for _, file in store.spans("counts")]).sum().row(0, named=True)
    rows = pl.concat([pl.read_parquet(file) for _, file in store.spans(KIND)])
    if not rows.height:
        raise UserError(
            f"none of {counts['sampled']} responses to {counts['states']} states led to the right action: "
            "sample more (--samples), raise sampling.max_new_tokens, or use --answer completed"
        )
    make_folder(output)
    for name in (THOUGHTS, DATASET, SUMMARY):
        sweep(output / name)
    write_table(output / THOUGHTS, rows.select(*SCHEMA), KIND)
    table = rows.rename({"response": "completion"}).to_arrow()
    write_tables(output / DATASET, [table], table.schema)
    write_json(output / SUMMARY, {**counts, "asked": asked})
    return counts


def _check(chosen: Namespace, params: Params) -> None:
    """Refuse options that cannot work, before anything is loaded."""
    if params.policy.shows_own_words:
        raise ParamsError(
            f"policy.state_update: is {params.policy.state_update!r}, whose prompts contain the policy's "
            "earlier responses; use window, observations, notepad or environment"
        )
    if params.policy.rendering == COMPACT and not chosen.untold:
        raise ParamsError(
            f"--untold: is needed with policy.rendering {COMPACT!r}, which has no words for hints"
        )
    if params.policy.rendering == COMPACT and chosen.answer != "sampled":
        raise ParamsError(
            f"--answer: must be sampled with policy.rendering {COMPACT!r}, which has no thoughts"
        )
    if params.policy.parser in ASKED_FOR and chosen.answer != "sampled":
        raise ParamsError(
            f"--answer: must be sampled with policy.parser {params.policy.parser!r}: a thought is cut out of "
            "tags only"
        )
    if not (params.environment.has_oracle or chosen.rollouts):
        raise ParamsError(
            f"--rollouts: is missing; {params.environment.name} has no demonstrations, so name "
            "a file with successes"
        )
    if chosen.rollouts and not chosen.tasks_file:
        raise ParamsError("--tasks-file: is missing; name the tasks that --rollouts are of")
    identify(chosen.model)
    check_wording(chosen.model, params)


def _asked(chosen: Namespace, params: Params) -> dict[str, Any]:
    """All settings that affect the rows."""
    values = params.model_dump(mode="json")
    files = {name: getattr(chosen, name) for name in ("tasks_file", "rollouts")}
    return {
        "model": identify(chosen.model),
        "libraries": {name: version(name) for name in ("torch", "transformers")} | params.engine.libraries(),
        "environment": values["environment"],
        "needs": {
            "libraries": environment_libraries(params.environment.name),
            "data": environment_data(params.environment),
        },
        "policy": {key: value for key, value in values["policy"].items() if key != "model"},
        "engine": params.engine.name,
        "sampling": {key: value for key, value in values["sampling"].items() if key != "slots"},
        "seed": params.seed,
        "tasks": chosen.tasks,
        "files": {name: content_key({}, [file]) for name, file in files.items() if file},
        "samples": chosen.samples,
        "best": chosen.best,
        "told": not chosen.untold,
        "answer": chosen.answer,
    }


def _wanted(chosen: Namespace, params: Params) -> WantedTasks:
    """The training tasks and their demonstrator."""
    if chosen.tasks_file:
        there: Iterator[Task] = iter(read_tasks(chosen.tasks_file))
    else:
        sizes = SplitSizes(chosen.tasks, params.tasks.validation, params.tasks.test)
        there = params.environment.checked_tasks(sizes, params.seed)
    training = (task for task in there if task.split == "train")
    oracle: Oracle | None = None
    if not chosen.rollouts:
        found = list(islice(training, chosen.tasks))
    else:
        successes = shortest_successes(iterate_rollouts(chosen.rollouts, tokens=False))
        found = list(islice((task for task in training if task.task_id in successes), chosen.tasks))
        oracle = Recorded(successes)
    if not found:
        raise UserError(f"{chosen.rollouts or chosen.tasks_file}: has no success of a training task")
    return WantedTasks(found, oracle)


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--model", required=True, metavar="FOLDER|NAME", help="who thinks")
    add_environment(parser)
    parser.add_argument("--output", required=True, type=output_folder, metavar="FOLDER", help="a new folder")
    parser.add_argument("--tasks", type=whole(1), default=64, metavar="N",
                        help="so many training tasks, the first ones (default 64)")  # fmt: skip
    parser.add_argument("--samples", type=whole(1), default=8, metavar="K", help="per state (default 8)")
    parser.add_argument("--best", type=whole(1), metavar="M",
                        help="keep the M likeliest of a state (default: all)")  # fmt: skip
    parser.add_argument("--untold", action="store_true",
                        help="do not tell the model the action: what it finds by itself is kept")  # fmt: skip
    parser.add_argument("--answer", choices=["sampled", "completed"], default="sampled",
                        help="completed: the thought alone is the model's")  # fmt: skip
    parser.add_argument("--tasks-file", type=Path, metavar="FILE",
                        help="to take the training tasks from (default: they are made)")  # fmt: skip
    parser.add_argument("--rollouts", type=Path, metavar="FILE",
                        help="its successes say what is right, in place of the oracle")  # fmt: skip
    parser.add_argument("--seed", type=any_seed, default=0, help="of tasks and samples (default 0)")
    add_parameter_options(parser, "paper_ENVIRONMENT", "sampling.max_new_tokens=128")
    return parser
