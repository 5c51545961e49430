"""Shaping: what two equally long successes are worth under each shaping, computed by the classes."""

from __future__ import annotations

from docs.figures import corpus
from docs.figures.drawing import MUTED, STRONG, Drawing
from skillpress.core.registry import SHAPINGS, lookup
from skillpress.skills.shaping import Played

SUCCESS, EFFICIENCY, STEPS = 10.0, 10.0, 12
"""R, λ and T."""
SHOWN = ("none", "constant", "rounds", "round_length", "segcost", "bits")
ABOUT = (
    "Bars of the reward of two successes of six skills and seven steps, under each shaping. Under segcost "
    "and bits alone the one that is made of known phrases is worth more."
)


def draw() -> str:
    """The picture."""
    assert set(SHOWN) == set(SHAPINGS)
    sequences = (corpus.EPISODE, corpus.WANDERING)
    played = Played(won=(True, True), sequences=sequences, steps=(7, 7))
    page = Drawing(760, 406, ABOUT)
    setting = f"R = {SUCCESS:g}, λ = {EFFICIENCY:g}, T = {STEPS}"
    page.text(20, 28, f"two successes: 6 skills in 7 steps each, {setting}", anchor="start", bold=True)
    for number, name in enumerate(SHOWN):
        shaping = lookup(SHAPINGS, name, "reward.shaping")(EFFICIENCY, STEPS)
        penalties = shaping(played, corpus.fitted())
        y = 50 + number * 58
        page.text(20, y + 25, name, anchor="start", mono=True)
        for row, (penalty, fill) in enumerate(zip(penalties, (STRONG, "#a3abb5"), strict=True)):
            reward = SUCCESS - penalty
            page.bar(150, y + row * 20, 46 * reward, 16, fill)
            page.text(158 + 46 * reward, y + 13 + row * 20, f"{reward:.2f}", anchor="start", size=13)
    page.bar(520, 384, 12, 12, STRONG)
    page.text(538, 395, "known phrases", anchor="start", size=12, color=MUTED)
    page.bar(668, 384, 12, 12, "#a3abb5")
    page.text(686, 395, "wandering", anchor="start", size=12, color=MUTED)
    return page.svg()
