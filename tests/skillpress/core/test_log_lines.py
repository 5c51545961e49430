"""Messages beside results: which are shown, and that everything on stderr is one of them."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from skillpress.cli.command import main
from skillpress.core.log_lines import VARIABLE, set_up, without_options
from skillpress.pipeline import exit_codes
from tests.support.integrations.trace_records import chat

PRINTS = re.compile(r"file=sys\.stderr|sys\.stderr\.write|warnings\.warn\(")
ALLOWED = {
    "skillpress/core/log_lines.py": "the handler itself",
    "skillpress/core/redaction.py": "the tracebacks of a process that ends",
    "skillpress/rollouts/programs/forwarder.py": "runs inside isolation, where nothing of ours is imported",
    "skillpress/environments/harbor/inside.py": "likewise",
    "skillpress/cli/reading.py": "a command's counter on a terminal",
}


def told() -> None:
    logger = logging.getLogger("skillpress.some.module")
    logger.debug("step 3 of %d", 5)
    logger.info("waiting for MLflow")
    logger.warning("a token of hf_0123456789abcdefghij in \x1b[31mred")
    exit_codes.say("params.yaml: is missing")


@pytest.mark.parametrize(("level", "lines"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_a_level_shows_itself_and_what_is_worse_and_no_secret(
    level: str, lines: int, log_level: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    log_level(level)
    set_up()
    told()
    every = [
        "step 3 of 5", "waiting for MLflow", "a token of hf_*** in \\u001b[31mred", "params.yaml: is missing",
    ]  # fmt: skip
    assert capsys.readouterr().err.splitlines() == every[-lines:]


def test_quiet_leaves_results_and_errors_wherever_it_is_said(
    tmp_path: Path, log_level: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("".join(json.dumps(each) + "\n" for each in [*[chat()] * 40, {"other": 1}]))
    words = ["skills", str(log), "--output", str(tmp_path / "out")]
    log_level("info")
    assert main(words) == 0
    loud = capsys.readouterr()
    assert "1 bad line was passed over" in loud.err
    for quiet in (["--quiet", *words], [*words, "--quiet"]):
        assert main(quiet) == 0 and os.environ[VARIABLE] == "error"
        assert capsys.readouterr() == (loud.out, "")
    assert main([*words, "--most-bad", "0", "--quiet"]) == exit_codes.USER_ERROR
    assert "1 of 41 lines are not traces" in capsys.readouterr().err


def test_words_behind_two_dashes_are_another_programs(log_level: Callable[[str], None]) -> None:
    log_level("info")
    assert without_options(["x", "--verbose", "--", "--quiet"]) == ["x", "--", "--quiet"]
    assert os.environ[VARIABLE] == "debug"


def test_a_wrong_level_is_refused_with_the_right_ones(
    log_level: Callable[[str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    log_level("loud")
    assert main(["doctor"]) == exit_codes.USER_ERROR
    assert capsys.readouterr().err == (
        "doctor: SKILLPRESS_LOG: is 'loud', must be one of debug, info, warning, error\n"
    )


def test_only_command_files_and_the_handler_write_to_stderr(repository: Path) -> None:
    folders = ("skillpress", "tasks", "flows", "studies")
    files = {
        str(path.relative_to(repository)): path.read_text()
        for folder in folders
        for path in (repository / folder).rglob("*.py")
    }
    assert {name for name, text in files.items() if PRINTS.search(text)} == ALLOWED.keys()
