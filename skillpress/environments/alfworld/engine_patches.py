"""Patches that make alfworld's engine over fifty times faster and change no byte of what it says.

TextWorld's PDDL games spend nearly all their time on doing things again: every command of every
step is parsed by a PEG parser, every query of the grammar too, contexts are copied deeply, and every
load and reset translates the whole PDDL problem twice, the second time for a planner that nobody
asks. Each patch below takes one of these away. Each is a function that changes one thing in the
engine and says how to change it back, so that a test can play whole games with and without it.

Nothing is patched on import. The versions are pinned: an engine that was not compared step by step is
refused, because what is safe to remember depends on its code.
"""

from __future__ import annotations

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from itertools import chain
from typing import Any

import fast_downward
from textworld import logic as textworld_logic
from textworld.envs.pddl import logic, textgen
from textworld.logic import Proposition, Rule, State

from skillpress.core.errors import UserError
from skillpress.environments.alfworld.translations import IN_MEMORY, translated

KNOWN_VERSIONS = {"textworld": "1.7.0", "alfworld": "0.4.2", "fast-downward-textworld": "20.6.4"}
"""The engine that the patches were compared with."""
TEXTS = 4096
"""Parsed grammar texts that are remembered; a game adds one of its own, its task."""

_WORDINGS = "_skillpress_wordings"
"""Attribute of a state: the wordings of its game's commands."""
_TASK = re.compile(r'"task": \[\s*\{\s*"rhs": "((?:[^"\\]|\\.)*)"')

Undo = Callable[[], None]
Patch = Callable[[], Undo]


class UnknownEngineError(UserError):
    """The installed engine is not the one that the patches were made for."""


def parse_texts_once() -> Undo:
    """The symbols of a grammar text are parsed once; each derivation gets its own copy of them."""
    parse = textgen._parse_and_convert

    @functools.lru_cache(TEXTS)
    def parsed(text: str, rule_name: str) -> Any:
        return parse(text, rule_name=rule_name)

    def parsed_once(text: str, rule_name: str, trace: bool = False) -> Any:
        return _copied(parsed(text, rule_name))

    return _replace(textgen, "_parse_and_convert", parsed_once)


def parse_queries_once() -> Undo:
    """A condition of the grammar is parsed once; a rule is never changed after it was made."""
    parse = Rule.parse_conjunctive_query
    remembered = functools.lru_cache(TEXTS)(lambda text: parse(text))

    def parsed_once(rule: type[Rule], text: str) -> Rule:
        return remembered(text)

    return _replace(Rule, "parse_conjunctive_query", classmethod(parsed_once))


def copy_symbols_shallowly() -> Undo:
    """Symbols and contexts are copied as far as a derivation changes them, not down to the names.

    A derivation gives each symbol a context of its own and adds to a context's two mappings; what
    the mappings hold (variables, names of entities) it only reads.
    """
    return _all(_replace(textgen, "deepcopy", _copied), _replace(textgen, "copy_context", _copied_context))


def chain_facts() -> Undo:
    """All facts of a state are listed by C code; the engine lists them anew for every command."""

    def facts(state: Any) -> Iterator[Any]:
        return chain.from_iterable(state._facts.values())

    return _replace(State, "facts", property(facts))


def parse_grammars_once() -> Undo:
    """A game's grammar is parsed once for all games: they differ in the task's sentence alone."""
    parse = logic._parse_and_convert

    @functools.lru_cache(IN_MEMORY)
    def parsed(text: str) -> Any:
        return parse(text, rule_name="pddlStart")

    def parsed_once(text: str, rule_name: str) -> Any:
        tasks = _TASK.findall(text)
        if rule_name != "pddlStart" or len(tasks) != 1:
            return parse(text, rule_name=rule_name)
        actions, shared = parsed(_TASK.sub(lambda found: found[0].replace(found[1], "?"), text))
        grammar = textgen.ContextSensitiveGrammar()
        grammar.update(shared)
        own = textgen.ContextSensitiveGrammar.parse(f'{{"task": [{{"rhs": "{tasks[0]}"}}]}}')
        grammar._rules["task"] = own._rules["task"]
        return actions, grammar

    return _replace(logic, "_parse_and_convert", parsed_once)


def word_commands_once() -> Undo:
    """A command's wording is derived once per game, whichever environment of the process plays it.

    It depends on its template, on the names of what it is about, which a game fixes, and on nothing else: the
    one query in a command (``go to``) asks where a receptacle stands, and receptacles never move.
    Texts that depend on the state are derived from grammar symbols (``#look.feedback#``).
    """
    derive = textgen.ContextSensitiveGrammar.derive

    @functools.lru_cache(IN_MEMORY)
    def of_game(domain: str, problem: str) -> dict[tuple[object, ...], str]:
        return {}

    def derived_once(grammar: Any, start: str, context: Mapping[str, Any] = {}) -> str:
        state = context.get("state")
        if state is None or "#" in start:
            return str(derive(grammar, start, context))
        known = vars(state)
        if _WORDINGS not in known:  # the texts are long, and are compared once in an episode
            known[_WORDINGS] = of_game(state._logic.domain, state.pddl_problem)
        wordings: dict[tuple[object, ...], str] = known[_WORDINGS]
        key = (start, *((slot.name, thing.name) for slot, thing in context["mapping"].items()))
        if key not in wordings:
            wordings[key] = str(derive(grammar, start, context))
        return wordings[key]

    return _replace(textgen.ContextSensitiveGrammar, "derive", derived_once)


def translate_once() -> Undo:
    """A PDDL problem is translated once, and never for the planner (asking that one is an error)."""
    load_library = fast_downward.load_lib

    def translated_once(domain: str, problem: str, verbose: bool = False, optimize: bool = False) -> Any:
        return (None, "") if optimize else translated(domain, problem)

    def library_without_planner() -> Any:
        library = load_library()
        library.load_sas_replan = lambda problem: None
        return library

    def no_plan(state: Any, infos: Any) -> Any:
        raise RuntimeError("the engine is patched to have no planner; use a game's stored walkthrough")

    return _all(
        _replace(fast_downward, "pddl2sas", translated_once),
        _replace(fast_downward, "load_lib", library_without_planner),
        _replace(logic.PddlState, "replan", no_plan),
    )


def find_first_facts_once() -> Undo:
    """What is so when a game begins is asked once; the engine asks fact by fact at every load and reset."""
    build = logic.PddlState.__init__

    @functools.lru_cache(IN_MEMORY)
    def found(domain: str, problem: str) -> dict[str, Any]:
        return {}

    def built(state: Any, library: Any, problem: str, game: Any) -> None:
        first = found(game.domain, problem)
        build(state, _WithoutFacts(library) if first else library, problem, game)
        if first:
            state.downward_lib = library
            vars(state).update(_copied_facts(first))
        else:
            first.update(_copied_facts(vars(state)))

    return _replace(logic.PddlState, "__init__", built)


def sort_facts_by_key() -> Undo:
    """Facts are sorted by their texts; the engine compares each two by methods in Python."""

    def sorted_by_key(things: Iterable[Any]) -> list[Any]:
        listed = list(things)
        facts = all(type(thing) is Proposition for thing in listed)
        return sorted(listed, key=_as_texts if facts else None)

    textworld_logic.sorted = sorted_by_key  # that module alone finds it before the builtin
    return functools.partial(delattr, textworld_logic, "sorted")


PATCHES: Mapping[str, Patch] = {
    "parse_texts_once": parse_texts_once,
    "parse_queries_once": parse_queries_once,
    "copy_symbols_shallowly": copy_symbols_shallowly,
    "chain_facts": chain_facts,
    "word_commands_once": word_commands_once,
    "parse_grammars_once": parse_grammars_once,
    "translate_once": translate_once,
    "find_first_facts_once": find_first_facts_once,
    "sort_facts_by_key": sort_facts_by_key,
}
"""Every patch by its name; none depends on another."""
_applied: dict[str, Undo] = {}


def apply_patches() -> None:
    """Apply every patch for the rest of the process; does nothing the second time.

    Raises:
        UnknownEngineError: the engine is not the one that the patches were made for.
    """
    if set(_applied) != set(PATCHES):
        check_versions()
        _apply_only(PATCHES)


@contextmanager
def patched(names: Iterable[str]) -> Iterator[None]:
    """These patches and no others within the block (for comparisons); as it was after it."""
    check_versions()
    before = tuple(_applied)
    _apply_only(names)
    try:
        yield
    finally:
        _apply_only(before)


def _apply_only(names: Iterable[str]) -> None:
    while _applied:
        _, undo = _applied.popitem()
        undo()
    for name in names:
        _applied[name] = PATCHES[name]()


def check_versions() -> None:
    """Refuse an engine that was not compared.

    Raises:
        UnknownEngineError: naming the package, its version and the right one.
    """
    for package, known in KNOWN_VERSIONS.items():
        try:
            found = version(package)
        except PackageNotFoundError:
            found = "missing"
        if found != known:
            raise UnknownEngineError(
                f"{package} is {found}, but the engine's patches were compared with {known} only: install "
                f"{package}=={known}, or compare again (test_engine_patches.py) and name it in KNOWN_VERSIONS"
            )


def _replace(owner: Any, name: str, replacement: object) -> Undo:
    """Set an attribute; the result sets it back."""
    original = vars(owner)[name]
    setattr(owner, name, replacement)
    return functools.partial(setattr, owner, name, original)


def _all(*undos: Undo) -> Undo:
    """Everything that was replaced is set back at once."""

    def undo() -> None:
        for one in undos:
            one()

    return undo


class _WithoutFacts:
    """A game's library, of which nobody can ask what is so."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def get_state_size(self) -> int:
        return 0

    def get_state(self, atoms: Any) -> None:
        """There is no room for any."""


def _as_texts(fact: Proposition) -> tuple[Any, ...]:
    """What TextWorld orders facts by."""
    return fact.name, tuple([(thing.name, thing.type) for thing in fact.arguments])


def _copied_facts(state: Mapping[str, Any]) -> dict[str, Any]:
    """What TextWorld keeps of a state's facts, down to the sets that a step changes."""
    return {
        "_facts": defaultdict(set, {name: set(facts) for name, facts in state["_facts"].items()}),
        "_vars_by_name": dict(state["_vars_by_name"]),
        "_vars_by_type": defaultdict(set, {kind: set(some) for kind, some in state["_vars_by_type"].items()}),
        "_var_counts": Counter(state["_var_counts"]),
    }


def _copied_context(context: Mapping[str, Any]) -> dict[str, Any]:
    return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}


def _copied(symbols: Any) -> Any:
    """A copy of a symbol or a list of them, down to the symbols inside; their contexts are shared."""
    if isinstance(symbols, list):
        return [_copied(symbol) for symbol in symbols]
    twin = object.__new__(type(symbols))
    twin.__dict__.update(symbols.__dict__)
    for name, part in symbols.__dict__.items():
        if isinstance(part, textgen.Symbol):
            twin.__dict__[name] = _copied(part)
    return twin
