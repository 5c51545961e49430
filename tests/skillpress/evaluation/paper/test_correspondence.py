"""Table 11 on a run: the paper's phrases in its dictionary and in its skill library, by hand."""

from __future__ import annotations

from skillpress.evaluation.paper.alfworld.tables import NAMED_SKILLS
from skillpress.evaluation.paper.correspondence import correspondences
from skillpress.reports.report.tables import correspondence_table, library_table
from skillpress.skills.library.library import GENERAL, Skill, SkillLibrary, Version

SHORT, TAKE, LONG = ("Transport", "Deliver"), ("Take", "Take"), ("Explore", "Take", "Transport", "Deliver")
DICTIONARY = {SHORT: 5, TAKE: 9, LONG: 5}
OWN = Skill("transport, then deliver", GENERAL, uses=5, phrase=SHORT, why="w", failures=("train/5/a/0",))
OTHER = Skill("carry it, then place it", "pick_two", uses=3, phrase=SHORT)
TAUGHT = Skill("Search every receptacle when the target is unknown.", GENERAL, why="written by the teacher")
LIBRARY = SkillLibrary(
    (
        Version(step=5, failures=("train/5/a/0", "train/5/b/0"), added=(OWN,)),
        Version(step=10, failures=("train/10/a/1",), added=(OTHER, TAUGHT)),
    )
)


def test_the_five_pairs_are_the_papers() -> None:
    assert len(NAMED_SKILLS) == 5
    assert NAMED_SKILLS[SHORT].startswith("Carry-and-place")


def test_a_phrase_is_looked_up_in_both_libraries() -> None:
    found = {pair.phrase: pair for pair in correspondences(NAMED_SKILLS, DICTIONARY, LIBRARY)}
    short = found[SHORT]
    # By uses: Take Take 9, then two phrases of 5 uses in the order of their skills, Explore before Transport.
    assert (short.uses, short.rank, short.step, short.classes) == (5, 3, 5, ("general", "pick_two"))
    long = found[LONG]
    assert (long.uses, long.rank, long.step, long.classes) == (5, 2, None, ())
    absent = found[("Transport", "Transform")]
    assert (absent.uses, absent.rank, absent.step) == (0, None, None)


def test_a_teachers_skill_is_named_with_the_words_that_it_has_in_common() -> None:
    found = {pair.phrase: pair for pair in correspondences(NAMED_SKILLS, DICTIONARY, LIBRARY)}
    searching = found[("Explore",) * 4]
    # The teacher's: search every receptacle when target unknown; the paper's: systematic search routine over
    # candidate receptacles when target location unknown. In common search, when, target, unknown of 12 words.
    assert searching.closest.startswith("Search every receptacle") and searching.overlap == 4 / 12


def test_a_run_without_a_library_or_without_a_dictionary_says_so() -> None:
    pairs = correspondences(NAMED_SKILLS, None, SkillLibrary())
    assert all((pair.uses, pair.rank, pair.step, pair.closest) == (None, None, None, "") for pair in pairs)
    rows = correspondence_table(pairs, SkillLibrary()).rows
    assert [value.text for value in rows[0].values[:2]] == ["no dictionary", "no library"]
    assert correspondences({}, DICTIONARY, LIBRARY) == []


def test_the_tables_say_where_each_skill_came_from_and_what_was_found() -> None:
    first, _, taught = library_table(LIBRARY).rows
    assert (first.label, first.note) == ("transport, then deliver", "Transport → Deliver")
    assert [value.text for value in first.values] == ["5", "every task", "5", "1", "w"]
    assert [value.text for value in taught.values] == ["10", "every task", "–", "0", "written by the teacher"]
    table = correspondence_table(correspondences(NAMED_SKILLS, DICTIONARY, LIBRARY), LIBRARY)
    row = next(row for row in table.rows if row.label == "Transport → Deliver")
    assert [value.text for value in row.values[:2]] == ["5×", "since step 5"]
    assert (row.values[0].note, row.values[1].note) == ("place 3 by uses", "general, pick_two")
    absent = next(row for row in table.rows if row.label == "Transport → Transform")
    assert [value.text for value in absent.values[:2]] == ["no", "no"]
