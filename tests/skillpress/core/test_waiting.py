"""Code that waits names its wait, and every listener hears the name."""

from __future__ import annotations

import pytest

from skillpress.core.waiting import heard, tell, waiting


def test_a_listener_hears_the_innermost_wait_and_then_the_outer_one_again() -> None:
    said: list[str] = []
    with heard(said.append), waiting("loading the policy"):
        with waiting("importing torch"):
            pass
        assert said == ["loading the policy", "importing torch", "loading the policy"]
    with waiting("a wait after its block"):
        assert said == ["loading the policy", "importing torch", "loading the policy", ""]


def test_a_wait_ends_with_an_error_too() -> None:
    said: list[str] = []
    with heard(said.append), pytest.raises(ValueError, match="no"), waiting("starting the engine"):
        raise ValueError("no")
    assert said == ["starting the engine", ""]


def test_without_a_listener_nothing_happens_and_several_hear_the_same() -> None:
    tell("importing torch")
    one: list[str] = []
    other: list[str] = []
    with heard(one.append), heard(other.append):
        tell("compiling")
    assert one == other == ["compiling"]
