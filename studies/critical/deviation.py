"""What a penalty's weight does where advantages are divided by their group's deviation: a calculation.

n rollouts of a task win with probability p each, and half of the wins are routines. A win earns 10 less
lambda times its segments over T; a shortcut needs more segments, delta more in this unit (SegCost's in
``shorter``: 0.0744). The *pull* is the mean of advantage of a routine less that of a shortcut, over groups in
which both win. Without the division it is lambda * delta. With it, lambda cancels in a group without a loss,
and counts in the others as a part of a success.
"""

from __future__ import annotations

from itertools import product
from math import comb, sqrt

from docs.figures.drawing import GREY, LINE, MUTED, Drawing

ROLLOUTS, SUCCESS, DELTA = 8, 10.0, 0.0744
WEIGHTS = (0.01, 0.1, 1.0, 10.0)
"""lambda, over three decades."""
COLORS = dict(zip(WEIGHTS, ("#b3261e", "#b45309", "#0b6fa4", "#2f7d4f"), strict=True))
LOWEST = 0.5
"""The lowest success rate of the figure."""
WIDTH, HEIGHT = 720, 380


def pull(weight: float, rate: float, n: int = ROLLOUTS) -> float:
    """The mean difference of advantages between routine and shortcut, in deviations of a group.

    Args:
        weight: lambda.
        rate: p, the chance of a win.
    """
    total = found = 0.0
    for won, routines in product(range(n + 1), repeat=2):
        if not 0 < routines < won:
            continue
        chance = comb(n, won) * rate**won * (1 - rate) ** (n - won) * comb(won, routines) / 2**won
        rewards = [0.0] * (n - won) + [SUCCESS] * routines + [SUCCESS - weight * DELTA] * (won - routines)
        mean = sum(rewards) / n
        deviation = sqrt(sum((reward - mean) ** 2 for reward in rewards) / n)
        total += chance
        found += chance * weight * DELTA / deviation
    return found / total


def deviation_figure() -> str:
    """Pull against success rate, a line per weight."""
    page = Drawing(WIDTH, HEIGHT, "Pull of a penalty against the success rate, with advantages divided.")
    title = "Advantage of a routine over a shortcut, in deviations of the group"
    page.text(20, 28, title, anchor="start", bold=True)
    left, right, top, bottom = 60.0, WIDTH - 40.0, 70.0, HEIGHT - 60.0
    page.bar(left, top, right - left, bottom - top, GREY)
    highest = pull(WEIGHTS[0], 1.0)
    for at in range(3):
        y = bottom - (bottom - top) * at / highest
        page.bar(left, y - 0.5, right - left, 1, LINE)
        page.text(left - 8, y + 4, str(at), anchor="end", size=11, color=MUTED)
    for percent in range(round(100 * LOWEST), 101, 10):
        x = left + (right - left) * (percent / 100 - LOWEST) / (1 - LOWEST)
        page.text(x, bottom + 20, f"{percent}%", size=11, color=MUTED)
    page.text(
        (left + right) / 2, bottom + 44, "success rate of a rollout, groups of eight", size=12, color=MUTED
    )
    x = left
    for weight, color in COLORS.items():
        page.dot(x + 6, 52, 4.5, color)
        page.text(x + 16, 56, f"weight {weight:g}", anchor="start", size=12, color=MUTED)
        x += 110
        pulls = [pull(weight, LOWEST + (1 - LOWEST) * step / 100) / highest for step in range(101)]
        curve = enumerate(bottom - (bottom - top) * height for height in pulls)
        page.line([(left + (right - left) * step / 100, y) for step, y in curve], color)
    return page.svg()
