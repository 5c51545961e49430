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
    """Return the folder that code can import from, and install these wheels into it if that has not been done
    before.

    pip uses only the files in the wheels' folder: no index, and no source that would have to be built. The
    result is in the folder ``installed`` beside the wheels, under a digest of their contents.

    Raises:
        UserError: there are no wheels, or pip cannot install them; the message contains pip's error.
    """
    found = tuple(sorted(wheels.glob("*.whl")))
    if not found:
        raise UserError(f"sandbox wheels: no file *.whl was found in {wheels}")
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
    """Digest of a wheel's name and contents; the time ``changed`` makes the cache notice an edit."""
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
            env=os.environ | {"PIP_CONFIG_FILE": os.devnull},  # it could name another index or folder
            capture_output=True,
            text=True,
            timeout=INSTALL_SECONDS,
            umask=0o022,  # sandboxes run as another user if this program is root
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"sandbox wheels: pip needed more than {INSTALL_SECONDS:g} s for {wheels}") from None
    if said.returncode:
        raise UserError(f"sandbox wheels: pip cannot install the wheels in {wheels}: {said.stderr.strip()}")
