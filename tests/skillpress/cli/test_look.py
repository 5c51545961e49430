"""``skillpress skills --look`` and ``skillpress rules``, and what they refuse to draw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from skillpress.cli.command import main
from skillpress.core.rollout_files import write_rollouts
from skillpress.pipeline import exit_codes
from skillpress.skills.dictionary import load_dictionary
from tests.support.integrations.prose import CALLS_IN_TEXT, PROSE
from tests.support.integrations.trace_records import atif, chat


def lines(path: Path, *records: Any) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def said(*texts: str) -> dict[str, Any]:
    return {"messages": [{"role": "assistant", "content": text} for text in texts]}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory; a test that must write nothing finds only its own files there."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_look_tells_everything_and_writes_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines(folder / "log.jsonl", chat(), atif(), {"other": "\x1b[31m"}, chat(solved=False))
    assert main(["skills", "--look", "log.jsonl", "--success", "solved"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[:4] == [
        "format    chat completions: 2 traces",
        "format    ATIF: 1 trace",
        "files     1",
        "steps     12 steps: 9 call a tool, 3 are words",
    ]
    assert "outcomes  solved: 1 won, 1 lost, 1 unknown" in told
    whole = "\n".join(told)
    for line in (
        "1 runs of sub-agents",
        "1 steps of copied context",
        "1 bad line",
        "line 3: not a known format",
    ):
        assert line in whole
    begun = told.index("the first trace: run-1 gcd (success, 4 steps)")
    assert told[begun + 1].split() == ["1", "search", "search:", "gcd"]
    assert told[begun + 4].split() == ["4", "-", "It", "is", "mended."]
    assert "more bad lines than --most-bad 0.1 allows" in whole, "one of four is too many to draw"
    assert [path.name for path in folder.iterdir()] == ["log.jsonl"]


STRANGE = PROSE | {
    "tags": [
        "Let me see.<run=ls>/src</run>",
        "<run=cat>/src/a.py</run>",
        "<run=edit>/src/a.py 3 x = 1</run>",
    ],
    "fences": CALLS_IN_TEXT["fenced blocks of its own"],
    "JSON": ['{"verdict": "north"}', '{"verdict": "lamp"}', '{"verdict": "door"}'],
    "one word": ["player go desk 1", "player take pen 2", "player go shelf 1"],
}
"""Turns that no reader understands."""


WHY = ("read like prose", "in an unknown form", "begin with a tag or with JSON", "distinguishes no steps")


@pytest.mark.parametrize("turns", STRANGE.values(), ids=STRANGE)
def test_a_strangers_log_that_is_not_understood_is_never_drawn(
    turns: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(folder / "log.jsonl", *[said(*turns)] * 20)
    for command in (["skills", "log.jsonl"], ["rules", "log.jsonl", "--output", "rules.yaml"]):
        assert main(command) == exit_codes.USER_ERROR
        told = capsys.readouterr()
        assert any(why in told.err for why in WHY) and told.out == ""
        assert "--look" in told.err and (command[0] == "rules" or "--call PATTERN" in told.err)
    assert [path.name for path in folder.iterdir()] == ["log.jsonl"]
    assert main(["skills", "--look", "log.jsonl"]) == 0
    assert "skillpress skills stops here" in capsys.readouterr().out


def test_the_options_read_what_was_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines(folder / "log.jsonl", *[said(*STRANGE["tags"])] * 20)
    pattern = r"<run=(?P<tool>\w+)>(?P<arguments>.*?)</run>"
    assert main(["skills", "log.jsonl", "--call", pattern, "--output", "a"]) == 0
    assert load_dictionary(folder / "a" / "dictionary.json").learned == (("ls", "cat", "edit"),)
    (folder / "rules.yaml").write_text(
        "rules:\n  - {finds: 'run=ls', skill: Look}\n  - {finds: ., skill: Act}\n"
    )
    assert main(["skills", "log.jsonl", "--rules", "rules.yaml", "--output", "b"]) == 0
    lines(folder / "prose.jsonl", *[said(*PROSE["a tutor"])] * 20)
    capsys.readouterr()
    assert main(["skills", "prose.jsonl", "--words", "first", "--output", "c"]) == 0
    assert "--words first was given all the same" in capsys.readouterr().err
    assert "read like prose" in (folder / "c" / "skills.html").read_text(encoding="utf-8"), (
        "the page says so too"
    )
    assert main(["skills", "prose.jsonl", "--words", "none", "--output", "d"]) == exit_codes.USER_ERROR
    assert not (folder / "d").exists()


def test_commands_of_a_text_environment_need_no_option(folder: Path, episode: Any) -> None:
    actions = ["go to desk 1", "take pen 2 from desk 1", "go to shelf 1", "put pen 2 in/on shelf 1"]
    write_rollouts(folder / "r.parquet", [episode(f"t{n}", 0, actions, n % 2 == 0) for n in range(20)])
    lines(folder / "log.jsonl", *[said(*actions)] * 20)
    for log in ("r.parquet", "log.jsonl"):
        assert main(["skills", log, "--output", "out"]) == 0
        assert load_dictionary(folder / "out" / "dictionary.json").alphabet == ("go", "put", "take")
    prose = [episode(f"t{n}", 0, PROSE["a tutor"], n % 2 == 0) for n in range(20)]
    write_rollouts(folder / "p.parquet", prose)
    assert main(["skills", "p.parquet", "--output", "out"]) == 0, "what a rollout file holds is an action"


def test_few_calls_among_words_are_no_reason_to_stop_but_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(folder / "log.jsonl", chat(), *[said(*PROSE["a tutor"])] * 20)
    assert main(["skills", "log.jsonl", "--output", "out"]) == 0
    assert "only 3 of 124 steps call a tool; the others are words" in capsys.readouterr().err


def test_a_success_that_no_trace_has_falls_back_on_what_the_log_keeps(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(folder / "log.jsonl", *[chat(solved=None, resolved=number % 2 == 0) for number in range(20)])
    assert main(["skills", "log.jsonl", "--success", "slved", "--output", "out"]) == 0
    told = capsys.readouterr()
    assert "--success slved: none of 20 traces has it" in told.err
    assert "the outcomes are those that the log keeps in resolved" in told.err
    assert "outcomes: resolved: 10 won, 10 lost" in told.out
    page = (folder / "out" / "skills.html").read_text(encoding="utf-8")
    assert "none of 20 traces has it" in page and "resolved: 10 won, 10 lost" in page
    lines(folder / "log.jsonl", *[chat(solved=None, mended=number % 2 == 0) for number in range(20)])
    assert main(["skills", "log.jsonl", "--success", "mendde", "--output", "out"]) == exit_codes.USER_ERROR
    assert "--success mendde: none of 20 traces has it; the first has" in (told := capsys.readouterr().err)
    assert "did you mean 'mended'" in told


def test_scores_between_0_and_1_are_a_warning_on_console_and_page(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(folder / "log.jsonl", *[chat(solved=None, reward=number / 20) for number in range(20)])
    assert main(["skills", "log.jsonl", "--output", "out"]) == 0
    assert "--success 'reward>=NUMBER'" in capsys.readouterr().err
    assert "from 0 to 0.95" in (folder / "out" / "skills.html").read_text(encoding="utf-8")
    assert main(["skills", "log.jsonl", "--success", "reward>=0.5", "--output", "out"]) == 0
    assert "outcomes: reward: 10 won, 10 lost" in capsys.readouterr().out


def test_a_drafted_table_works_right_away_and_is_never_overwritten(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines(folder / "log.jsonl", *[chat()] * 20)
    assert main(["rules", "log.jsonl"]) == 0
    printed = capsys.readouterr().out
    assert main(["rules", "log.jsonl", "--output", "rules.yaml"]) == 0
    assert (folder / "rules.yaml").read_text(encoding="utf-8") == printed
    assert "60 of" not in printed and "It gives 75.0% of the steps a skill." in printed
    assert main(["skills", "log.jsonl", "--rules", "rules.yaml", "--output", "out"]) == 0
    assert set(load_dictionary(folder / "out" / "dictionary.json").alphabet) == {"search", "edit", "test"}
    assert main(["rules", "log.jsonl", "--output", "rules.yaml"]) == exit_codes.USER_ERROR
    assert "may have been edited" in capsys.readouterr().err


def test_rules_and_words_contradict_each_other(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines(folder / "log.jsonl", chat())
    assert main(["skills", "log.jsonl", "--rules", "alfworld", "--words", "first"]) == exit_codes.USER_ERROR
    assert "leave --words out" in capsys.readouterr().err
