"""``skillpress check``: test an environment before a policy is trained in it.

    skillpress check countdown
    skillpress check my_lab.number_line:NumberLine
    skillpress check --params params/my_lab.yaml --tasks 64

Plays the first training tasks with the environment's oracle and with the random explorer, repeats episodes,
and reads what a policy would read. Prints one line per finding: ``ok``; ``note`` (a training works, but you
should know); ``wrong`` with what to do about it. The exit code is 2 if anything is wrong. The parameters are
those of an experiment: params.yaml, then the environment's overlay or those that --params names.
"""

from __future__ import annotations

from collections.abc import Sequence

from skillpress.cli.evaluations.options import add_parameter_options
from skillpress.cli.parameter_options import known_environment, playing_params
from skillpress.core.arguments import CommandParser, whole
from skillpress.core.long_work import importing
from skillpress.core.registry import ENVIRONMENTS

TASKS = 32
"""Number of tasks that are played."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    params = playing_params(chosen.environment, chosen.params, chosen.set)
    with importing("torch and transformers"):  # wrong parameters need not wait for it
        from skillpress.cli.checking.check import report
    return report(params, chosen.tasks)


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument(
        "environment", nargs="?", type=known_environment, metavar="ENVIRONMENT",
        help=f"{', '.join(ENVIRONMENTS)}, an installed package's, or module:NAME of this folder "
        "(default: the one that the parameters name)",
    )  # fmt: skip
    add_parameter_options(parser, "ENVIRONMENT", "environment.max_steps=20")
    parser.add_argument(
        "--tasks", type=whole(1), default=TASKS, metavar="N", help=f"so many training tasks (default {TASKS})"
    )
    return parser
