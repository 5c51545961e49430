"""Packages for code inside: a folder of wheels, installed once on the host and without a network."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
from functools import cache
from pathlib import Path

from skillpress.core.errors import UserError
from skillpress.core.storage import directory_made_once

INSTALL_SECONDS = 600.0
_installing = threading.Lock()


def installed(wheels: Path) -> Path:
    """The folder that code can import from, made from these wheels unless that was done before.

    pip takes what the folder holds and nothing else: no index, no source that would have to be built. The
    result lies in the folder ``installed`` beside the wheels, by their contents.

    Raises:
        UserError: there are no wheels, or pip cannot install them; the message has what it said.
    """
    found = tuple(sorted(wheels.glob("*.whl")))
    if not found:
        raise UserError(f"sandbox wheels: there is no file *.whl in {wheels}")
    digests = [_digest(path, path.stat().st_mtime_ns) for path in found]
    tag = f"{sys.implementation.cache_tag}-{hashlib.sha256(''.join(digests).encode()).hexdigest()[:16]}"
    target = wheels / "installed" / tag
    with _installing:
        if not target.exists():
            with directory_made_once(target) as folder:
                _install(wheels, found, folder)
    return target.resolve()


@cache
def _digest(path: Path, changed: int) -> str:
    """Of a wheel's name and contents; ``changed`` tells when it was written."""
    return hashlib.sha256(path.name.encode() + b"\0" + path.read_bytes()).hexdigest()


def _install(wheels: Path, found: tuple[Path, ...], folder: Path) -> None:
    command = [
        sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check", "install", "--quiet",
        "--no-index", "--only-binary", ":all:", "--target", str(folder),
        *map(str, found),
    ]  # fmt: skip
    try:
        said = subprocess.run(
            command,
            env=os.environ | {"PIP_CONFIG_FILE": os.devnull},  # which could name another index or folder
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            umask=0o022,  # sandboxes of root run as nobody
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"sandbox wheels: pip needed more than {INSTALL_SECONDS:g} s for {wheels}") from None
    if said.returncode:
        raise UserError(f"sandbox wheels: pip cannot install those in {wheels}: {said.stderr.strip()}")
