"""The skills that a task shows: by hand, and the laws of every retrieval."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.interface import ScratchVocabulary
from skillpress.core.registry import RETRIEVALS, lookup
from skillpress.core.trajectory import Task
from skillpress.skills.library.advice import HEADING, SkillAdvice, with_advice_words
from skillpress.skills.library.library import GENERAL, Skill
from skillpress.skills.library.retrieval import FILLER, Query, Retrieval, by_task, words_of

COOL = [
    Skill("open fridge, then cool", "cool", uses=2, phrase=("Open", "Cool")),
    Skill("take, then cool", "cool", uses=9, phrase=("Take", "Cool")),
    Skill("find apple, then take", "cool", uses=1, phrase=("Find", "Take")),
]
HEAT = [Skill("take, then heat", "heat", uses=50, phrase=("Take", "Heat"))]
ALL = [
    Skill("look, then take", GENERAL, uses=5, phrase=("Look", "Take")),
    Skill("look, then look", GENERAL, uses=7, phrase=("Look", "Look")),
]
LIBRARY = [*COOL, *HEAT, *ALL]


def query(task_class: str, seen: str = "", seed: int = 0) -> Query:
    return Query(task_class, words_of(seen), seed)


def texts(top_k: int, name: str = "cool", seen: str = "") -> list[str]:
    return [skill.text for skill in by_task(LIBRARY, query(name, seen), top_k)]


def test_half_of_the_places_are_for_the_tasks_class_and_the_others_for_general_skills() -> None:
    assert texts(1) == ["take, then cool"]
    assert texts(2) == ["take, then cool", "look, then look"]
    assert texts(3) == ["take, then cool", "open fridge, then cool", "look, then look"]
    assert texts(4) == [*texts(3), "look, then take"]


def test_places_that_one_kind_leaves_empty_the_other_takes() -> None:
    assert texts(5) == [
        "take, then cool", "open fridge, then cool", "find apple, then take",
        "look, then look", "look, then take",
    ]  # fmt: skip
    assert texts(4, "heat") == ["take, then heat", "look, then look", "look, then take"]
    assert texts(2, "unheard of") == ["look, then look", "look, then take"]


def test_skills_whose_words_the_task_shows_come_before_those_that_are_used_more() -> None:
    # Of "find apple, then take" 1 word of 4 is seen, of "open fridge, then cool" too; that is used more.
    assert texts(1, seen="You see an Apple.") == ["find apple, then take"]
    assert texts(1, seen="A fridge and an apple.") == ["open fridge, then cool"]


def test_a_skill_that_became_general_is_shown_once() -> None:
    both = [COOL[0], Skill(COOL[0].text, GENERAL)]
    assert [skill.text for skill in by_task(both, query("cool"), 3)] == [COOL[0].text]


names = st.sampled_from(["", "a", "b"])
skills = st.lists(
    st.builds(
        Skill,
        text=st.text("kx yz", min_size=1, max_size=6).map(lambda text: f"{text}end"),
        task_class=names,
        uses=st.integers(0, 3),
        phrase=st.lists(st.sampled_from("PQR"), min_size=2, max_size=4).map(tuple),
    ),
    unique_by=lambda skill: skill.name,
    max_size=8,
)
queries = st.builds(Query, names, st.frozensets(st.sampled_from(["kend", "xend"])), st.integers(0, 9))


@pytest.mark.parametrize("name", RETRIEVALS)
@given(st.data())
def test_every_retrieval_shows_at_most_k_and_does_not_hang_on_the_librarys_order(
    name: str, data: st.DataObject
) -> None:
    retrieve: Retrieval = lookup(RETRIEVALS, name, "retrieval")
    library, asked, top_k = data.draw(skills), data.draw(queries), data.draw(st.integers(1, 5))
    found = retrieve(library, asked, top_k)
    assert len(found) <= top_k and found == retrieve(library, asked, top_k)
    assert found == retrieve(data.draw(st.permutations(library)), asked, top_k)
    assert len(found) == len(by_task(library, asked, top_k)), "controls show as many"
    if name == "by_task":
        assert {skill.task_class for skill in found} <= {asked.task_class, GENERAL}
    if name != "filler":
        assert set(found) <= set(library)


@given(skills, queries, st.integers(1, 5))
def test_filler_has_as_many_words_and_says_nothing(library: list[Skill], asked: Query, top_k: int) -> None:
    filler: Retrieval = lookup(RETRIEVALS, "filler", "retrieval")
    for blank, real in zip(filler(library, asked, top_k), by_task(library, asked, top_k), strict=True):
        assert Counter(blank.text.split()) == Counter({FILLER: len(real.text.split())})
        assert blank.phrase == (FILLER,) * len(real.phrase)


def test_random_draws_from_the_whole_library_by_its_seed() -> None:
    draw: Retrieval = lookup(RETRIEVALS, "random", "retrieval")
    drawn = Counter(skill for seed in range(60) for skill in draw(LIBRARY, query("heat", seed=seed), 3))
    assert set(drawn) == set(LIBRARY) and drawn.total() == 180


def advice(compact: bool, name: str = "by_task") -> SkillAdvice:
    retrieve: Retrieval = lookup(RETRIEVALS, name, "retrieval")
    return SkillAdvice(
        skills=lambda version: LIBRARY if version >= 5 else (),
        retrieve=retrieve, top_k=2, seed=0, compact=compact,
    )  # fmt: skip


TASK = Task("t", "kitchen", 0, {}, split="train", stratum="train/cool")


def test_advice_in_words_and_in_a_compact_prompts_own_words() -> None:
    assert advice(False)(TASK, "", 5) == f"{HEADING}\n- take, then cool\n- look, then look"
    assert advice(True)(TASK, "", 5) == "<skill> Take Cool <skill> Look Look"
    assert advice(True, "filler")(TASK, "", 5) == "<skill> <blank> <blank> <skill> <blank> <blank>"
    assert advice(False)(TASK, "", 4) == advice(True)(TASK, "", 4) == "", "before anything was learned"


@given(st.lists(st.sampled_from(["one", "Two", "Look", "a b"]), unique=True), st.integers(1, 4))
def test_a_vocabulary_with_advice_begins_as_it_was_and_has_each_word_once(own: list[str], top_k: int) -> None:
    before = ScratchVocabulary(words=tuple(own), stop_words=(), numbers={}, state_words=3)
    after = with_advice_words(before, ("Look", "Take", "look around"), top_k)
    assert after.words[: len(own)] == tuple(own) and len(set(after.words)) == len(after.words)
    assert set(after.words) == {*own, "<skill>", "<blank>", "Look", "Take", "look_around"}
    assert after.state_words == 3 + top_k * (1 + 16)
