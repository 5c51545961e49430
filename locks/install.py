"""Install packages from the locks of this folder, as in ``.venv/bin/python locks/install.py run.txt torch``.

The packages go into the environment of the Python that runs this file. Only files whose hashes a lock names
are installed. uv installs them, faster than pip; pip does it where no index offers uv, or where uv fails.
A lock is complete, so dependencies are not resolved. Packages without a wheel are built with the packages of
build.txt: an isolated build would download its tools without hashes.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

LOCKS = Path(__file__).resolve().parent
TORCH = ("torch-cpu.txt", "torch-cuda.txt")
"""The builds of torch, by preference: pip also prefers 2.13.0+cpu to 2.13.0 where an index offers both."""
SETTINGS = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "no-index": "UV_NO_INDEX",
    "trusted-host": "UV_INSECURE_HOST",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "timeout": "UV_HTTP_TIMEOUT",
    "cert": "SSL_CERT_FILE",
    "proxy": "ALL_PROXY",
}
"""pip's settings, and the environment variables of uv that say the same."""
SECTIONS = ("global", "install", ":env:")
"""The sections of ``pip config list`` that concern an installation; a later one overrides an earlier one."""


@dataclass(frozen=True)
class Installer:
    """pip or uv, for the environment of this Python."""

    name: str
    command: Sequence[str]
    unisolated: Sequence[str] = ("--no-build-isolation",)
    """Arguments for builds with the tools that are installed."""
    environment: dict[str, str] = field(default_factory=lambda: dict(os.environ))

    def install(self, locks: Sequence[str], *arguments: str) -> bool:
        """Install these locks; whether it worked. The installer prints what failed."""
        files = [part for lock in locks for part in ("--requirement", str(LOCKS / lock))]
        command = [*self.command, "--require-hashes", "--no-deps", *self.unisolated, *arguments, *files]
        return subprocess.run(command, env=self.environment, check=False).returncode == 0

    def offered(self, lock: str) -> bool:
        """Whether an index has the files of this lock."""
        command = [*self.command, "--require-hashes", "--no-deps", "--dry-run", "--requirement", LOCKS / lock]
        return subprocess.run(command, env=self.environment, capture_output=True, check=False).returncode == 0

    def install_project(self) -> bool:
        """Install this repository, editable; whether it worked."""
        command = [*self.command, "--no-deps", *self.unisolated, "--editable", str(LOCKS.parent)]
        return subprocess.run(command, env=self.environment, check=False).returncode == 0


# pip takes packages without pyproject.toml only through PEP 517: else they would need the package wheel.
PIP = Installer(
    "pip",
    [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install", "--no-compile"],
    ("--no-build-isolation", "--use-pep517"),
)


def uv() -> Installer:
    """uv with pip's settings, whose files it does not read."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True, check=True
    )
    found = re.findall(r"^(\S+)\.([\w-]+)=(.*)$", listed.stdout, re.MULTILINE)
    given = {
        SETTINGS[name]: str(ast.literal_eval(value)).strip()
        for wanted in SECTIONS
        for section, name, value in found
        if section == wanted and name in SETTINGS
    }
    if links := given.get("UV_FIND_LINKS"):
        given["UV_FIND_LINKS"] = ",".join(links.split())
    # Any index may serve a file, since its hash decides.
    return Installer(
        "uv",
        [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", sys.executable],
        environment={"UV_INDEX_STRATEGY": "unsafe-best-match", **given, **os.environ},
    )


def attempt(installer: Installer, locks: Sequence[str], project: bool) -> bool:
    """Install the locks, build.txt before the others; whether all of it worked."""
    preferred, other = TORCH
    torch = preferred if "torch" in locks and installer.offered(preferred) else other
    rest = [torch if lock == "torch" else lock for lock in locks if lock != "build.txt"]
    steps = [["build.txt"], rest] if "build.txt" in locks else [rest]
    return all(installer.install(each) for each in steps) and (not project or installer.install_project())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("locks", nargs="+", help="a file of this folder, or torch: the build that is offered")
    parser.add_argument("--project", action="store_true", help="this repository as well, editable")
    given = parser.parse_args(arguments)
    if PIP.install(["uv.txt"], "--only-binary", ":all:"):
        if attempt(uv(), given.locks, given.project):
            return 0
        print("uv failed; pip tries the same files", file=sys.stderr)
    else:
        print("uv is not to be had here; pip installs", file=sys.stderr)
    if attempt(PIP, given.locks, given.project):
        return 0
    print(
        f"{', '.join(given.locks)}: not installed. Only files with the hashes of locks/ are accepted; "
        "if your index has other files of the same versions, write a lock of them: make lock",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
