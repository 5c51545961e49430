"""How the experiments of an ablation share the cores."""

import pytest

from flows.ablation import check_different, room
from skillpress.core.errors import ParamsError


@pytest.mark.parametrize(
    ("cores", "processes", "at_once"),
    [(2, [1, 1], 2), (2, [2, 2], 1), (8, [2, 2], 4), (8, [1, 3], 2), (1, [2], 1)],
)
def test_experiments_run_beside_each_other_as_far_as_their_processes_have_a_core_each(
    cores: int, processes: list[int], at_once: int
) -> None:
    assert room(cores, processes) == at_once


def test_no_experiment_is_counted_twice_and_no_two_methods_are_one() -> None:
    check_different(["params/grpo.yaml", "params/segcost.yaml"], [0, 1])
    with pytest.raises(ParamsError, match=r"--params: params/grpo.yaml and mine/grpo.yaml are both grpo"):
        check_different(["params/grpo.yaml", "mine/grpo.yaml"], [0])
    with pytest.raises(ParamsError, match=r"--params: params/grpo.yaml and params/grpo.yaml are both grpo"):
        check_different(["params/grpo.yaml", "params/grpo.yaml"], [0])
    with pytest.raises(ParamsError, match="--seeds: 1 is named twice"):
        check_different(["params/grpo.yaml"], [1, 0, 1])
