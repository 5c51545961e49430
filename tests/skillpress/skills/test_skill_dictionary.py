"""A dictionary knows its cost, survives its file, and refuses invalid input."""

from __future__ import annotations

import json
from math import log2

import pytest

from skillpress.core.errors import ParamsError, StorageError
from skillpress.skills.dictionary import SkillDictionary, load_dictionary, save_dictionary
from skillpress.skills.fit import fit

ALPHABET = ("Explore", "Take", "Transport", "Deliver")
CORPUS = [("Explore", "Take", "Transport", "Deliver")] * 50 + [("Take",)]


def test_bits_and_counts_follow_from_the_segmentation_of_the_corpus():
    """Greedy adds ET, ETT', ETT'D: 4 + 9 skills, 7 phrases, 50 whole sequences and one Take."""
    dictionary = fit(CORPUS, ALPHABET, 4)
    assert [len(phrase) for phrase in dictionary.phrases] == [1, 1, 1, 1, 2, 3, 4]
    assert dictionary.counts == (0, 1, 0, 0, 0, 0, 50)
    assert dictionary.dictionary_bits == pytest.approx(13 * log2(4) + 7 * log2(4))
    assert dictionary.data_bits == pytest.approx(51 * log2(7))
    assert dictionary.description_length == pytest.approx((40 + 51 * log2(7)) / 51)
    assert dictionary.learned == dictionary.phrases[4:]


def test_a_sequence_is_segmented_by_name():
    dictionary = fit(CORPUS, ALPHABET, 4)
    assert dictionary.segment(("Take", *ALPHABET)) == [("Take",), ALPHABET]
    assert dictionary.cost(("Take", *ALPHABET)) == 2
    assert dictionary.cost(()) == 0
    with pytest.raises(ValueError, match="'Dance'"):
        dictionary.cost(("Dance",))


def test_saved_and_loaded_it_is_the_same(tmp_path):
    dictionary = fit(CORPUS, ALPHABET, 4, seed=3)
    save_dictionary(tmp_path / "dictionary.json", dictionary)
    assert load_dictionary(tmp_path / "dictionary.json") == dictionary


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "skillpress.dictionary/0"}, "this version reads"),
        ({"sequences": 50}, "bits do not follow"),
        ({"phrases": []}, "damaged"),
        ({"max_phrase_length": None}, "damaged"),
        ({"alphabet": ["Explore", "Explore"]}, "damaged"),
    ],
)
def test_a_file_of_another_schema_or_a_damaged_one_is_refused(tmp_path, change, message):
    path = tmp_path / "dictionary.json"
    save_dictionary(path, fit(CORPUS, ALPHABET, 4))
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(StorageError, match=message):
        load_dictionary(path)


def test_a_truncated_file_is_refused(tmp_path):
    path = tmp_path / "dictionary.json"
    save_dictionary(path, fit(CORPUS, ALPHABET, 4))
    path.write_text(path.read_text()[:100])
    with pytest.raises(StorageError, match="not valid JSON"):
        load_dictionary(path)


def test_fit_refuses_what_it_cannot_fit():
    with pytest.raises(ValueError, match="corpus is empty"):
        fit([], ALPHABET, 4)
    with pytest.raises(ValueError, match="'Dance' is not in the alphabet"):
        fit([("Dance",)], ALPHABET, 4)
    with pytest.raises(ValueError, match="alphabet is empty"):
        fit([("Take",)], (), 4)
    with pytest.raises(ValueError, match="names a skill twice"):
        fit([("Take",)], ("Take", "Take"), 4)
    with pytest.raises(ValueError, match="at least 1"):
        fit([("Take",)], ALPHABET, 0)
    with pytest.raises(ParamsError, match=r"skills\.search: is 'magic'; allowed: greedy"):
        fit(CORPUS, ALPHABET, 4, search="magic")


def test_a_dictionary_without_its_singletons_is_refused():
    with pytest.raises(ValueError, match="singletons"):
        SkillDictionary(("A", "B"), 2, (("A",), ("A", "B")), (0, 1), 1, "greedy", 0)
