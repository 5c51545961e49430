"""What the comparison of steps over episodes makes of its turns."""

from __future__ import annotations

from benchmarks.grpo_step.episodes import summary


def test_medians_over_all_steps_of_a_side_and_their_ratios() -> None:
    """Ours takes 10, 12 and 20 seconds, the earlier revision 30 and 34, half of it updating."""
    ours = [{"step": step, "update": 4.0, "reference": 0.6, "tokens": 100} for step in (10.0, 20.0, 12.0)]
    before = [{"step": step, "update": step / 2, "tokens": 90} for step in (30.0, 34.0)]
    found = summary({
        "skillpress": [
            {"steps": ours[:2], "peak_bytes": 5, "load": 1.0},
            {"steps": ours[2:], "peak_bytes": 7, "load": 2.0},
        ],
        "before": [{"steps": before, "peak_bytes": 6, "load": 3.0}],
    })  # fmt: skip
    assert found["medians"]["skillpress"]["step"] == 12
    assert found["ratios"] == {"before over skillpress": 32 / 12}
    assert found["shares_of_step"]["skillpress"] == {"reference": 0.6 / 12, "update": 4 / 12}
    assert found["shares_of_step"]["before"] == {"update": 0.5}
    assert found["peak_bytes"] == {"skillpress": 7, "before": 6}
    assert found["loads"] == {"skillpress": [1.0, 2.0], "before": [3.0]}
