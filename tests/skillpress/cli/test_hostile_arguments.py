"""For any words or files, a command ends with a clear message and exit code 2, never with a traceback."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from docs.build.command_line import MODULES, options, parser_of
from skillpress.cli.command import COMMANDS, main
from skillpress.core import arguments
from skillpress.pipeline import exit_codes

FILES: dict[str, Callable[[Path], object]] = {
    "missing": lambda path: None,
    "a folder": lambda path: path.mkdir(),
    "empty": lambda path: path.write_bytes(b""),
    "no text": lambda path: path.write_bytes(b"\x00\xff\xfe\x80PAR1"),
    "in another encoding": lambda path: path.write_bytes("größe: 3\n".encode("latin-1")),
    "a list": lambda path: path.write_text("[1, 2]\n"),
    "nested too deeply": lambda path: path.write_text("[" * 100_000),
    "a tab": lambda path: path.write_text("a:\n\tb: 1\n"),
    "a key twice": lambda path: path.write_text("seed: 1\nseed: 2\n"),
    "a foreign Parquet": lambda path: pl.DataFrame({"mine": [1]}).write_parquet(path),
    "a Parquet cut off": lambda path: path.write_bytes(b"PAR1\x00\x01\x02"),
    "a link to nowhere": lambda path: path.symlink_to("nowhere/at/all"),
    "a name of no file": lambda path: None,
}
"""Contents at the path that a command names."""

EVALUATE = ["evaluate", "--environment", "countdown", "--output", "out"]
REVERSE = ["reverse-parse", "--environment", "countdown", "--output", "out", "--untold"]
NAMING = {
    "run --params": ["run", "--dry-run", "--params", "FILE"],
    "evaluate --params": [*EVALUATE, "--agent", "explorer", "--params", "FILE"],
    "evaluate --model": [*EVALUATE, "--agent", "language", "--model", "FILE"],
    "compare": ["compare", "FILE", "FILE", "--output", "out"],
    "trajectory-ratio": ["trajectory-ratio", "FILE", "a", "b", "--output", "out"],
    "judge-questions --params": ["judge-questions", "--model", "m", "--output", "out", "--params", "FILE"],
    "judge-questions --model": ["judge-questions", "--model", "FILE", "--output", "out"],
    "judge-answers": ["judge-answers", "FILE", "--model", "m"],
    "judge-answers --params": ["judge-answers", "out", "--model", "m", "--params", "FILE"],
    "reverse-parse --model": [*REVERSE, "--model", "FILE"],
    "reverse-parse --rollouts": [*REVERSE, "--model", "MODEL", "--tasks-file", "FILE", "--rollouts", "FILE"],
    "choice": ["choice", "FILE"],
    "view": ["view", "FILE", "--no-browser"],
    "view --tokenizer": ["view", "ROLLOUTS", "--no-browser", "--tokenizer", "FILE"],
    "tables": ["tables", "FILE", "--out", "out"],
    "runs": ["runs", "FILE"],
    "serve --params": ["serve", "--environment", "countdown", "--params", "FILE"],
    "export": ["export", "--format", "atif", "FILE", "--output", "out"],
    "export --tokenizer": [
        "export",
        "--format",
        "atif",
        "ROLLOUTS",
        "--output",
        "out",
        "--tokenizer",
        "FILE",
    ],
    "skills": ["skills", "FILE", "--output", "out"],
    "skills --rules": ["skills", "ROLLOUTS", "--output", "out", "--rules", "FILE"],
    "skills --compare": ["skills", "ROLLOUTS", "--output", "out", "--compare", "FILE"],
}
"""Commands that take a file."""

PLACES = (arguments.output_folder, arguments.output_file, arguments.output_place)
"""Types of the module that are paths, not numbers."""
NUMBERS = ["-1", "nan", "inf", "-inf", "1e400", "", "seven", "9" * 5000, "0x10", "-1e-3"]
PARSERS = {f"skillpress {name}": command.module for name, command in COMMANDS.items()} | MODULES
"""Every command line, to the module that reads it."""
SETTINGS = [
    ("seed", "-1"), ("seed", str(2**70)), ("tasks.test", "0"), ("tasks.test", str(10**30)), ("tasks", "3"),
    ("tasks.tset", "3"), ("environment.max_steps", "1e3"), ("environment.max_steps", ".nan"),
    ("environment.name", "[countdown]"), ("environment", "null"), ("environment.name", "countdwon"),
    ("policy.parser", "{a: 1}"), ("engine.name", "locl"), ("evaluation.temperature", ".inf"),
    ("evaluation.temperature", "-1e-3"), ("evaluation.top_p", "1.5"), ("a.b.c", "1"), ("..", "1"),
    ("sampling.slots", "{a: 1, a: 2}"), ("sampling.slots", "[1"), ("sampling.slots", "\t1\n\t2"),
    ("seed", "!!python/object:os.system x"), ("reward.measures", "{x: {weight: 1.0, credit: step}}"),
]  # fmt: skip
"""Values for ``--set KEY=VALUE``."""


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Iterator[Callable[[list[str]], str]]:
    """``refused(words)``: the output of a command that ends with the code of a mistake."""
    monkeypatch.chdir(tmp_path)

    def run(words: list[str]) -> str:
        capsys.readouterr()
        assert main(words) == exit_codes.USER_ERROR
        said = capsys.readouterr().err
        assert said.strip() and "Traceback" not in said and len(said) < 4000
        return said

    yield run
    assert not (tmp_path / "out").is_file()


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("command", NAMING)
def test_a_file_that_is_none_of_the_kind_is_named(
    command: str, kind: str, refused: Callable[[list[str]], str], explored: Path, policy: str
) -> None:
    name = "n" * 300 if kind == "a name of no file" else "named"
    FILES[kind](Path(name))
    meant = {"FILE": name, "ROLLOUTS": str(explored / "rollouts.parquet"), "MODEL": policy}
    said = refused([meant.get(word, word) for word in NAMING[command]])
    assert name[:40] in said, "the file is named"
    assert "delete" not in said


@pytest.mark.parametrize("command", PARSERS)
def test_a_number_out_of_range_names_its_range(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """This tests only the parser: with a number in range the command would begin to work."""
    parser = parser_of(PARSERS[command])
    for action in options(parser):
        if getattr(action.type, "__module__", "") != arguments.__name__ or action.type in PLACES:
            continue
        for number in NUMBERS:
            option = action.option_strings[-1]
            with pytest.raises(SystemExit) as ended:
                parser.parse_args([f"{option}={number}"])
            assert ended.value.code == exit_codes.USER_ERROR
            said = capsys.readouterr().err
            assert f"argument {option}: " in said and "; must be " in said and len(said) < 4000, number


@pytest.mark.parametrize("command", COMMANDS)
def test_a_misspelt_option_and_a_missing_one_are_refused(
    command: str, refused: Callable[[list[str]], str]
) -> None:
    assert command in refused([command, "--hlep"])


@pytest.mark.parametrize(("key", "value"), SETTINGS)
def test_a_setting_that_cannot_be_is_refused_with_its_key(
    key: str, value: str, refused: Callable[[list[str]], str]
) -> None:
    said = refused([*EVALUATE, "--agent", "explorer", "--tasks", "1", "--set", f"{key}={value}"])
    assert key.split(".")[0] in said
