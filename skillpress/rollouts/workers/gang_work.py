"""The work of a gang as a file on the disk that its machines share.

A machine takes part only if it reads the same bytes and runs the same code as the machine that wrote the
file.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from skillpress.core.errors import UserError
from skillpress.core.lab import PACKAGE
from skillpress.core.resume import content_key
from skillpress.core.storage import atomic_path


class ForeignNodeError(UserError):
    """A node has other code or another disk than the program that started the gang."""


def source_key(code: Sequence[str] = ()) -> str:
    """A hash of the code that takes part, as this process sees it: this package and further files.

    Args:
        code: files of a lab or of another package, such as ``my_lab/methods.py``; the first part is the
            top-level package or module, in the working folder or where it is installed.

    Raises:
        ForeignNodeError: a file is not here.
    """
    return content_key({}, [PACKAGE, *(_place(name) for name in code)])


def _place(name: str) -> Path:
    """A file of code on this machine."""
    if (here := Path(name)).is_file():
        return here
    spec = find_spec(name.partition("/")[0].removesuffix(".py"))
    found = None
    if spec is not None and spec.origin is not None:
        folders = list(spec.submodule_search_locations or [])
        found = Path(folders[0]).parent / name if folders else Path(spec.origin)
    if found is None or not found.is_file():
        raise ForeignNodeError(
            f"{name}, which the experiment runs, is neither in {Path.cwd()} nor installed here: install the "
            "same packages on all machines"
        )
    return found


def write_work(work: object, file: Path, code: Sequence[str] = ()) -> tuple[str, ...]:
    """Write the work where all machines see it; return the arguments of a rank: file, its hash, the code's
    hash, and the names in ``code`` (:func:`source_key`)."""
    pickled = pickle.dumps(work)
    with atomic_path(file, private=True) as temporary:
        temporary.write_bytes(pickled)
    return str(file), hashlib.sha256(pickled).hexdigest(), source_key(code), *code


def read_work(file: Path, digest: str, source: str, code: Sequence[str] = ()) -> bytes:
    """The pickled work; ``ForeignNodeError`` if this machine has another file, or other code."""
    if not file.is_file() or hashlib.sha256(pickled := file.read_bytes()).hexdigest() != digest:
        raise ForeignNodeError(
            f"{file.resolve()} is not the file that the other machines see: the machines of a cluster must "
            "share the folder in which an experiment runs"
        )
    if (here := source_key(code)) != source:
        others = f", or one of {', '.join(code)}," if code else ""
        raise ForeignNodeError(
            f"{PACKAGE}{others} holds other code ({here}) than the program that started "
            f"the ranks ({source}); bring both to one revision"
        )
    return pickled
