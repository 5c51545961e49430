"""How the experiments of an ablation share the cores."""

import pytest

from flows.ablation import room


@pytest.mark.parametrize(
    ("cores", "processes", "at_once"),
    [(2, [1, 1], 2), (2, [2, 2], 1), (8, [2, 2], 4), (8, [1, 3], 2), (1, [2], 1)],
)
def test_experiments_run_beside_each_other_as_far_as_their_processes_have_a_core_each(
    cores: int, processes: list[int], at_once: int
) -> None:
    assert room(cores, processes) == at_once
