"""Every environment in the registry provides a complete bundle."""

from __future__ import annotations

import pytest

from skillpress.core.errors import ParamsError
from skillpress.core.registry import ENVIRONMENTS, PARSERS
from skillpress.environments import bundle
from skillpress.environments.bundle import EnvironmentParameters


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environments_alphabet_has_no_doubles(name: str) -> None:
    """An environment whose sections state their rules has no alphabet without a section."""
    found = bundle(name)
    alphabet = found.projection.alphabet
    assert len(set(alphabet)) == len(alphabet) and (len(alphabet) > 1) == (found.rules is None)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environments_section_is_an_environment_section(name: str) -> None:
    assert issubclass(bundle(name).parameters, EnvironmentParameters)


def test_countdowns_renderings_name_parsers_that_exist_and_the_history_asked_for() -> None:
    section = bundle("countdown").parameters.model_validate(
        {
            "name": "countdown",
            "max_steps": 30,
            "min_numbers": 3,
            "max_numbers": 4,
            "min_target": 10,
            "max_target": 999,
        }
    )
    for make in bundle("countdown").renderings.values():
        assert make(section, 3).parser in PARSERS
        assert make(section, 3).history == 3


def test_an_unknown_name_is_refused_with_what_is_allowed() -> None:
    with pytest.raises(ParamsError, match=r"environment.name: is 'chess'; allowed: .*countdown"):
        bundle("chess")
