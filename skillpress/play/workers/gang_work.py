"""The work of a gang as a file on the disk that its machines share.

Whoever reads another file than was written, or has other code than it was written with, is on a machine that
must not take part.
"""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path

from skillpress.core.errors import UserError
from skillpress.core.resume import content_key
from skillpress.core.storage import atomic_path

PACKAGE = Path(__file__).parents[2]
"""The code of skillpress that this process has."""


class ForeignNodeError(UserError):
    """A node has other code, or another disk, than the program that started the gang."""


def source_key() -> str:
    """A hash of this package's code as this process has it."""
    return content_key({}, [PACKAGE])


def write_work(work: object, file: Path) -> tuple[str, str, str]:
    """Leave the work where all machines see it; returns what a rank is told: file, its hash, the code's."""
    pickled = pickle.dumps(work)
    with atomic_path(file) as temporary:
        temporary.write_bytes(pickled)
    return str(file), hashlib.sha256(pickled).hexdigest(), source_key()


def read_work(file: Path, digest: str, source: str) -> bytes:
    """The pickled work, if it can be done here.

    Raises:
        ForeignNodeError: the file is not there or is another one, or the code here is another.
    """
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
