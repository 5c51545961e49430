"""Small tasks in Harbor's format, made by one function; they run over this machine's ``/usr``."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

NEW = """schema_version = "1.4"
[task]
name = "tests/{name}"
[metadata]
difficulty = "easy"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 30.0
[environment]
memory_mb = 512
network_mode = "no-network"
"""
OLD = """version = "1.0"
[metadata]
author_name = "someone"
[agent]
timeout_sec = 60.0
[verifier]
timeout_sec = 30.0
[environment]
memory = "0.5G"
storage = "512M"
allow_internet = false
"""
TEXT = "if [ {holds} ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"
JSON = """reward=0; [ {holds} ] && reward=1
echo "{{\\"reward\\": $reward, \\"looked\\": 0.5}}" > /logs/verifier/reward.json
"""
DOCKERFILE = "FROM ubuntu:24.04\nWORKDIR /app\nCOPY . .\n"


class Kind(NamedTuple):
    """One kind of task."""

    instruction: str
    files: Mapping[str, str]
    """Files of ``environment``."""
    solve: str
    holds: str
    """The shell's test that a solution passes."""


def _greet(number: int) -> Kind:
    said = f"hello {number}"
    return Kind(f"Write '{said}' into greeting.txt.", {}, f"echo '{said}' > greeting.txt\n",
                f'"$(cat /app/greeting.txt)" = "{said}"')  # fmt: skip


def _sum(number: int) -> Kind:
    numbers = [number, 7, 10 * number]
    return Kind("Write the sum of numbers.txt into total.txt.", {"numbers.txt": "\n".join(map(str, numbers))},
                "echo $(( $(paste -sd+ numbers.txt) )) > total.txt\n",
                f'"$(cat total.txt)" = {sum(numbers)}')  # fmt: skip


def _sort(number: int) -> Kind:
    return Kind("Sort names.txt in place.", {"names.txt": f"zoe\nname{number}\nadam\n"},
                "sort -o names.txt names.txt\n",
                f'"$(tr "\\n" , < names.txt)" = adam,name{number},zoe,')  # fmt: skip


def _find(number: int) -> Kind:
    files = {f"rooms/room{each}.txt": "key" if each == number else "dust" for each in range(4)}
    return Kind("Write the name of the file with the key into found.txt.", files,
                "basename $(grep -rl key rooms) > found.txt\n",
                f'"$(cat found.txt)" = room{number}.txt')  # fmt: skip


def _mend(number: int) -> Kind:
    return Kind("double.sh must print the double of its argument.",
                {"double.sh": f"echo $(( $1 + {number + 1} ))\n"},
                "cp /solution/right.sh double.sh\n", '"$(bash double.sh 21)" = 42')  # fmt: skip


KINDS: tuple[Callable[[int], Kind], ...] = (_greet, _sum, _sort, _find, _mend)


def harbor_tasks(folder: Path, count: int = 20) -> Path:
    """Write tasks of five kinds, by turns in both forms of task.toml and of rewards; returns the folder."""
    for number in range(count):
        make = KINDS[number % len(KINDS)]
        kind, name = make(number // len(KINDS)), f"{make.__name__.strip('_')}-{number:02}"
        write_task(
            folder / name,
            kind,
            settings=(NEW if number % 2 else OLD).format(name=name),
            test=(JSON if number % 3 else TEXT).format(holds=kind.holds),
        )
    return folder


def write_task(
    folder: Path,
    kind: Kind | None = None,
    *,
    settings: str = OLD,
    test: str = "",
    dockerfile: str = DOCKERFILE,
) -> Path:
    """Write one task; returns its folder."""
    kind = kind or _greet(0)
    files = {
        "task.toml": settings,
        "instruction.md": kind.instruction,
        "environment/Dockerfile": dockerfile,
        **{f"environment/{name}": text for name, text in kind.files.items()},
        "tests/test.sh": test or TEXT.format(holds=kind.holds),
        "solution/solve.sh": kind.solve,
        "solution/right.sh": "echo $(( $1 * 2 ))\n",
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def write_steps(folder: Path, steps: str, *, strategy: str = "mean", tests: str = "") -> Path:
    """Write a task of several steps, whose tests ask for a file of the step's name; returns its folder.

    Args:
        steps: the ``[[steps]]`` tables. A step's instruction is its name.
        tests: the shell script of steps' tests; empty for the usual one.
    """
    write_task(folder, settings=f'multi_step_reward_strategy = "{strategy}"\n{OLD}{steps}')
    for step in tomllib.loads(steps)["steps"]:
        name = step["name"]
        files = {
            "instruction.md": name,
            "tests/test.sh": tests or TEXT.format(holds=f"-e /app/{name}"),
            "solution/solve.sh": f"touch {name}\n",
            "workdir/setup.sh": f"echo {name} >> /app/begun.txt\n",
        }
        for place, text in files.items():
            path = folder / "steps" / name / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    return folder
