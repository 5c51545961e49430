"""``skillpress trial``: does a folder of skills help an agent? The same tasks with and without it.

    skillpress trial --skills .claude/skills --environment program --params my.yaml --model http://HOST/v1
    skillpress trial --skills skills --environment alfworld --model http://HOST/v1 --tasks 100 --plan

All episodes are one plan: a task's episodes with and without the skills follow each other. The verdict is
printed once, when all have been played; the same command continues a trial that was stopped. Tasks that the
skills were written from are left out, as far as a skill's .evidence.json or --logs identify them. --plan
prints the price and the smallest effect that this many tasks can show; it plays nothing.
"""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from skillpress.cli.evaluations.options import add_parameter_options, add_server_options
from skillpress.cli.evaluations.parameters import SEED
from skillpress.cli.parameter_options import add_environment
from skillpress.core.arguments import CommandParser, any_seed, output_folder, real, whole
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.reproduce.lock import exclusive


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    chosen.agent = None
    from skillpress.cli.trial.playing import TrialFolder, play, prepare  # with the client, for --help's sake

    trial = prepare(chosen)
    folder = TrialFolder(chosen.output or _default_output(chosen))
    for line in () if folder.finished else trial.before(folder):
        print(line, flush=True)
    if chosen.plan:
        return 0
    folder.make()
    with exclusive(folder.lock, f"the trial {folder.path}", wait_seconds=0):
        play(trial, folder, chosen.accept_unread)
    for line in folder.lines():
        print(line)
    print(f"episodes: {folder.page}")
    return 0


def _default_output(chosen: Namespace) -> Path:
    named = f"{chosen.environment}-{chosen.skills.resolve().name}"
    return RESULTS / "trials" / re.sub(r"[^\w.-]+", "-", named)


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    add = parser.add_argument
    add(
        "--skills",
        type=Path,
        required=True,
        metavar="DIR",
        help="the skills: a folder NAME with a SKILL.md each",
    )
    add("--model", required=True, metavar="FOLDER|NAME|URL", help="who plays")
    add_environment(parser)
    add("--tasks", type=whole(1), metavar="N", help="so many test tasks (default: all of the overlay)")
    add("--rollouts", type=whole(1), default=1, metavar="K", help="episodes of each task and arm (default 1)")
    add("--each", action="store_true", help="also leave out each skill alone, corrected for their number")
    add("--logs", type=Path, nargs="+", default=[], metavar="LOGS", help="what skills without "
        ".evidence.json were written from; their tasks are left out")  # fmt: skip
    add(
        "--task",
        metavar="FIELD",
        help="the field of the logs that names the task (default: the format's own)",
    )
    add(
        "--allow-overlap",
        action="store_true",
        help="play tasks that the skills were written from, and say so",
    )
    add("--plan", action="store_true", help="say the price and what the trial can show, and play nothing")
    add(
        "--output", type=output_folder, metavar="FOLDER", help=f"default: {RESULTS}/trials/ENVIRONMENT-SKILLS"
    )
    add("--temperature", type=real(at_least=0), help="default: the overlay's")
    add("--seed", type=any_seed, default=SEED, help="of tasks, order and episodes (default 0)")
    add("--accept-unread", action="store_true", help="say the verdict even if no answer could be read")
    add_server_options(parser)
    add_parameter_options(parser, "paper_ENVIRONMENT", "sampling.slots=64")
    return parser
