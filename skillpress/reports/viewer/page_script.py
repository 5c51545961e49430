"""The page's modules as one script.

A page opened from a disk must not import anything, and a policy that names one script by its hash lets no
other script run. So the modules are linked into one script, each inside its own function so that their names
do not collide. The linker supports only the few forms of ``import`` and ``export`` that the page's modules
use; it refuses any other form before a browser sees it.
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


def linked(folder: Path, entry: str) -> str:
    """One script that does the work of the module ``entry`` and everything that it imports.

    Raises:
        UserError: a module is missing, two modules import each other, or a form is not supported here.
    """
    scripts: dict[str, str] = {}
    _add(folder, entry, scripts, ())
    return "\n".join(["const modules = {};", *scripts.values()])


def _add(folder: Path, module: str, scripts: dict[str, str], importers: tuple[str, ...]) -> None:
    if module in scripts:
        return
    if module in importers:
        raise UserError(f"{folder}: modules import each other: {' -> '.join([*importers, module])}")
    if not (folder / module).is_file():
        raise UserError(f"{folder / module}: no such module, which {importers[-1]} imports")
    text = _SOURCE_MAP.sub("", (folder / module).read_text(encoding="utf-8")).strip()
    for found in _IMPORT.finditer(text):
        _add(folder, _resolved(module, found["module"]), scripts, (*importers, module))
    scripts[module] = _wrapped(module, text)


def _resolved(importer: str, module: str) -> str:
    """A module's path, relative to the page's folder."""
    if module in BARE:
        return BARE[module]
    return PurePosixPath(importer).parent.joinpath(module).as_posix()


def _wrapped(module: str, text: str) -> str:
    """A module as a function that is called once and stores its exports under the module's path."""
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
        raise UserError(
            f"{module}: {unknown[0].strip()[:80]!r} is not a form of import or export that can be linked"
        )
    return f'modules["{module}"] = (() => {{\n{text}\nreturn {{ {", ".join(pairs)} }};\n}})();'


def _taken(importer: str, found: re.Match[str]) -> str:
    """An import statement as a declaration."""
    source = f'modules["{_resolved(importer, found["module"])}"]'
    if found["default"]:
        return f"const {found['default']} = {source}.default;"
    names = [_renamed(name, exporting=False) for name in found["names"].split(",") if name.strip()]
    return f"const {{ {', '.join(names)} }} = {source};"


def _renamed(name: str, *, exporting: bool) -> str:
    """``a as b`` in an object (exported: ``b: a``) or a pattern (imported: ``a: b``)."""
    own, _, other = (part.strip() for part in name.partition(" as "))
    if not other:
        return own
    return f"{other}: {own}" if exporting else f"{own}: {other}"
