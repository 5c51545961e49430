"""Values as text, between the sandbox of the tests and the sandbox of the program.

Only plain values pass: numbers, texts, containers of them, and the nodes of QuixBugs' graphs, which keep
their identity. Any other value arrives as an object that equals nothing, so an object that claims to equal
everything does not get through.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

MOST_ITEMS = 100_000
"""Maximum number of items taken from a generator."""


class Node:
    """A node of a list or graph, as made by QuixBugs' tests."""

    def __init__(
        self,
        value: Any = None,
        successor: Any = None,
        successors: Any = (),
        predecessors: Any = (),
        incoming_nodes: Any = (),
        outgoing_nodes: Any = (),
    ) -> None:
        self.value = value
        self.successor = successor
        self.successors = list(successors)
        self.predecessors = list(predecessors)
        self.incoming_nodes = list(incoming_nodes)
        self.outgoing_nodes = list(outgoing_nodes)


FIELDS = ("value", "successor", "successors", "predecessors", "incoming_nodes", "outgoing_nodes")


class Foreign:
    """Replaces a value that is not plain; it equals nothing."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __repr__(self) -> str:
        return f"<{self.kind}>"

    def __eq__(self, other: object) -> bool:
        return False

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        raise TypeError(f"a {self.kind} is neither true nor false here")


class Values:
    """Writes and reads values. Both ends use the same numbers for the same nodes."""

    def __init__(self) -> None:
        self._nodes: dict[int, Node] = {}
        self._numbers: dict[int, int] = {}

    def write(self, value: Any) -> str:
        """Write the value and all nodes that are known or reachable from it."""
        packed = self._pack(value)
        fields: dict[int, Any] = {}
        while missing := self._nodes.keys() - fields.keys():  # the known nodes grow while they are packed
            for number in missing:
                fields[number] = [self._pack(getattr(self._nodes[number], name, None)) for name in FIELDS]
        return json.dumps({"value": packed, "nodes": sorted(fields.items())})

    def read(self, text: str) -> Any:
        """Read a value; known nodes are updated with the received fields."""
        message = json.loads(text)
        for number, _ in message["nodes"]:
            self._node(number)
        for number, fields in message["nodes"]:
            for name, field in zip(FIELDS, fields, strict=True):
                setattr(self._nodes[number], name, self._unpack(field))
        return self._unpack(message["value"])

    def _node(self, number: int) -> Node:
        if number not in self._nodes:
            self._nodes[number] = Node()
            self._numbers[id(self._nodes[number])] = number
        return self._nodes[number]

    def _number(self, node: Node) -> int:
        if id(node) not in self._numbers:
            number = len(self._nodes)
            self._nodes[number], self._numbers[id(node)] = node, number
        return self._numbers[id(node)]

    def _pack(self, value: Any) -> Any:
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        if isinstance(value, Node):
            return ["node", self._number(value)]
        if isinstance(value, dict):
            return ["dict", [[self._pack(key), self._pack(item)] for key, item in value.items()]]
        for name, kind in (("list", list), ("tuple", tuple), ("set", set), ("frozenset", frozenset)):
            if isinstance(value, kind):
                return [name, [self._pack(item) for item in value]]
        if isinstance(value, bytes):
            return ["bytes", value.hex()]
        if isinstance(value, complex):
            return ["complex", [value.real, value.imag]]
        if isinstance(value, (Iterator, range)) or type(value).__module__ in ("collections", "builtins"):
            return self._items(value)
        return ["foreign", type(value).__name__]

    def _items(self, value: Any) -> Any:
        """A generator, a range, a deque or a view, as a list."""
        items = []
        try:
            for item in value:
                items.append(self._pack(item))
                if len(items) > MOST_ITEMS:
                    return ["foreign", "endless"]
        except TypeError:
            return ["foreign", type(value).__name__]
        return ["list", items]

    def _unpack(self, packed: Any) -> Any:
        if not isinstance(packed, list):
            return packed
        kind, content = packed
        match kind:
            case "node":
                return self._node(content)
            case "dict":
                return {self._unpack(key): self._unpack(item) for key, item in content}
            case "list" | "tuple" | "set" | "frozenset":
                make = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind]
                return make(self._unpack(item) for item in content)
            case "bytes":
                return bytes.fromhex(content)
            case "complex":
                return complex(*content)
            case _:
                return Foreign(str(content))
