"""Everyone can read the page, with or without sight: axe finds nothing serious in any view."""

from __future__ import annotations

import pytest
from axe_playwright_python.sync_playwright import Axe

VIEWS = {
    "list": ("episodes?outcome=stuck&text=helps", []),
    "nothing found": ("episodes?text=nothing+like+it", []),
    "step": ("episode/0-1/5", ["v"]),
    "summary": ("episode/0-1/s6", []),
    "attack": ("episode/1-5", ["v"]),
    "group": ("group/0-2", []),
    "two policies": ("compare/0-2/0-48", []),
    "dictionary": ("dictionary", []),
    "phrase": ("phrase/27", []),
    "help": ("dictionary", ["?"]),
}  # fmt: skip
SERIOUS = ("serious", "critical")


@pytest.mark.parametrize(
    ("width", "scheme"),
    [
        (1280, "light"),
        (400, "dark"),
        pytest.param(1280, "dark", marks=pytest.mark.thorough),
        pytest.param(400, "light", marks=pytest.mark.thorough),
    ],
)
def test_axe_finds_nothing_serious(alone, watch, width, scheme):
    watched = watch(alone, width, scheme)
    found = {}
    for name, (place, keys) in VIEWS.items():
        page = watched.go(place)
        page.reload()
        watched.settled()
        watched.press(*keys)
        violations = Axe().run(page).response["violations"]
        found[name] = [
            f"{each['id']}: {node['html'][:120]}"
            for each in violations
            if each["impact"] in SERIOUS
            for node in each["nodes"][:3]
        ]
        assert watched.width <= width
    assert {name: troubles for name, troubles in found.items() if troubles} == {}


def test_tokens_of_every_probability_can_be_told_from_their_ground(alone, watch):
    for scheme in ("light", "dark"):
        page = watch(alone, scheme=scheme).go("episode/0-1/5")
        rules = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
        assert Axe().run(page, ".legend", rules).response["violations"] == []
