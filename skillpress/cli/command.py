"""The console command ``skillpress``: one table from a word to the module that carries it out.

A command's module is imported when the command is called, so that ``skillpress --help`` imports none of them.
Each module takes the rest of the command line in ``main(arguments)`` and returns an exit code. A mistake
that the user can correct is printed here as one clear line and exits with 2; Ctrl-C exits with 130. A missing
layer of the package is such a mistake, and is found before the command's module is imported.

Some commands run code that an experiment names. The others only read files and import no such code, so they
are safe for experiments of unknown origin.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from skillpress.cli import layers
from skillpress.core.errors import did_you_mean, is_user_error
from skillpress.core.lab import need_lab
from skillpress.core.log_lines import set_up, without_options
from skillpress.core.names import looking
from skillpress.core.redaction import hide_secrets_of_tracebacks
from skillpress.core.visible import visible_output
from skillpress.pipeline import exit_codes, settings

_LOG = logging.getLogger("skillpress.cli")


@dataclass(frozen=True)
class Command:
    """One subcommand."""

    module: str
    """The module, which has ``main(arguments) -> int``."""
    summary: str
    """Its line in the help."""
    layers: tuple[str, ...] = ()
    """The layers of the package that it needs in addition to the base (``layers.py``)."""
    in_lab: bool = False
    """Whether it works on a lab, and therefore needs one."""
    runs_code: bool = False
    """Whether it runs code that an experiment or a lab names, or a model. Otherwise it only looks."""


COMMANDS = {
    "init": Command("skillpress.cli.init", "write a lab of your own: parameters, stages, an environment"),
    "check": Command(
        "skillpress.cli.checking.command",
        "look at an environment before a policy is trained in it",
        layers=("train",),
        runs_code=True,
    ),
    "run": Command(
        "skillpress.pipeline.reproduce.__main__",
        "reproduce an experiment: what changed of its stages",
        layers=("train", "pipeline"),
        in_lab=True,
        runs_code=True,
    ),
    "evaluate": Command(
        "skillpress.cli.evaluations.evaluate",
        "let any model play an environment's test tasks",
        layers=("train",),
        runs_code=True,
    ),
    "compare": Command(
        "skillpress.cli.evaluations.compare", "test two evaluations against each other, paired by task"
    ),
    "trial": Command(
        "skillpress.cli.trial.command",
        "whether a folder of skills helps an agent: the same tasks with and without it",
        runs_code=True,
    ),
    "trajectory-ratio": Command(
        "skillpress.cli.evaluations.trajectory_ratio",
        "how likely episodes are under one policy against another",
        layers=("train",),
    ),
    "actions": Command(
        "skillpress.cli.evaluations.actions",
        "how likely a policy's actions are, whatever words express them",
        layers=("train",),
        runs_code=True,
    ),
    "choice": Command(
        "skillpress.cli.choice",
        "whether a segmentation cost can choose reuse on a benchmark",
        layers=("train",),
    ),
    "judge-questions": Command(
        "skillpress.cli.evaluations.judge_questions",
        "let a model rate training questions, for environment.objectivity",
        layers=("train",),
        runs_code=True,
    ),
    "judge-answers": Command(
        "skillpress.cli.evaluations.judge_answers",
        "let a model grade the answers of finished runs, for the paper's tables",
        layers=("train",),
        runs_code=True,
    ),
    "reverse-parse": Command(
        "skillpress.cli.reverse_parsing",
        "let a model find thoughts that lead to known actions, to be imitated",
        layers=("train",),
        runs_code=True,
    ),
    "view": Command("skillpress.cli.viewing.view", "leaf through episodes in a browser"),
    "runs": Command("skillpress.pipeline.finished.runs", "every finished run: what ran, and what it came to"),
    "tables": Command(
        "skillpress.pipeline.finished.paper_tables", "the paper's tables from finished experiments"
    ),
    "reproduce": Command(
        "skillpress.cli.reproduce",
        "the paper's tables at one command: what runs, what it costs, each figure beside the printed one",
        layers=("train", "pipeline"),
        in_lab=True,
        runs_code=True,
    ),
    "serve": Command(
        "skillpress.cli.serve",
        "let agents of other libraries play an environment (OpenEnv)",
        layers=("serve",),
        runs_code=True,
    ),
    "export": Command("skillpress.cli.exporting", "episodes as ATIF, Hugging Face datasets or ShareGPT"),
    "skills": Command("skillpress.cli.skills", "the routines of any agent, read off its logs"),
    "rules": Command("skillpress.cli.rules", "a table of rules for skills, drafted from an agent's logs"),
    "serve-model": Command(
        "skillpress.models.engines.serve",
        "serve a model with vLLM, with the right options",
        runs_code=True,
    ),
    "serve-workers": Command(
        "skillpress.cli.serve_workers",
        "run an experiment's environments for a trainer on another machine",
        layers=("serve",),
        runs_code=True,
    ),
    "serve-retriever": Command(
        "skillpress.cli.serve_retriever",
        "find passages of a file for environment: {name: search}, by Search-R1's protocol",
        layers=("qa",),
    ),
    "upgrade": Command("skillpress.cli.upgrade", "bring a lab's files to the installed version", in_lab=True),
    "doctor": Command("skillpress.cli.doctor", "what is installed, what works here, and how to get the rest"),
}


HELP = ("-h", "--help")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    words = without_options(sys.argv[1:] if arguments is None else arguments)
    name, *rest = words or ["--help"]
    if name not in COMMANDS and name not in HELP:
        exit_codes.say(
            f"skillpress: there is no command {name!r}; the commands are {', '.join(COMMANDS)}"
            f"{did_you_mean(name, COMMANDS)}"
        )
        return exit_codes.USER_ERROR
    sys.argv[0] = f"skillpress {name}"  # what argparse calls the program in its own help
    if name in COMMANDS and COMMANDS[name].runs_code:
        return _finished(name, rest)
    with visible_output():  # of strangers' files
        code = _finished(name, rest)
    return code if words else exit_codes.USER_ERROR


def _finished(name: str, rest: Sequence[str]) -> int:
    """Run a command and return its exit code; a mistake of the user is printed as one line."""
    try:
        return _run(name, rest)
    except SystemExit as ended:  # the parser has printed its help, or the mistake
        return int(ended.code or 0)
    except KeyboardInterrupt:
        exit_codes.say(f"{name}: interrupted; finished work is kept, run the same command again to continue")
        return exit_codes.INTERRUPTED
    except BrokenPipeError:  # of `| head`, which has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python's last flush fails too
        return exit_codes.PIPE_CLOSED
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and (line := _layer_line(error)):
            exit_codes.say(f"{name}: {line}")
            return exit_codes.USER_ERROR
        if not is_user_error(error):
            raise
        exit_codes.say(f"{name}: {error}")
        return exit_codes.USER_ERROR


def _run(name: str, rest: Sequence[str]) -> int:
    set_up()
    if name in HELP:
        print(usage())
        return 0
    from skillpress.pipeline.waits import Waits  # the command's help needs no tqdm

    command = COMMANDS[name]
    layers.need(command.layers)
    if command.in_lab:
        need_lab()
    with Waits(name), _allowed(name, command):
        return int(import_module(command.module).main(rest))


def _allowed(name: str, command: Command) -> AbstractContextManager[None]:
    """The context in which a command runs; a command that runs code also gets all settings of the lab."""
    if not command.runs_code:
        return looking(lambda line: _LOG.warning("%s: %s", name, line))
    settings.apply_all()
    return nullcontext()


def _layer_line(error: ModuleNotFoundError) -> str | None:
    """What to install if an option or an environment needs more layers than its command."""
    layer = layers.layer_of(error.name or "")
    return layer and f"{error.name} is not installed: {layers.remedy(layer)}"


def enter() -> NoReturn:
    """The entry point of the installed command: :func:`main`, then the end of the process.

    It does not wait for pending requests to a slow server, nor for torch to release its memory.
    """
    hide_secrets_of_tracebacks()
    exit_codes.leave(main())


def usage() -> str:
    """The help of the command itself."""
    width = max(map(len, COMMANDS))
    lines = (f"  {name:{width}}  {command.summary}" for name, command in COMMANDS.items())
    running = ", ".join(name for name, command in COMMANDS.items() if command.runs_code)
    ending = (
        "`skillpress COMMAND --help` tells its options; all take --quiet (errors alone) and --verbose.",
        f"These commands run code that an experiment names: {running}.",
        "The others only look, and run none of it (view, runs, tables and choice do with --run-code).",
    )
    return "\n".join(["usage: skillpress COMMAND ...", "", *lines, "", *ending])


if __name__ == "__main__":
    enter()
