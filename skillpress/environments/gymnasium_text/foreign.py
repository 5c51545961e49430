"""Make the environment with a gymnasium id, and check that its actions and observations are texts."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from inspect import signature
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.error import Error, UnregisteredEnv
from gymnasium.spaces import Text

from skillpress.core.errors import ParamsError, did_you_mean
from skillpress.core.names import search_lab
from skillpress.environments.gymnasium_text.parameters import GymnasiumTextParameters
from skillpress.environments.section import Oracle


def make_foreign(section: GymnasiumTextParameters) -> gymnasium.Env[str, str]:
    """Make the registered environment.

    Raises:
        ParamsError: nothing is registered under the id, it cannot be made with these arguments, or its
            actions or observations are not texts.
    """
    if section.module:
        _imported(section.module, "environment.module")
    search_lab()  # for an id such as doors:Doors-v0
    try:
        made: gymnasium.Env[str, str] = gymnasium.make(section.id, disable_env_checker=True, **section.kwargs)
    except UnregisteredEnv as error:
        near = did_you_mean(section.id, gymnasium.registry)
        hint = near or "; environment.module names what registers it"
        raise ParamsError(f"environment.id: is {section.id!r}: {error}{hint}") from None
    except (Error, TypeError, ImportError, AttributeError) as error:  # the last two come from "module:id"
        raise ParamsError(
            f"environment.id: {section.id} cannot be made with environment.kwargs {section.kwargs}: {error}"
        ) from error
    for name, space in (("actions", made.action_space), ("observations", made.observation_space)):
        if not isinstance(space, Text):
            raise ParamsError(
                f"environment.id: {section.id} has {name} of {space}; only gymnasium.spaces.Text can be read "
                "and answered by a language agent"
            )
    return made


def identities(section: GymnasiumTextParameters) -> dict[str, str]:
    """What determines the episodes and is not part of this repository: versions of packages, or a hash of a
    file.

    A module of this repository lists the packages that it uses in ``LIBRARIES``.

    Raises:
        ParamsError: a module cannot be found, or has no such oracle.
    """
    if section.oracle:
        oracle_named(section.oracle)  # before minutes are spent
    found = {"gymnasium": version("gymnasium")}
    distributions = packages_distributions()
    for module in filter(None, (section.module, section.oracle.partition(":")[0])):
        top = module.partition(".")[0]
        if top == "skillpress":
            brought = getattr(_imported(module, "environment.module"), "LIBRARIES", ())
            found |= {name: version(name) for name in brought}
            continue
        if top in distributions:
            found |= {name: version(name) for name in distributions[top]}
            continue
        _imported(module, "environment.module")
        spec = find_spec(module)
        assert spec is not None and spec.origin is not None, "what was imported has a file"
        found[module] = hashlib.blake2b(Path(spec.origin).read_bytes(), digest_size=16).hexdigest()
    return found


def oracle_named(named: str) -> Callable[[GymnasiumTextParameters], Oracle]:
    """The function from the section to a demonstrator; ``ParamsError`` if there is none."""
    module, colon, attribute = named.partition(":")
    if not (module and colon and attribute):
        raise ParamsError(
            f"environment.oracle: is {named!r}; must be module:function, such as doors:Demonstrator"
        )
    imported = _imported(module, "environment.oracle")
    make: Callable[[GymnasiumTextParameters], Oracle] | None = getattr(imported, attribute, None)
    if not callable(make):
        what = "no function" if make is None else f"{type(make).__name__}, no function, as"
        raise ParamsError(
            f"environment.oracle: is {named!r}; {module} has {what} {attribute!r}"
            f"{did_you_mean(attribute, vars(imported))}"
        )
    try:
        signature(make).bind(None)
    except TypeError as error:
        raise ParamsError(
            f"environment.oracle: is {named!r}, which must take one argument, the section: {error}"
        ) from error
    except ValueError:  # it is written in C and has no signature
        pass
    return make


def _imported(module: str, parameter: str) -> Any:
    search_lab()
    try:
        return import_module(module)
    except (ImportError, SyntaxError, ValueError, TypeError) as error:  # such as for "a..b" or ".a"
        how = _how(module, error)
        raise ParamsError(f"{parameter}: {module!r} cannot be imported: {error}{how}") from error


def _how(module: str, error: Exception) -> str:
    """A hint on how to make a missing module importable."""
    missing = error.name if isinstance(error, ModuleNotFoundError) else None
    if missing is None:
        return ""
    if module.startswith("skillpress."):
        return f"; pip install 'skillpress[{missing}]'"
    if missing.partition(".")[0] != module.partition(".")[0]:
        return f"; {module} itself was found"
    file = f"{missing.partition('.')[0]}.py"
    return f"; put {file} of your own in this folder, in the lab, or in a folder of PYTHONPATH"
