"""The work of a gang as a file on the disk that its machines share.

A machine takes part only if it reads the same bytes and runs the same code as the machine that wrote the
file.
"""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

from skillpress.core.errors import UserError
from skillpress.core.lab import PACKAGE
from skillpress.core.resume import content_key
from skillpress.core.storage import atomic_path


class ForeignNodeError(UserError):
    """A node has other code or another disk than the program that started the gang."""


def source_key() -> str:
    """A hash of this package's code, as this process sees it."""
    return content_key({}, [PACKAGE])


def write_work(work: object, file: Path) -> tuple[str, str, str]:
    """Write the work where all machines see it; return file, its hash, and the code's hash."""
    pickled = pickle.dumps(work)
    with atomic_path(file) as temporary:
        temporary.write_bytes(pickled)
    return str(file), hashlib.sha256(pickled).hexdigest(), source_key()


def read_work(file: Path, digest: str, source: str) -> bytes:
    """The pickled work; ``ForeignNodeError`` if this machine has another file, or other code."""
    if not file.is_file() or hashlib.sha256(pickled := file.read_bytes()).hexdigest() != digest:
        raise ForeignNodeError(
            f"{file.resolve()} is not the file that the other machines see: the machines of a cluster must "
            "share the folder in which an experiment runs"
        )
    if (here := source_key()) != source:
        raise ForeignNodeError(
            f"{PACKAGE} holds other code ({here}) than the program that started "
            f"the ranks ({source}); bring both to one revision"
        )
    return pickled
