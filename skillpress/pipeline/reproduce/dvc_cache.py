"""Where the repository's DVC cache is, and the settings with which a workspace shares it.

A user may keep the cache on another disk (``dvc cache dir FOLDER``), for one clone or for all of them, and
say how DVC links to it (``dvc config --local cache.type hardlink``). A workspace has to follow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any


def cache_folder(repository: Path) -> Path:
    """The folder of the cache: what ``dvc cache dir`` says there, else ``.dvc/cache``."""
    from dvc.config import Config  # imported here, because it costs 0.1 s that most commands can avoid

    named = Config(dvc_dir=str(repository / ".dvc"))["cache"].get("dir")
    return Path(named) if named else repository / ".dvc" / "cache"


def cached_files(repository: Path) -> Path:
    """The folder of the cache with the files themselves, by digest."""
    return cache_folder(repository) / "files" / "md5"


def workspace_settings(repository: Path) -> str:
    """The text of a workspace's .dvc/config.local: no git of its own, and the repository's cache."""
    from dvc.config import Config

    own: dict[str, Any] = Config(dvc_dir=str(repository / ".dvc")).load_one("local").get("cache", {})
    cache = {**own, "dir": cache_folder(repository)}
    lines = [f"    {key} = {_as_text(value)}\n" for key, value in cache.items()]
    return "".join(["[core]\n    no_scm = true\n[cache]\n", *lines])


def _as_text(value: object) -> str:
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
