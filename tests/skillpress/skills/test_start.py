"""What training begins with: the newest successes of the start policy, or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.experiment.params import load_params
from skillpress.skills.buffer import Success
from skillpress.skills.history import PhraseHistory
from skillpress.skills.parameters import SkillParameters
from skillpress.skills.start import load_start, write_start
from skillpress.skills.step_corpus import SuccessCorpus

ALPHABET = ("A", "B", "C")
SUCCESSES = [Success(("A", "B", "C"), f"t{number}") for number in range(12)]


def section(**changed: object) -> SkillParameters:
    skills = load_params(Path(__file__).parents[3] / "params.yaml").skills
    return skills.model_copy(update={"start": "rollouts", "buffer": 8, **changed})


def begun(path: Path, skills: SkillParameters) -> tuple[SuccessCorpus, PhraseHistory]:
    write_start(path / "start.json", skills, SUCCESSES, ALPHABET, 3)
    corpus, history = skills.make_corpus(3), PhraseHistory()
    load_start(path / "start.json", corpus, history)
    return corpus, history


def test_the_buffer_has_the_newest_successes_in_their_order_and_step_0_their_phrases(tmp_path: Path) -> None:
    corpus, history = begun(tmp_path, section())
    assert corpus.earlier == SUCCESSES[-8:]
    assert list(history.steps) == [0] and ("A", "B", "C") in history.steps[0]
    assert corpus(SUCCESSES[:2]).judged == [*SUCCESSES[-6:], *SUCCESSES[:2]], (
        "the first batch is judged with them"
    )


@pytest.mark.parametrize("changed", [{"start": "empty"}, {"buffer": 0}])
def test_without_rollouts_or_without_a_buffer_training_begins_with_nothing(
    changed: dict[str, object], tmp_path: Path
) -> None:
    corpus, history = begun(tmp_path, section(**changed))
    assert corpus.earlier == [] and history.steps == {}


def test_what_is_empty_has_the_same_bytes_whatever_the_start_policy_won(tmp_path: Path) -> None:
    for name, successes in (("all", SUCCESSES), ("none", [])):
        write_start(tmp_path / name, section(start="empty"), successes, ALPHABET, 3)
    assert (tmp_path / "all").read_bytes() == (tmp_path / "none").read_bytes()


def test_a_corpus_that_forgets_by_chance_has_forgotten_as_after_any_step(tmp_path: Path) -> None:
    decayed = section(corpus="decayed", buffer=0)
    expected = decayed.make_corpus(3)
    expected.push(SUCCESSES)
    corpus, _ = begun(tmp_path, decayed)
    assert corpus.state_dict() == expected.state_dict() and corpus.earlier


def test_each_class_of_tasks_has_its_own_phrases(tmp_path: Path) -> None:
    classes = [Success(("A", "B") * 2, f"a{n}", "one") for n in range(6)]
    classes += [Success(("B", "C") * 2, f"b{n}", "two") for n in range(6)]
    write_start(tmp_path / "start.json", section(dictionaries="per_class", buffer=12), classes, ALPHABET, 0)
    history, corpus = PhraseHistory(), section(buffer=12).make_corpus(0)
    load_start(tmp_path / "start.json", corpus, history)
    assert {success.dictionary for success in corpus.earlier} == {"one", "two"}
    learned = set(history.steps[0])
    assert any(phrase[:2] == ("A", "B") for phrase in learned)
    assert any(phrase[:2] == ("B", "C") for phrase in learned)


def test_a_file_that_does_not_fit_the_corpus_names_the_stage_that_makes_it(tmp_path: Path) -> None:
    write_start(tmp_path / "start.json", section(), SUCCESSES, ALPHABET, 3)
    with pytest.raises(
        StorageError, match=r"start\.json: damaged \(8 successes do not fit a buffer of 4\); run"
    ):
        load_start(tmp_path / "start.json", section(buffer=4).make_corpus(3), PhraseHistory())
