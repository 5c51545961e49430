"""Command lines: one parser class for all commands, and numbers that name their range.

The parser answers a misspelt option, command or choice with the name that was probably meant. It accepts
no abbreviations: an abbreviation would change its meaning when another option is added.
"""

from __future__ import annotations

import math
import re
import sys
from argparse import Action, ArgumentParser, ArgumentTypeError, RawDescriptionHelpFormatter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NoReturn

from skillpress.core.errors import did_you_mean
from skillpress.core.names import RUN_CODE, run_code
from skillpress.core.storage import why_not_writable

LARGEST = 2**31 - 1
"""The largest value of any count."""
LARGEST_SEED = 2**63 - 1

_CHOICE = re.compile(r"invalid choice: '([^']*)' \(choose from (.*)\)$")
_UNKNOWN = re.compile(r"unrecognized arguments: (?:.* )?(--[\w-]+)")
_LEFT_OVER = re.compile(r"unrecognized arguments: (.*)$")
_REMOVED = {
    "--cluster": "Ray clusters are no longer supported. For one training on several machines use skillpress "
    "run --dry-run --launch, for many experiments --remote (docs/scaling.md)"
}
"""Options of former versions, and what to use instead."""
_REQUIRED = "the following arguments are required"
_ASSIGNMENT = re.compile(r"\w+(\.\w+)*=")


class CommandParser(ArgumentParser):
    """``argparse``'s parser that suggests corrections and shows its description as it is written."""

    def __init__(self, description: str | None = None, **settings: Any) -> None:
        super().__init__(
            description=description,
            formatter_class=RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **settings,
        )

    def error(self, message: str) -> NoReturn:
        """Print the usage and the mistake, and exit with 2."""
        if found := _CHOICE.search(message):
            message += did_you_mean(found[1], (name.strip(" '") for name in found[2].split(",")))
        elif removed := [f"{word}: {_REMOVED[word]}" for word in self._words if word in _REMOVED]:
            message = removed[0]
        elif found := _UNKNOWN.search(message):
            message += did_you_mean(found[1], self._option_string_actions)
        elif found := _LEFT_OVER.search(message):
            message += self._options_for(found[1].split())
        elif message.startswith(_REQUIRED):
            pairs = zip(["", *self._words], self._words, strict=False)
            message += self._options_for([word for before, word in pairs if not before.startswith("-")])
        super().error(message)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as argparse does, and keep the words for errors."""
        self._words = [str(word) for word in (sys.argv[1:] if args is None else args)]
        return super().parse_known_args(args, namespace)

    def add_run_code(self) -> None:
        """Add ``--run-code`` to a command that only looks: it allows imports of an experiment's code."""
        self.add_argument(
            RUN_CODE, action=_RunCode, nargs=0, help="import the modules that the experiment's files name: "
            "only for an experiment whose code you trust",
        )  # fmt: skip

    def _options_for(self, words: Sequence[str]) -> str:
        """A hint such as ``"; did you mean --params params/a.yaml?"`` if the words are an option's values."""
        named = [
            f"{option} {word}"
            for word in words
            for option, takes in (("--params", is_overlay), ("--set", is_assignment))
            if option in self._option_string_actions and takes(word)
        ]
        return f"; did you mean {' '.join(named)}?" if named and len(named) == len(words) else ""


class _RunCode(Action):
    """Allows imports at once, because the type of a later option may already read a file."""

    def __call__(self, *about: Any) -> None:
        """Called by argparse when the option is given."""
        run_code()


def is_overlay(word: str) -> bool:
    """Whether a word of a command line is the path of a params file."""
    return word.endswith((".yaml", ".yml"))


def is_assignment(word: str) -> bool:
    """Whether a word looks like ``section.key=value``."""
    return _ASSIGNMENT.match(word) is not None


def whole(at_least: int = 0, at_most: int = LARGEST) -> Callable[[str], int]:
    """The type of an option that is a whole number in a range."""

    def read(text: str) -> int:
        try:
            number = int(text)
        except ValueError:  # also raised for numbers of more than 4,300 digits
            raise ArgumentTypeError(
                f"{text[:40]!r} is not a whole number; {_range(at_least, at_most)}"
            ) from None
        if not at_least <= number <= at_most:
            raise ArgumentTypeError(f"is {text[:40]}; {_range(at_least, at_most)}")
        return number

    return read


any_seed = whole(0, LARGEST_SEED)
"""The type of ``--seed``."""


def output_folder(text: str) -> Path:
    """The type of an option that names a command's output folder. Before any work it checks that the folder
    can be written, without making it."""
    if why := why_not_writable(Path(text)):
        raise ArgumentTypeError(f"{text}: {why}")
    return Path(text)


def output_file(text: str) -> Path:
    """The type of an option that names an output file."""
    if Path(text).is_dir():
        raise ArgumentTypeError(f"{text}: is a folder; name a file")
    return output_place(text)


def output_place(text: str) -> Path:
    """The type of an option that names an output file or folder; checks the folder that contains it."""
    output_folder(str(Path(text).parent))
    return Path(text)


def many_seeds(text: str) -> list[int]:
    """The type of each word of ``--seeds``, such as ``1`` or ``1,2,3``."""
    return [any_seed(word) for word in text.split(",")]


def real(
    above: float = -math.inf, at_least: float = -math.inf, at_most: float = math.inf
) -> Callable[[str], float]:
    """The type of an option that is a finite number in a range."""
    said = _real_range(above, at_least, at_most)

    def read(text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise ArgumentTypeError(f"{text[:40]!r} is not a number; {said}") from None
        if not (math.isfinite(number) and number > above and at_least <= number <= at_most):
            raise ArgumentTypeError(f"is {text[:40]}; {said}")
        return number

    return read


def _range(at_least: int, at_most: int) -> str:
    return f"must be from {at_least} to {at_most}"


def _real_range(above: float, at_least: float, at_most: float) -> str:
    limits = [
        f"{words} {limit:g}"
        for words, limit in (("above", above), ("at least", at_least), ("at most", at_most))
        if math.isfinite(limit)
    ]
    return f"must be a finite number{', ' if limits else ''}{' and '.join(limits)}"
