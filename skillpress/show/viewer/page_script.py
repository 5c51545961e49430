"""The page's modules as one script.

A page that is opened from a disk may import nothing, and a policy that names one script by its hash lets
no other run. So the modules are linked into one script, each within a function of its own so that their names
do not meet. That takes the few forms of ``import`` and ``export`` that the page's modules keep to; any other
form is refused here, before a browser sees it.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath

from skillpress.core.errors import UserError

BARE = {"preact": "vendor/preact.mjs"}
"""Packages that a vendored file imports by name."""

_IMPORT = re.compile(
    r"""^import\s*(?:\{(?P<names>[^{}]*)\}|(?P<default>[\w$]+))\s*from\s*"(?P<module>[^"\n]+)";?""",
    re.MULTILINE,
)
_DECLARED = re.compile(r"^export (?=(?:async function\*?|function\*?|class|const) ([\w$]+))", re.MULTILINE)
_LISTED = re.compile(r"\bexport\s*\{([^{}]*)\};?\s*\Z")
_DEFAULT = re.compile(r"\bexport default (?=function)")
_SOURCE_MAP = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)
_UNKNOWN = re.compile(r"^\s*(?:import|export)\b.*|\bimport\s*\(.*", re.MULTILINE)


class PageError(UserError):
    """A module of the page that cannot be linked."""


def linked(folder: Path, entry: str) -> str:
    """One script that does what the module ``entry`` and all that it imports do.

    Raises:
        PageError: a module is missing, two import each other, or a form is not known here.
    """
    scripts: dict[str, str] = {}
    _add(folder, entry, scripts, ())
    return "\n".join(["const modules = {};", *scripts.values()])


def _add(folder: Path, module: str, scripts: dict[str, str], importers: tuple[str, ...]) -> None:
    if module in scripts:
        return
    if module in importers:
        raise PageError(f"{folder}: modules import each other: {' -> '.join([*importers, module])}")
    if not (folder / module).is_file():
        raise PageError(f"{folder / module}: no such module, which {importers[-1]} imports")
    text = _SOURCE_MAP.sub("", (folder / module).read_text(encoding="utf-8")).strip()
    for found in _IMPORT.finditer(text):
        _add(folder, _resolved(module, found["module"]), scripts, (*importers, module))
    scripts[module] = _wrapped(module, text)


def _resolved(importer: str, module: str) -> str:
    """A module's path from the page's folder."""
    if module in BARE:
        return BARE[module]
    return PurePosixPath(importer).parent.joinpath(module).as_posix()


def _wrapped(module: str, text: str) -> str:
    """A module as a function that is called once and leaves what it exports under the module's path."""
    exported = dict.fromkeys(_DECLARED.findall(text))
    pairs = [f"{name}" for name in exported]
    if listed := _LISTED.search(text):
        pairs += [_renamed(name, exporting=True) for name in listed[1].split(",")]
        text = text[: listed.start()]
    if _DEFAULT.search(text):
        pairs.append("default: default_")
        text = _DEFAULT.sub("const default_ = ", text)
    text = _DECLARED.sub("", text)
    text = _IMPORT.sub(lambda found: _taken(module, found), text)
    if unknown := _UNKNOWN.search(text):
        raise PageError(
            f"{module}: {unknown[0].strip()[:80]!r} is no form of import or export that is linked here"
        )
    return f'modules["{module}"] = (() => {{\n{text}\nreturn {{ {", ".join(pairs)} }};\n}})();'


def _taken(importer: str, found: re.Match[str]) -> str:
    """An import as a declaration."""
    source = f'modules["{_resolved(importer, found["module"])}"]'
    if found["default"]:
        return f"const {found['default']} = {source}.default;"
    names = [_renamed(name, exporting=False) for name in found["names"].split(",") if name.strip()]
    return f"const {{ {', '.join(names)} }} = {source};"


def _renamed(name: str, *, exporting: bool) -> str:
    """``a as b`` within an object (exported: ``b: a``) or a pattern (imported: ``a: b``)."""
    own, _, other = (part.strip() for part in name.partition(" as "))
    if not other:
        return own
    return f"{other}: {own}" if exporting else f"{own}: {other}"
