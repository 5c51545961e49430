"""The store of an episode: what it finds, and that no episode and no branch sees another's entries."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from skillpress.core.errors import ParamsError
from skillpress.rollouts.agents.store.database import Entry, EntryKind, EpisodeStore
from skillpress.rollouts.agents.store.embeddings import DIMENSIONS, HashedNgrams, embedding_of
from skillpress.rollouts.agents.store.parameters import StoreParameters

EMBED = HashedNgrams()
ENDLESS = 1000


def entry(step: int, words: str, kind: EntryKind = "turn", name: str = "") -> Entry:
    vector = EMBED(words).tobytes()
    return Entry(step=step, kind=kind, name=name or str(step), words=words, vector=vector)


def found(store: EpisodeStore, query: str, most: int, last: int = ENDLESS) -> list[str]:
    return [each.words for each in store.nearest(EMBED(query), most, last)]


SIGNS = ["the red door: amber", "a green table", "the blue door: cedar", "an empty kitchen"]
STORE = EpisodeStore([entry(step, words) for step, words in enumerate(SIGNS, 1)])


def test_the_nearest_entries_are_those_of_a_dot_product_oldest_first() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(300, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rows = [
        Entry(step=step, kind="turn", name=str(step), words=str(step), vector=vector.tobytes())
        for step, vector in enumerate(vectors)
    ]
    store = EpisodeStore(rows)
    for query in vectors[::60]:
        expected = sorted(np.argsort(-(vectors @ query))[:5].tolist())
        assert [each.step for each in store.nearest(query, 5, ENDLESS)] == expected


def test_entries_that_share_words_with_the_observation_are_near() -> None:
    assert found(STORE, "a red door stands here", 1) == ["the red door: amber"]
    assert found(STORE, "the blue door asks", 2) == ["the red door: amber", "the blue door: cedar"]
    assert found(STORE, "a kitchen", 9) == SIGNS


def test_turns_that_the_prompt_shows_anyway_are_not_found() -> None:
    assert found(STORE, "the blue door", 1, last=2) == ["the red door: amber"]
    assert found(EpisodeStore([entry(9, "the code is 7", "fact", "code")]), "code", 1, last=2)


def test_of_equally_near_entries_the_newest_are_found() -> None:
    same = EpisodeStore([entry(step, "wait") for step in range(1, 6)])
    assert [each.step for each in same.nearest(EMBED("wait"), 2, ENDLESS)] == [4, 5]
    assert [each.step for each in STORE.nearest(EMBED(""), 2, ENDLESS)] == [3, 4]


def test_an_entry_replaces_the_one_of_its_kind_and_name() -> None:
    store = EpisodeStore([entry(1, "key: upstairs", "fact", "key"), entry(1, "a key")])
    later = store.with_entries([entry(2, "key: in my hand", "fact", "key")])
    assert found(later, "key", 9) == ["a key", "key: in my hand"]
    assert later.newest("fact", "key") == "key: in my hand" and store.newest("fact", "key") == "key: upstairs"
    assert found(store, "key", 9) == ["key: upstairs", "a key"], "the shorter store is as it was"


def test_two_continuations_of_one_store_do_not_see_each_other() -> None:
    left, right = (STORE.with_entries([entry(5, words)]) for words in ("left", "right"))
    further = left.with_entries([entry(6, "further left")])
    assert len(STORE) == 4 and found(STORE, "left right", 9) == SIGNS
    assert found(left, "left", 9) == [*SIGNS, "left"] and found(right, "left", 9) == [*SIGNS, "right"]
    assert found(further, "left", 2) == ["left", "further left"]


def test_a_store_that_was_pickled_is_equal_and_finds_the_same() -> None:
    copy = pickle.loads(pickle.dumps(STORE))
    assert copy == STORE and found(copy, "the blue door", 2) == found(STORE, "the blue door", 2)
    assert copy.with_entries([entry(5, "more")]) != STORE and len(STORE) == 4


def test_hashed_ngrams_are_unit_vectors_of_pieces_of_words() -> None:
    red, same, other = EMBED("the red door"), EMBED("The  RED door"), EMBED("quick fox")
    assert red.shape == (DIMENSIONS,) and np.linalg.norm(red) == pytest.approx(1)
    assert np.array_equal(red, same) and float(red @ other) < 0.2 < float(red @ EMBED("red doors"))
    assert not EMBED("").any()


def test_a_missing_model_folder_is_named() -> None:
    section = StoreParameters(shown=1, length=9, embedding="models/nowhere")
    with pytest.raises(
        ParamsError, match=r"policy\.store\.embedding: 'models/nowhere' is not an existing folder"
    ):
        embedding_of(section)
