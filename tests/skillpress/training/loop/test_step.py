"""The penalties of a training step, and a step with nothing to learn from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.registry import SHAPINGS
from skillpress.core.trajectory import Credit, RewardPart, Step, Summary, Task, Trajectory, WeightSpan
from skillpress.environments.countdown.skills import CountdownProjection
from skillpress.experiment.params import load_params
from skillpress.rollouts.agents.parameters import RewardParameters
from skillpress.rollouts.workers.distributed import Ranks
from skillpress.skills.buffer import Success
from skillpress.skills.fit import fit
from skillpress.skills.parameters import SkillParameters
from skillpress.training.algorithms.batch import Batch, batch_of
from skillpress.training.loop.model_pass import sampled_steps
from skillpress.training.loop.reward_shaping import RewardShaper, Shaped, centred
from skillpress.training.loop.step import StaleWeightsError, TrainingStep, refuse_other_ages

ROOT = Path(__file__).parents[4]
TASK = Task("e3", "countdown", 0, {"target": 54, "numbers": [80, 2, 28, 1]})
SOLUTION = ("op(-, 80, 28)", "op(+, 52, 2)", "op(*, 54, 1)")
PROJECTED = ("OP_Sub-large-small", "OP_Add-near_target-small", "OP_Mul-near_target-small")
"""The skills of the solution."""
NEW = (True, Success(PROJECTED, "e3"))
"""The solution as ranks exchange it: it was played for this step."""


def success(won: bool) -> tuple[RewardPart, ...]:
    return (RewardPart("success", 10.0 * won, "trajectory"),)


def trajectory(actions: tuple[str, ...], won: bool) -> Trajectory:
    steps = tuple(
        Step((1,), (2,), (-1.0,), "", action, "", None, success(won and action is actions[-1]))
        for action in actions
    )
    return Trajectory("e3", "g", 0, steps, won, won, not won, "won" if won else "timeout", 0, 0)


def shaper(
    shaping: str,
    buffer: int = 256,
    search: str = "greedy",
    closure: str = "none",
    ranks: Ranks = Ranks(),  # noqa: B008
    credit: Credit = "trajectory",
    dictionaries: str = "shared",
    centred: bool = False,
    corpus: str = "algorithm_1",
) -> RewardShaper:
    reward = RewardParameters(
        success=10.0, invalid_penalty=0.01, invalid_counts="any", invalid_credit="trajectory",
        measures={}, shaping=shaping, shaping_credit=credit, shaping_weight=10.0,
        centred=centred,
    )  # fmt: skip
    skills = SkillParameters(
        max_phrase_length=4,
        buffer=buffer,
        corpus=corpus,
        search=search,
        closure=closure,
        library=None,
        dictionaries=dictionaries,
    )
    return RewardShaper(CountdownProjection(), skills, reward, 30, ranks, seed=0)


def returns(shaped: Shaped, played: Sequence[Trajectory]) -> np.ndarray:
    """The rewards minus the penalties."""
    return np.array([trajectory.total_reward for trajectory in played]) - shaped.penalty


def test_rounds_charges_the_steps_without_a_skill_as_well_and_their_share_is_logged() -> None:
    """Two of the five steps of the only success have no skill; the failure's steps do not count."""
    played = [trajectory(("look", *SOLUTION[:2], "look", SOLUTION[2]), True), trajectory(("look",), False)]
    by_rounds, by_length = (shaper(name)([TASK] * 2, played) for name in ("rounds", "round_length"))
    np.testing.assert_allclose(returns(by_rounds, played), [10 - 10 * 5 / 30, 0])
    np.testing.assert_allclose(returns(by_length, played), [10 - 10 * 3 / 30, 0])
    assert by_rounds.metrics["skills/unlabelled_rate"] == by_length.metrics["skills/unlabelled_rate"] == 2 / 5


def test_the_unlabelled_share_is_that_of_all_ranks() -> None:
    """This rank has 1 of 4 steps without a skill; the other rank reports 5 of 6."""
    mine = [trajectory(("look", *SOLUTION), True)]
    shaped = shaper("none", ranks=OneOf(0, 2, (NEW,), {"steps": 6.0, "unlabelled": 5.0}))
    assert shaped([TASK], mine).metrics["skills/unlabelled_rate"] == 6 / 10


def test_a_phrase_that_all_successes_share_costs_one_segment() -> None:
    played = [trajectory(SOLUTION, True)] * 60 + [trajectory(SOLUTION[:2], False)]
    shaped = shaper("segcost")([TASK] * 61, played)
    assert shaped.dictionary is not None
    np.testing.assert_allclose(returns(shaped, played), [10 - 10 * 1 / 30] * 60 + [0])
    assert shaped.segments.tolist() == [1] * 60 + [2]
    assert shaped.metrics["dictionary/segments"] == 1


def test_a_constant_takes_a_tenth_of_lambda_off_every_success() -> None:
    played = [trajectory(SOLUTION, True), trajectory(("look",), True), trajectory(SOLUTION, False)]
    shaped = shaper("constant")([TASK] * 3, played)
    np.testing.assert_allclose(returns(shaped, played), [10 - 10 / 10, 10 - 10 / 10, 0])


@pytest.mark.parametrize(
    ("shaping", "charges"),
    [
        ("none", [0, 0, 0, 0, 0]),
        ("constant", [0, 0, 0, 0, 1]),
        ("rounds", [1 / 3] * 5),
        ("round_length", [0, 1 / 3, 1 / 3, 0, 1 / 3]),
        ("segcost", [0, 1 / 3, 0, 0, 0]),
    ],
)
def test_where_steps_pay_each_answers_for_what_falls_on_it(shaping: str, charges: list[float]) -> None:
    """lambda / T = 10 / 30; the solution is one phrase, with a step without a skill in its middle."""
    won = trajectory(("look", *SOLUTION[:2], "look", SOLUTION[2]), True)
    played = [won] * 60 + [trajectory(SOLUTION, False)]
    shaped = shaper(shaping, credit="step")([TASK] * 61, played)
    assert shaped.charges is not None
    np.testing.assert_allclose(shaped.charges, charges * 60 + [0, 0, 0])
    np.testing.assert_allclose(shaped.penalty, [sum(charges)] * 60 + [0])


def test_a_summary_pays_nothing() -> None:
    """The summary is made before the second of three steps, so it is the second of four decisions."""
    won = trajectory(SOLUTION, True)
    won = replace(won, summaries=(Summary(1, won.steps[0]),))
    charges = shaper("rounds", credit="step")([TASK], [won]).charges
    np.testing.assert_allclose(charges, [1 / 3, 0, 1 / 3, 1 / 3])


def test_where_trajectories_pay_no_step_is_charged() -> None:
    assert shaper("segcost")([TASK], [trajectory(SOLUTION, True)]).charges is None


def test_without_a_success_rewards_stay_as_they_are() -> None:
    shaped = shaper("segcost")([TASK], [trajectory(SOLUTION[:2], False)])
    assert shaped.penalty.tolist() == [0] and shaped.dictionary is None
    assert "skills/unlabelled_rate" not in shaped.metrics


def test_replayed_successes_pay_by_the_steps_dictionary_and_are_not_remembered_twice() -> None:
    """The whole solution of 60 new successes becomes a phrase. Replayed successes pay by it: one segment for
    the solution, and two for two of its skills, although 60 of the latter alone would have made a phrase."""
    new, replayed = [trajectory(SOLUTION, True)] * 60, [trajectory(SOLUTION[:2], True)] * 60
    again = [*replayed, trajectory(SOLUTION, True), trajectory(SOLUTION, False)]
    with_buffer, without = shaper("segcost"), shaper("segcost")
    shaped = with_buffer([TASK] * 122, [*new, *again], 60)
    plain = without([TASK] * 60, new)
    assert shaped.dictionary == plain.dictionary and shaped.metrics.keys() == plain.metrics.keys()
    np.testing.assert_allclose(shaped.penalty, [10 * 1 / 30] * 60 + [10 * 2 / 30] * 60 + [10 * 1 / 30, 0])
    assert with_buffer.corpus.earlier == without.corpus.earlier == [Success(PROJECTED, "e3")] * 60


def test_without_a_new_success_those_replayed_are_what_the_dictionary_is_fitted_to() -> None:
    shape = shaper("segcost")
    shaped = shape([TASK] * 61, [trajectory(SOLUTION, False)] + [trajectory(SOLUTION, True)] * 60, 1)
    np.testing.assert_allclose(shaped.penalty, [0] + [10 * 1 / 30] * 60)
    assert not shape.corpus.earlier, "they were remembered when they were new"
    assert "skills/unlabelled_rate" not in shaped.metrics, "of new successes, of which there are none"


def test_plain_shaping_changes_nothing_but_still_shows_the_dictionary() -> None:
    shaped = shaper("none")([TASK], [trajectory(SOLUTION, True)])
    assert shaped.penalty.tolist() == [0] and shaped.metrics["dictionary/segments"] == 3


def test_a_success_that_another_skill_would_make_cheaper_is_counted_and_a_closure_prevents_it() -> None:
    """If the whole solution is the only phrase, its first two skills cost 2 and all three cost 1."""
    played = [trajectory(SOLUTION, True)] * 60 + [trajectory(SOLUTION[:2], True)]
    shaped = shaper("segcost", search="refined")([TASK] * 61, played)
    assert shaped.metrics["skills/exploitable_rate"] == 1 / 61
    np.testing.assert_allclose(shaped.penalty[-1], 10 * 2 / 30)
    closed = shaper("segcost", search="refined", closure="prefixes")([TASK] * 61, played)
    assert closed.metrics["skills/exploitable_rate"] == 0
    np.testing.assert_allclose(closed.penalty[-1], 10 * 1 / 30)


@pytest.mark.parametrize("shaping", ["none", "round_length", "segcost"])
def test_a_win_without_a_labelled_skill_alone_in_its_batch_keeps_its_reward(shaping: str) -> None:
    """The success has no skills: there is no phrase to fit and nothing to pay."""
    shaped = shaper(shaping)([TASK] * 2, [trajectory(("look",), True), trajectory(SOLUTION, False)])
    assert shaped.penalty.tolist() == [0, 0] and shaped.dictionary is None
    assert shaped.metrics["skills/unlabelled_rate"] == 1


def test_a_batch_whose_prompts_are_all_too_long_makes_no_update() -> None:
    unasked = Step((), (), (), "", "", "", "prompt_too_long", ())
    played = [replace(trajectory(SOLUTION, False), steps=(unasked,) * 3)] * 4
    algorithm = load_params(ROOT / "params.yaml").algorithm
    nothing: Any = None  # the test uses no part, not even the learner
    step = TrainingStep(
        seed=0, minibatches=4, minibatch_size=0, algorithm=algorithm, rollouts=nothing, shaper=nothing,
        learner=nothing, mismatch=nothing, engine=nothing, ranks=Ranks(),
        sample=nothing,
    )  # fmt: skip
    found = step._update(1, batch_of(played, [0] * 4, 10.0, 4), Batch.of_steps(sampled_steps(played)), [])
    assert found == {"tokens_sampled": 0.0, "tokens_trained": 0.0}


@pytest.mark.parametrize(
    ("step", "version", "lag", "said"),
    [
        (1, 0, 0, None), (4, 3, 0, None), (4, 2, 1, None),
        (4, 0, 0, "training.lag is 0, and in step 4 .*Stuck says .* weights that are 3 steps old"),
        (4, 1, 1, "training.lag is 1.* 2 steps old"),
        (4, 4, 0, "1 steps after the learner's"),
    ],
)  # fmt: skip
def test_weights_older_than_the_lag_or_newer_than_the_learners_are_an_error_that_names_the_engine(
    step: int, version: int, lag: int, said: str | None
) -> None:
    class Stuck:
        pass

    engine: Any = Stuck()
    drawn = replace(trajectory(SOLUTION, True).steps[0], weight_spans=(WeightSpan(version, 0, 1),))
    played = [replace(trajectory(SOLUTION, True), steps=(drawn,))]
    if said is None:
        refuse_other_ages(played, step, lag, engine, Ranks())
        return
    with pytest.raises(StaleWeightsError, match=said):
        refuse_other_ages(played, step, lag, engine, Ranks())


@dataclass(frozen=True)
class OneOf(Ranks):
    """One of several ranks; the successes of the others are given."""

    everybodys: tuple[Any, ...] = ()
    others: Mapping[str, float] = field(default_factory=dict)
    """The amounts that the other ranks add to sums."""

    def gather(self, items: Sequence[Any]) -> list[Any]:
        return list(self.everybodys)

    def sum(self, values: dict[str, float]) -> dict[str, float]:
        return {name: value + self.others.get(name, 0.0) for name, value in values.items()}


@given(
    st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=4, max_size=40), st.sampled_from([2, 4])
)
def test_the_number_of_processes_changes_no_reward(batch: list[tuple[int, bool]], processes: int) -> None:
    batch = batch[: len(batch) // processes * processes] * 6
    played = [trajectory(SOLUTION[:length], won) for length, won in batch]
    together = shaper("segcost")([TASK] * len(played), played).penalty
    successes = tuple((True, Success(PROJECTED[:length], "e3")) for length, won in batch if won)
    shared = []
    for rank in range(processes):
        mine = [played[index] for index in OneOf(rank, processes).share(len(played))]
        part = shaper("segcost", ranks=OneOf(rank, processes, successes))
        shared.append(part([TASK] * len(mine), mine).penalty)
    np.testing.assert_array_equal(np.concatenate(shared), together)


def test_the_dictionary_sees_the_successes_of_all_ranks() -> None:
    others = ((True, Success(PROJECTED[:2], "e4")),) * 60
    both = shaper("segcost", ranks=OneOf(0, 2, (NEW, *others)))
    # The first two skills of the solution are the other rank's phrase: 2 segments instead of 3.
    np.testing.assert_allclose(both([TASK], [trajectory(SOLUTION, True)]).penalty, [10 * 2 / 30])
    assert len(both.corpus.earlier) == 61


def test_in_bits_a_phrase_in_common_use_costs_a_fraction_of_a_skill() -> None:
    """Greedy search learns the solution and one of its parts: 26 + 2 phrases, of which one is used, 60 times.
    Its share is 61 of 88 uses with one added to each."""
    shaped = shaper("bits")([TASK] * 60, [trajectory(SOLUTION, True)] * 60)
    assert shaped.dictionary is not None and len(shaped.dictionary.phrases) == 28
    np.testing.assert_allclose(shaped.penalty, [10 / 30 * log2(88 / 61) / log2(26)] * 60)


X, Y, Z = (replace(TASK, task_id=name, stratum=f"train/{name}") for name in "xyz")
"""Tasks of three classes."""


def test_with_a_dictionary_per_class_a_success_pays_by_those_of_its_own_class() -> None:
    """The solution is a phrase where 60 successes have it. In the class that has it once, its three skills
    cost three; a class without a success has no dictionary."""
    tasks = [*[X] * 60, Y, Z, Y]
    played = [
        *[trajectory(SOLUTION, True)] * 61,
        trajectory(SOLUTION, False),
        trajectory(SOLUTION[:1], False),
    ]
    shaped = shaper("segcost", dictionaries="per_class")(tasks, played)
    np.testing.assert_allclose(shaped.penalty, [10 / 30] * 60 + [30 / 30, 0, 0])
    assert list(shaped.dictionaries) == ["x", "y"] and shaped.dictionary is None
    assert shaped.segments.tolist() == [1] * 60 + [3, 0, 1]
    assert shaped.metrics["dictionary/segments"] == (60 * 1 + 3) / 61
    assert shaped.metrics["dictionary/classes"] == 2
    phrases = sum(len(each.phrases) for each in shaped.dictionaries.values())
    assert shaped.metrics["dictionary/phrases"] == phrases == 28 + 26
    bits = sum(each.description_length * each.sequences for each in shaped.dictionaries.values())
    assert shaped.metrics["dictionary/description_length"] == pytest.approx(bits / 61)
    together = shaper("segcost")(tasks, played)
    np.testing.assert_allclose(together.penalty, [10 / 30] * 61 + [0, 0])
    assert "dictionary/classes" not in together.metrics


@pytest.mark.parametrize("shaping", SHAPINGS)
@pytest.mark.parametrize("credit", ["trajectory", "step"])
def test_tasks_of_one_class_are_judged_as_all_tasks_together(shaping: str, credit: Credit) -> None:
    played = [trajectory(SOLUTION[:length], won) for length in (3, 3, 2, 1) for won in (True, False)] * 8
    shared, own = (
        shaper(shaping, credit=credit, dictionaries=each)([X] * 64, played)
        for each in ("shared", "per_class")
    )
    assert [*own.dictionaries.values()] == [*shared.dictionaries.values()]
    assert (own.penalty.tolist(), own.segments.tolist()) == (
        shared.penalty.tolist(),
        shared.segments.tolist(),
    )
    assert own.charges is None or own.charges.tolist() == shared.charges.tolist()


def test_where_steps_pay_each_class_pays_by_its_own_dictionary() -> None:
    shaped = shaper("segcost", credit="step", dictionaries="per_class")(
        [*[X] * 60, Y], [trajectory(SOLUTION, True)] * 61
    )
    np.testing.assert_allclose(shaped.charges, [1 / 3, 0, 0] * 60 + [1 / 3] * 3)


def test_the_buffer_keeps_the_class_of_its_successes() -> None:
    shape = shaper("segcost", dictionaries="per_class")
    shape([X] * 60, [trajectory(SOLUTION, True)] * 60)
    later = shape([X, Y], [trajectory(SOLUTION, True)] * 2)
    np.testing.assert_allclose(later.penalty, [10 / 30, 30 / 30])


def test_replayed_successes_are_the_corpus_of_a_class_that_has_no_others() -> None:
    """One new success of a class; 60 of another class are replayed."""
    played = [trajectory(SOLUTION, True)] * 61
    shaped = shaper("segcost", dictionaries="per_class")([Y, *[X] * 60], played, 1)
    np.testing.assert_allclose(shaped.penalty, [30 / 30] + [10 / 30] * 60)


def test_a_success_repeated_within_its_task_makes_no_phrase_where_each_task_counts_once() -> None:
    repeated, across = [TASK] * 60, [replace(TASK, task_id=f"e{number}") for number in range(60)]
    played = [trajectory(SOLUTION, True)] * 60
    once = [
        shaper("segcost", corpus="each_task_once")(tasks, played).penalty[0] for tasks in (repeated, across)
    ]
    np.testing.assert_allclose(once, [30 / 30, 10 / 30])


def test_a_centred_penalty_is_what_a_success_pays_more_than_its_groups_other_successes() -> None:
    """Group a has successes that pay 1 and 3; the only success of group b pays 5; group c has none."""
    penalty, won = np.array([1.0, 0, 3, 5, 0, 0]), [True, False, True, True, False, False]
    assert centred(penalty, won, [*"aaabbc"]).tolist() == [-1, 0, 1, 0, 0, 0]
    assert centred(np.zeros(0), [], []).tolist() == []


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.floats(0, 10)), max_size=30))
def test_centred_penalties_leave_the_mean_return_of_every_group_as_it_is(
    batch: list[tuple[str, bool, float]],
) -> None:
    groups, won = [group for group, _, _ in batch], [success for _, success, _ in batch]
    penalty = np.array([paid * success for _, success, paid in batch], np.float64)
    found = centred(penalty, won, groups)
    assert not found[~np.array(won, np.bool_)].any()
    for name in set(groups):
        of_group = np.array([group == name for group in groups])
        assert found[of_group].sum() == pytest.approx(0, abs=1e-9)
        pairs = np.subtract.outer(found[of_group & won], found[of_group & won])
        plain = np.subtract.outer(penalty[of_group & won], penalty[of_group & won])
        np.testing.assert_allclose(pairs, plain, atol=1e-9)


@given(st.floats(0, 10), st.integers(1, 40))
def test_a_group_whose_successes_cost_the_same_pays_exactly_nothing(paid: float, size: int) -> None:
    assert centred(np.full(size, paid), [True] * size, ["g"] * size).tolist() == [0] * size


@pytest.mark.parametrize("shaping", SHAPINGS)
def test_every_shaping_can_be_centred_and_is_not_by_default(shaping: str) -> None:
    played = [trajectory(SOLUTION[:length], won) for length in (3, 3, 2, 1) for won in (True, False)]
    played = [replace(each, group_id=group) for each in played for group in "gh"]
    plain, less = (shaper(shaping, centred=each)([TASK] * 16, played) for each in (False, True))
    expected = centred(plain.penalty, [each.won for each in played], [each.group_id for each in played])
    assert less.penalty.tolist() == expected.tolist()
    assert less.metrics.keys() == plain.metrics.keys() and less.dictionary == plain.dictionary


@given(
    st.lists(
        st.lists(st.tuples(st.integers(1, 3), st.booleans()), min_size=1, max_size=12), min_size=1, max_size=4
    ),
    st.sampled_from([0, 5, 256]),
)
def test_the_default_pays_by_the_dictionary_of_the_newest_successes_whatever_their_tasks(
    steps: list[list[tuple[int, bool]]], capacity: int
) -> None:
    """Algorithm 1 and Eq. 6, step by step: λ seg / T = 10 seg / 30, bit for bit."""
    shape, known = shaper("segcost", buffer=capacity), list[tuple[str, ...]]()
    for batch in steps:
        played = [trajectory(SOLUTION[:length], won) for length, won in batch]
        shaped = shape([replace(TASK, task_id=str(row)) for row in range(len(batch))], played)
        new = [PROJECTED[:length] for length, won in batch if won]
        known += new
        if new:
            dictionary = fit(known[-max(capacity, len(new)) :], CountdownProjection().alphabet, 4)
            assert shaped.dictionary == dictionary
            costs = dictionary.costs([PROJECTED[:length] for length, _ in batch])
            paid = [10.0 * won * cost / 30 for cost, (_, won) in zip(costs, batch, strict=True)]
            assert shaped.penalty.tolist() == paid and shaped.segments.tolist() == costs
            assert shaped.metrics["dictionary/description_length"] == dictionary.description_length
        else:
            assert not shaped.dictionaries and not shaped.penalty.any()
