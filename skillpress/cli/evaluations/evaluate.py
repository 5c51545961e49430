"""``skillpress evaluate``: let any model play an environment's test tasks, each exactly k times.

    skillpress evaluate --model models/policy --environment countdown
    skillpress evaluate --model Qwen/Qwen2.5-1.5B-Instruct --environment alfworld --votes 7
    skillpress evaluate --model http://127.0.0.1:8000/v1 --environment alfworld --output results/served
    skillpress evaluate --agent explorer --environment countdown

The tasks are the environment's official test tasks (ALFWorld: 140 IID and 134 OOD games). --tasks draws some
of these evenly; the same seed draws the same tasks for every model. The same command continues an interrupted
evaluation. Parameters come from params.yaml; --params and --set change them.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from skillpress.cli.evaluations.code import deciding_code
from skillpress.cli.evaluations.folder import EvaluationFolder
from skillpress.cli.evaluations.options import add_parameter_options, add_server_options
from skillpress.cli.evaluations.parameters import (
    SEED,
    VOTES,
    deciding,
    evaluation_params,
    read_sections,
    tasks_of,
)
from skillpress.cli.evaluations.players import PLAYERS, Player, choose
from skillpress.cli.evaluations.summary import lines, record_of, write_page
from skillpress.cli.parameter_options import add_environment
from skillpress.core.arguments import CommandParser, any_seed, output_folder, real, whole
from skillpress.core.errors import UserError
from skillpress.core.resume import content_key
from skillpress.core.task_files import write_tasks
from skillpress.evaluation.statistics.unplayed import why_nothing_was_played
from skillpress.experiment.params import Params
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.progress import StageProgress
from skillpress.pipeline.reproduce.lock import exclusive
from skillpress.rollouts.collection.requests import requests


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    # Wrong parameters wait neither for torch nor for a server, which a player asks.
    _params(chosen, {"policy": {"model": chosen.model}} if chosen.model else {})
    agent, player = choose(chosen)
    params = _params(chosen, player.options())
    folder = EvaluationFolder(chosen.output or default_output(chosen.environment, player))
    folder.make()
    with exclusive(folder.lock, f"the evaluation {folder.path}", wait_seconds=0):
        evaluate(folder, agent, player, params, chosen.accept_unread)
    for line in lines(folder.read()):
        print(line)
    print(f"page: {folder.page}")
    return 0


def evaluate(
    folder: EvaluationFolder, agent: str, player: Player, params: Params, accept_unread: bool = False
) -> None:
    """Play the missing episodes and write all results; does nothing if the evaluation is finished.

    Args:
        accept_unread: write the results even if no answer could be read.

    Raises:
        UserError: no answer could be read, or no program asked the model; the episodes are kept.
        UserError: the folder holds another evaluation.
        UserError: the agent cannot play on this machine.
    """
    of_agent = dict(player.check(params))
    if skills := params.environment.given_skills():
        of_agent["skills"] = {skill.name: skill.digest for skill in skills}
    asked = {"agent": agent, "deciding": of_agent, "parameters": deciding(params)}
    folder.sweep()
    folder.claim(asked)
    if folder.finished:
        folder.remove_unfinished()
        return
    store = folder.store(content_key(asked | deciding_code(params, PLAYERS[agent].partition(":")[0]), []))
    tasks = tasks_of(params, "test")
    wanted = [
        request
        for run in range(params.evaluation.runs)
        for request in requests(tasks, params.evaluation.votes, params.seed, "test", f"run-{run}", run=run)
    ]
    with StageProgress("evaluate", len(wanted), "episode") as progress:
        player.play(params, wanted, store, folder.rollouts_file, progress.more)
    if not accept_unread and (why := why_nothing_was_played(folder.rollouts())):
        raise UserError(
            f"{player.label}: {why}. A success rate would say nothing about the policy. The "
            f"episodes are in {folder.rollouts_file}; after a correction, give --output another folder; "
            "--accept-unread writes the results as they are"
        )
    write_tasks(folder.tasks_file, tasks)
    record = record_of(
        agent,
        player,
        of_agent=of_agent,
        params=params,
        parameters=read_sections(params),
        folder=folder,
        store=store,
    )
    write_page(folder, record)
    folder.write(record)
    folder.remove_unfinished()


def default_output(environment: str, player: Player) -> Path:
    """The folder of an evaluation without --output, named after the environment and the player."""
    return RESULTS / "evaluations" / re.sub(r"[^\w.-]+", "-", f"{environment}-{player.label}")


def _params(chosen: Namespace, of_player: Mapping[str, Any]) -> Params:
    """The checked parameters, with the player's sections. Raises ``ParamsError`` if they are wrong."""
    options = _options(chosen) | dict(of_player)
    return evaluation_params(chosen.environment, chosen.model or "", chosen.params, options, chosen.set)


def _options(chosen: Namespace) -> dict[str, Any]:
    """Sections that the given options set; an option that was not given sets nothing."""
    given: dict[str, dict[str, Any]] = {
        "tasks": {"test": chosen.tasks},
        "evaluation": {"votes": chosen.votes, "temperature": chosen.temperature},
    }
    sections: dict[str, Any] = {
        name: {key: value for key, value in section.items() if value is not None}
        for name, section in given.items()
    }
    return sections | {"seed": chosen.seed}


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("--model", metavar="FOLDER|NAME|URL", help="who plays; the explorer needs none")
    add_environment(parser)
    parser.add_argument(
        "--output",
        type=output_folder,
        metavar="FOLDER",
        help=f"where everything goes (default: {RESULTS}/evaluations/ENVIRONMENT-MODEL)",
    )
    parser.add_argument("--agent", choices=list(PLAYERS), help="default: chat for a URL, else language")
    parser.add_argument(
        "--accept-unread", action="store_true",
        help="write the results even if no answer could be read, or no program asked the model",
    )  # fmt: skip
    parser.add_argument("--votes", type=whole(1), help=f"k, episodes of each task; odd (default {VOTES})")
    parser.add_argument(
        "--tasks", type=whole(1), metavar="N", help="so many test tasks (default: all of the overlay)"
    )
    parser.add_argument("--temperature", type=real(at_least=0), help="default: the overlay's")
    parser.add_argument(
        "--seed", type=any_seed, default=SEED, help="of tasks and of the episodes' dice (default 0)"
    )
    add_server_options(parser)
    add_parameter_options(parser, "paper_ENVIRONMENT", "sampling.slots=64")
    return parser
