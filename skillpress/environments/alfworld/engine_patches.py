"""Patches that make alfworld's engine over fifty times faster without changing a byte of its answers.

TextWorld's PDDL games spend nearly all their time on repeated work. A PEG parser parses every command of
every step and every query of the grammar, and contexts are deep-copied. Every load and reset translates the
whole PDDL problem twice, the second time for a planner that is never used. Each patch below removes one of
these costs. Each is a function that changes one thing in the engine and returns a function that undoes the
change, so a test can play whole games with and without it.

Importing this module patches nothing. The versions are pinned: an engine that was not compared step by step
is refused, because only its code shows what can safely be cached.
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
"""The engine with which the patches were compared."""
TEXTS = 4096
"""Number of parsed grammar texts that are cached. Each game adds one text of its own, its task."""

_WORDINGS = "_skillpress_wordings"
"""Attribute of a state that holds the wordings of its game's commands."""
_TASK = re.compile(r'"task": \[\s*\{\s*"rhs": "((?:[^"\\]|\\.)*)"')

Undo = Callable[[], None]
Patch = Callable[[], Undo]


class UnknownEngineError(UserError):
    """The patches were not made for the installed engine."""


def parse_texts_once() -> Undo:
    """Parse the symbols of a grammar text once; each derivation gets its own copy of them."""
    parse = textgen._parse_and_convert

    @functools.lru_cache(TEXTS)
    def parsed(text: str, rule_name: str) -> Any:
        return parse(text, rule_name=rule_name)

    def parsed_once(text: str, rule_name: str, trace: bool = False) -> Any:
        return _copied(parsed(text, rule_name))

    return _replace(textgen, "_parse_and_convert", parsed_once)


def parse_queries_once() -> Undo:
    """Parse a condition of the grammar once; a rule never changes after its creation."""
    parse = Rule.parse_conjunctive_query
    remembered = functools.lru_cache(TEXTS)(lambda text: parse(text))

    def parsed_once(rule: type[Rule], text: str) -> Rule:
        return remembered(text)

    return _replace(Rule, "parse_conjunctive_query", classmethod(parsed_once))


def copy_symbols_shallowly() -> Undo:
    """Copy symbols and contexts only as deep as a derivation changes them.

    A derivation gives each symbol its own context and adds entries to a context's two mappings. It only reads
    the values in the mappings (variables, names of entities).
    """
    return _all(_replace(textgen, "deepcopy", _copied), _replace(textgen, "copy_context", _copied_context))


def chain_facts() -> Undo:
    """List the facts of a state in C code; the engine lists them again for every command."""

    def facts(state: Any) -> Iterator[Any]:
        return chain.from_iterable(state._facts.values())

    return _replace(State, "facts", property(facts))


def parse_grammars_once() -> Undo:
    """Parse the grammar once for all games: they differ only in the sentence of the task."""
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
    """Derive a command's wording once per game, for all environments of the process that play it.

    The wording depends only on the command's template and on the names of its objects, which are fixed within
    a game. The only query in a command (``go to``) asks where a receptacle is, and receptacles never move.
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
    """Translate a PDDL problem once, and never for the planner (using the planner is an error)."""
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
    """Determine the facts at a game's beginning once; the engine asks for each fact at every load and
    reset."""
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
    """Sort facts by their texts; the engine compares each pair by Python methods."""

    def sorted_by_key(things: Iterable[Any]) -> list[Any]:
        listed = list(things)
        facts = all(type(thing) is Proposition for thing in listed)
        return sorted(listed, key=_as_texts if facts else None)

    textworld_logic.sorted = sorted_by_key  # this module finds it before the builtin; no other does
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
"""Every patch by its name; the patches are independent."""
_applied: dict[str, Undo] = {}


def apply_patches() -> None:
    """Apply every patch for the rest of the process; the second call does nothing.

    Raises:
        UnknownEngineError: the patches were not made for this engine.
    """
    if set(_applied) != set(PATCHES):
        check_versions()
        _apply_only(PATCHES)


@contextmanager
def patched(names: Iterable[str]) -> Iterator[None]:
    """Apply exactly these patches within the block (for comparisons) and restore the earlier ones after
    it."""
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
        UnknownEngineError: the message names the package, its version and the right version.
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
    """Set an attribute; return a function that restores it."""
    original = vars(owner)[name]
    setattr(owner, name, replacement)
    return functools.partial(setattr, owner, name, original)


def _all(*undos: Undo) -> Undo:
    """Combine several undo functions into one."""

    def undo() -> None:
        for one in undos:
            one()

    return undo


class _WithoutFacts:
    """A game's library that reports no facts."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def __getattr__(self, name: str) -> Any:
        return getattr(self._library, name)

    def get_state_size(self) -> int:
        return 0

    def get_state(self, atoms: Any) -> None:
        """Do nothing: the state has no atoms."""


def _as_texts(fact: Proposition) -> tuple[Any, ...]:
    """The key by which TextWorld orders facts."""
    return fact.name, tuple([(thing.name, thing.type) for thing in fact.arguments])


def _copied_facts(state: Mapping[str, Any]) -> dict[str, Any]:
    """Copy what TextWorld keeps of a state's facts, down to the sets that a step changes."""
    return {
        "_facts": defaultdict(set, {name: set(facts) for name, facts in state["_facts"].items()}),
        "_vars_by_name": dict(state["_vars_by_name"]),
        "_vars_by_type": defaultdict(set, {kind: set(some) for kind, some in state["_vars_by_type"].items()}),
        "_var_counts": Counter(state["_var_counts"]),
    }


def _copied_context(context: Mapping[str, Any]) -> dict[str, Any]:
    return {**context, "variables": dict(context["variables"]), "mapping": dict(context["mapping"])}


def _copied(symbols: Any) -> Any:
    """Copy a symbol or a list of symbols, including nested symbols; their contexts are shared."""
    if isinstance(symbols, list):
        return [_copied(symbol) for symbol in symbols]
    twin = object.__new__(type(symbols))
    twin.__dict__.update(symbols.__dict__)
    for name, part in symbols.__dict__.items():
        if isinstance(part, textgen.Symbol):
            twin.__dict__[name] = _copied(part)
    return twin
