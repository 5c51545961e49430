"""``skillpress judge-questions``: a model's ratings in a file that selects tasks."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from skillpress.cli.command import main
from skillpress.cli.evaluations import judging
from skillpress.environments.notebook_qa.ratings import RATING_COLUMNS
from tests.support.rollouts.chat_server import chat_server
from tests.support.rollouts.manners import message

NAMES = ("Silver Harbour", "The Glass Road", "Night Orchard", "Winter Ledger")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder with a test question and five training questions, one of which the rules drop."""
    folder = tmp_path / "qa"
    folder.mkdir()
    texts = [f"Where was the director of the film {name} born?" for name in NAMES]
    rows = [*texts, "Why is Ghent old?", "Who is the current mayor of Ghent?"]
    pl.DataFrame(
        {
            "id": [f"q{number}" for number in range(len(rows))],
            "dataset": ["hotpotqa"] * len(rows),
            "split": ["train", "train", "train", "test", "train", "train"],
            "question": rows,
            "answers": [["Ghent"]] * len(rows),
            "supporting_titles": [["Ghent", "Leith"]] * len(rows),
            "kind": ["bridge"] * len(rows),
        }
    ).write_parquet(folder / "questions.parquet")
    pl.DataFrame({"id": ["1"], "title": ["Ghent"], "text": ["A town."]}).write_parquet(
        folder / "paragraphs.parquet"
    )
    return folder


def judge(data: Path, model: str, output: Path, *options: str) -> int:
    overlay = str(Path(__file__).parents[4] / "params" / "notebook_qa.yaml")
    return main(
        ["judge-questions", "--model", model, "--params", overlay, "--output", str(output),
         "--set", f"environment.data={data}", *options]
    )  # fmt: skip


def ratings(prompt: str) -> str:
    question = prompt.rpartition("Question: ")[2]
    if "mayor" in question:
        return "Mayors change.\nStability: -1\nObjectivity: 1"
    return "One town.\nStability: 1\nObjectivity: 1" if "Silver" in question else "I cannot tell."


def test_a_server_is_asked_about_what_the_rules_keep_and_its_ratings_are_written(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "verdicts.parquet"
    with chat_server(answer=ratings) as (url, heard):
        assert judge(data, url, output) == 0
    assert pl.read_parquet(output).rows() == [
        ("hotpotqa", "q0", 1, 1), ("hotpotqa", "q1", None, None), ("hotpotqa", "q2", None, None),
        ("hotpotqa", "q5", -1, 1),
    ]  # fmt: skip
    assert pl.read_parquet(output).schema == RATING_COLUMNS
    assert len(heard.bodies) == 4 and all(body["temperature"] == 0 for body in heard.bodies)
    told = "1 rated 1 for both, 1 below, 2 without readable ratings (regular expressions will decide)"
    assert told in capsys.readouterr().out
    assert not list(tmp_path.glob("verdicts.parquet.unfinished/*")), "nothing unfinished is left"


def test_what_was_judged_before_an_interruption_is_not_asked_again(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "AT_A_TIME", 1)
    output = tmp_path / "verdicts.parquet"
    broken = (400, {}, {"error": {"message": "out of order"}})
    with chat_server(lambda number: broken if number > 3 else None, answer=ratings) as (url, _):
        assert judge(data, url, output) == 2 and not output.exists()
    with chat_server(answer=ratings) as (moved, heard):
        assert moved != url
        assert judge(data, moved, output) == 0
    assert len(heard.bodies) == 1 and pl.read_parquet(output).height == 4


def test_verdicts_that_were_cut_off_or_refused_are_said_with_what_to_do(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def manner(number: int, body: dict, good: dict) -> dict:
        return message(good, "length" if number == 1 else "content_filter", content="")

    with chat_server(manner=manner) as (url, heard):
        assert judge(data, url, tmp_path / "verdicts.parquet", "--max-new-tokens", "9") == 0
    assert {body["max_tokens"] for body in heard.bodies} == {9}
    told = capsys.readouterr().out
    assert "4 without readable ratings" in told
    assert "answers: of 4 answers 1 cut off at 9 tokens (raise --max-new-tokens); 3 refused by" in told


@pytest.mark.thorough  # the engine is the one of every language model; the judge's words are tested above
def test_a_language_model_on_this_machine_judges_through_the_engine(data: Path, tmp_path: Path) -> None:
    output = tmp_path / "verdicts.parquet"
    assert judge(data, "smollm2-135m", output) == 0
    assert pl.read_parquet(output)["id"].to_list() == ["q0", "q1", "q2", "q5"]
