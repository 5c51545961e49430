"""The public data sets become the environment's tables. Each small file has its set's published form."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from skillpress.environments.notebook_qa.public_data import READERS, main
from skillpress.experiment.params import load_params

ROOT = Path(__file__).parents[4]
ROWS = [["Ann", ["Ann was born in Ulm. ", "She wrote."]], ["Ulm", ["Ulm is a town."]]]
FACTS = [["Ann", 0], ["Ulm", 0]]
TWO_HOPS = {"question": "Where is Ann's town?", "answer": "Swabia"}
TRIVIA = {
    "value": "Ulm",
    "aliases": ["Ulm", "Ulm an der Donau"],
    "normalized_value": "ulm",
    "type": "WikipediaEntity",
}
MUSIQUE = {
    "id": "2hop__1_2",
    "question": "Where?",
    "answer": "Swabia",
    "answer_aliases": ["Suebia"],
    "answerable": True,
    "question_decomposition": [],
    "paragraphs": [
        {"idx": 0, "title": "Ann", "paragraph_text": "Ann was born in Ulm.", "is_supporting": True},
        {"idx": 1, "title": "Bob", "paragraph_text": "Bob was not.", "is_supporting": False},
    ],
}
FILES: dict[str, tuple[str, Any]] = {
    "hotpotqa released": (
        "json",
        [
            {
                "_id": "5a",
                **TWO_HOPS,
                "supporting_facts": FACTS,
                "context": ROWS,
                "type": "bridge",
                "level": "hard",
            }
        ],
    ),
    "hotpotqa hub": (
        "parquet",
        [
            {
                "id": "5a",
                **TWO_HOPS,
                "type": "bridge",
                "level": "hard",
                "supporting_facts": {"title": ["Ann", "Ulm"], "sent_id": [0, 0]},
                "context": {"title": ["Ann", "Ulm"], "sentences": [ROWS[0][1], ROWS[1][1]]},
            }
        ],
    ),
    "2wikimultihopqa released": (
        "json",
        [
            {
                "_id": "9b",
                **TWO_HOPS,
                "type": "compositional",
                "supporting_facts": FACTS,
                "context": ROWS,
                "evidences": [],
            }
        ],
    ),
    "2wikimultihopqa hub": (
        "parquet",
        [
            {
                "_id": "9b",
                **TWO_HOPS,
                "type": "compositional",
                "supporting_facts": json.dumps(FACTS),
                "context": json.dumps(ROWS),
                "evidences": "[]",
            }
        ],
    ),
    "musique released": ("jsonl", [MUSIQUE, {**MUSIQUE, "id": "2hop__3_4", "answerable": False}]),
    "triviaqa released": (
        "json",
        {
            "Data": [
                {
                    "Question": "Which town?",
                    "QuestionId": "tc_2",
                    "Answer": {"Value": "Ulm", "Aliases": TRIVIA["aliases"]},
                }
            ],
            "Domain": "Web",
        },
    ),
    "triviaqa hub": (
        "parquet",
        [
            {
                "question": "Which town?",
                "question_id": "tc_2",
                "answer": TRIVIA,
                "search_results": {"title": []},
            }
        ],
    ),
    "nq_open released": ("jsonl", [{"question": "which town", "answer": ["Ulm", "Ulm"]}]),
    "nq_open hub": ("parquet", [{"question": "which town", "answer": ["Ulm"]}]),
    "simpleqa released": ("csv", [{"metadata": "{}", "problem": "Which town, and when?", "answer": "Ulm"}]),
    "bamboogle released": ("csv", [{"Question": "Which town?", "Answer": "Ulm"}]),
}


def written(folder: Path, name: str) -> Path:
    """The file of this name in its form."""
    ending, content = FILES[name]
    file = folder / f"{name.replace(' ', '_')}.{ending}"
    if ending == "parquet":
        pl.DataFrame(content).write_parquet(file)
    elif ending == "csv":
        with file.open("w", newline="") as lines:
            rows = csv.DictWriter(lines, list(content[0]))
            rows.writeheader()
            rows.writerows(content)
    else:
        lined = "\n".join(map(json.dumps, content)) if ending == "jsonl" else json.dumps(content)
        file.write_text(lined)
    return file


def tables(folder: Path) -> tuple[list[dict[str, Any]], list[tuple[str, str]]]:
    questions = pl.read_parquet(folder / "questions.parquet").to_dicts()
    return questions, pl.read_parquet(folder / "paragraphs.parquet").select("title", "text").rows()


def test_every_data_set_that_can_be_read_is_tried() -> None:
    assert {name.split()[0] for name in FILES} == set(READERS)


@pytest.mark.parametrize("name", FILES)
def test_each_published_form_gives_a_question_with_its_aliases_facts_and_paragraphs(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = name.split()[0]
    main([str(tmp_path / "made"), f"{dataset}:dev={written(tmp_path, name)}"])
    (question,), paragraphs = tables(tmp_path / "made")
    assert question["dataset"] == dataset and question["split"] == "dev" and question["question"]
    several = {"musique": ["Swabia", "Suebia"], "triviaqa": ["Ulm", "Ulm an der Donau"]}
    town = ["Swabia"] if "hop" in dataset or dataset == "hotpotqa" else ["Ulm"]
    assert question["answers"] == several.get(dataset, town)
    assert question["kind"] == {"musique": "2hop", "2wikimultihopqa": "compositional"}.get(dataset)
    facts = {"musique": ["Ann"], "hotpotqa": ["Ann", "Ulm"], "2wikimultihopqa": ["Ann", "Ulm"]}.get(
        dataset, []
    )
    assert question["supporting_titles"] == facts
    if dataset in ("hotpotqa", "2wikimultihopqa"):
        assert paragraphs == [("Ann", "Ann was born in Ulm. She wrote."), ("Ulm", "Ulm is a town.")]
    told = capsys.readouterr().out
    assert f"{dataset} dev: 1" in told and ("without an answer: 1" in told) == (dataset == "musique")


def test_several_files_become_tables_that_an_experiment_reads(tmp_path: Path) -> None:
    names = {"hotpotqa released": "train", "2wikimultihopqa released": "train", "bamboogle released": "test"}
    sources = [f"{name.split()[0]}:{split}={written(tmp_path, name)}" for name, split in names.items()]
    main([str(tmp_path / "made"), *sources, sources[0]])
    questions, paragraphs = tables(tmp_path / "made")
    assert len(questions) == 3 and len(paragraphs) == 2, "ids and paragraphs that came before are there once"
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text(
        f"environment: {{data: '{tmp_path / 'made'}', train_on: [hotpotqa], test_on: [bamboogle]}}\n"
        "tasks: {train: 1, validation: 0, test: 1}\n"
    )
    params = load_params(ROOT / "params.yaml", ROOT / "params" / "paper_notebook_qa.yaml", overlay)
    tasks = list(params.environment.make_tasks(params.tasks, 0))
    assert [task.spec["dataset"] for task in tasks] == ["hotpotqa", "bamboogle"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("squad:train=x.json", "squad:train=x.json: must be DATASET:SPLIT=FILE with one of hotpotqa, "),
        ("musique=x.json", "must be DATASET:SPLIT=FILE"),
        ("musique:test=missing.jsonl", "missing.jsonl: cannot be read: "),
        ("musique:test=other.txt", "other.txt: not a .json, .jsonl, .csv or .parquet file"),
        ("musique:test=broken.jsonl", "broken.jsonl: cannot be read: "),
        (
            "musique:test=trivia.jsonl",
            "trivia.jsonl: row 0 is not a question of musique in its published form",
        ),
        ("musique:test=empty.jsonl", "empty.jsonl: no question has an answer"),
    ],
)
def test_what_cannot_be_converted_is_said_and_nothing_is_written(
    given: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "other.txt": "",
        "broken.jsonl": "{",
        "trivia.jsonl": '{"question": "?"}',
        "empty.jsonl": "",
    }.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(SystemExit, match="2"):
        main(["made", given])
    assert said in capsys.readouterr().err and not (tmp_path / "made").exists()


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([str(tmp_path), "musique:test=x.jsonl"])
    assert "exists already; name a new folder" in capsys.readouterr().err
