"""What is true in a game and what can be done, by TextWorld's own rules, ten times as fast.

TextWorld computes the admissible commands from scratch after every action, with general code that takes 5 to
9 ms, while the Z-machine itself takes less than one. Here a game's rules are converted once into a plain form
and matched by a join over indexed facts. The rules, their order and the commands are the design's own; tests
compare every list with TextWorld's along whole games.

A fact is a tuple of the predicate's name and entities' ids; a state is a frozen set of facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import textworld
from textworld.logic import Predicate

Fact = tuple[str, ...]
State = frozenset[Fact]


class Action(NamedTuple):
    """A rule whose places are filled with entities."""

    command: str
    event: str
    """Its name in the Z-machine's trace, in lower case."""
    preconditions: int
    """Number of preconditions. Among actions with the same event, the one with the most preconditions
    happened."""
    added: tuple[Fact, ...]
    removed: tuple[Fact, ...]


def commands(actions: Iterable[Action]) -> tuple[str, ...]:
    """The actions' commands, sorted, each once: TextWorld's admissible commands."""
    return tuple(sorted({action.command for action in actions}))


def happened(event: str, actions: Sequence[Action]) -> Action | None:
    """The possible action that the trace's event reports; None if no rule matches.

    ``take X`` with X in or on something is traced as plain *taking*, which TextWorld's own tracking
    overlooks. It is the removal of X from there.
    """
    meant = [action for action in actions if action.event == event]
    if not meant and event.startswith("taking "):
        removal = f"removing {event.removeprefix('taking ')} from "
        meant = [action for action in actions if action.event.startswith(removal)]
    return max(meant, key=lambda action: action.preconditions, default=None)


def after(state: State, action: Action) -> State:
    """The state after an action."""
    return (state - set(action.removed)) | set(action.added)


@dataclass(frozen=True)
class _Pattern:
    """A predicate whose arguments are places, numbered throughout the rule."""

    name: str
    places: tuple[int, ...]

    def fact(self, entities: Sequence[str | None]) -> Fact:
        return (self.name, *(str(entities[place]) for place in self.places))


@dataclass(frozen=True)
class _Rule:
    command: str
    event: str
    preconditions: tuple[_Pattern, ...]
    added: tuple[_Pattern, ...]
    removed: tuple[_Pattern, ...]
    place_names: tuple[str, ...]
    """The places' names in the templates."""
    place_types: tuple[frozenset[str], ...]
    """Types of entities that fit each place."""
    start: tuple[str | None, ...]
    """Constants in their places, None in the others."""


@dataclass(frozen=True)
class Logic:
    """One game's entities, rules and first state."""

    names: Mapping[str, str]
    """Maps entity ids to names in commands; only for entities that have a name."""
    types: Mapping[str, str]
    """Maps entity ids to types, such as ``f`` for food or ``r`` for room."""
    first: State
    rules: tuple[_Rule, ...]

    def actions(self, state: State) -> list[Action]:
        """All actions that the rules allow, in the rules' order."""
        index: dict[str, list[Fact]] = {}
        for fact in state:
            index.setdefault(fact[0], []).append(fact)
        return [self._ground(rule, found) for rule in self.rules for found in self._match(rule, index)]

    def _match(self, rule: _Rule, index: Mapping[str, list[Fact]]) -> Iterator[tuple[str | None, ...]]:
        """The ways to fill the rule's places so that its preconditions hold; no entity fills two places."""
        if all(pattern.name in index for pattern in rule.preconditions):
            yield from self._join(rule, index, 0, list(rule.start))

    def _join(
        self, rule: _Rule, index: Mapping[str, list[Fact]], depth: int, filled: list[str | None]
    ) -> Iterator[tuple[str | None, ...]]:
        if depth == len(rule.preconditions):
            yield tuple(filled)
            return
        pattern = rule.preconditions[depth]
        for fact in index[pattern.name]:
            new: list[int] = []
            for place, entity in zip(pattern.places, fact[1:], strict=True):
                if filled[place] is None:
                    if entity in filled or self.types[entity] not in rule.place_types[place]:
                        break
                    filled[place] = entity
                    new.append(place)
                elif filled[place] != entity:
                    break
            else:
                yield from self._join(rule, index, depth + 1, filled)
            for place in new:
                filled[place] = None

    def _ground(self, rule: _Rule, entities: Sequence[str | None]) -> Action:
        names = {
            place: self.names.get(str(entity), "")
            for place, entity in zip(rule.place_names, entities, strict=True)
        }
        return Action(
            command=rule.command.format_map(names),
            event=rule.event.format_map(names).lower(),
            preconditions=len(rule.preconditions),
            added=tuple(pattern.fact(entities) for pattern in rule.added),
            removed=tuple(pattern.fact(entities) for pattern in rule.removed),
        )


@lru_cache(maxsize=64)
def read_logic(design: Path) -> Logic:
    """The logic of a design. It takes 15 ms; the last 64 games are cached."""
    game = textworld.Game.load(str(design))
    knowledge = game.kb
    constants = {place.name for place in knowledge.types.constants_mapping}
    names = {key: info.name for key, info in game.infos.items() if info.name}
    types = {variable.name: variable.type for fact in game.world.facts for variable in fact.arguments}
    first = frozenset((fact.name, *(v.name for v in fact.arguments)) for fact in game.world.facts)
    rules = []
    for rule in knowledge.rules.values():
        places = {place.name: number for number, place in enumerate(rule.placeholders)}

        def patterns(
            predicates: Sequence[Predicate], places: Mapping[str, int] = places
        ) -> tuple[_Pattern, ...]:
            return tuple(_pattern(predicate, places) for predicate in predicates)

        before, afterwards = patterns(rule.preconditions), patterns(rule.postconditions)
        rules.append(
            _Rule(
                command=knowledge.inform7_commands[rule.name],
                event=knowledge.inform7_events[rule.name],
                preconditions=before,
                added=tuple(pattern for pattern in afterwards if pattern not in before),
                removed=tuple(pattern for pattern in before if pattern not in afterwards),
                place_names=tuple(places),
                place_types=tuple(
                    frozenset((place.type, *knowledge.types.descendants(place.type)))
                    for place in rule.placeholders
                ),
                start=tuple(name if name in constants else None for name in places),
            )
        )
    return Logic(names, types, first, tuple(rules))


def _pattern(predicate: Predicate, places: Mapping[str, int]) -> _Pattern:
    return _Pattern(predicate.name, tuple(places[place.name] for place in predicate.parameters))
