"""The random explorer as a player: the baseline for every success rate."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from skillpress.cli.evaluations.collection import PlaysHere
from skillpress.cli.evaluations.players import SERVER_OPTIONS, refuse_options
from skillpress.experiment.params import Params


@dataclass(frozen=True)
class Explorer(PlaysHere):
    """The random explorer, the baseline of every table."""

    label: str = "random explorer"

    def options(self) -> Mapping[str, Any]:
        """policy.model is the explorer's label."""
        return {"policy": {"model": self.label}}

    def repeats(self, params: Params) -> str:
        """It computes only with integers, so its episodes are the same on every machine."""
        return "the same episodes on every machine"

    def check(self, params: Params) -> Mapping[str, Any]:
        """Empty: its draws depend only on the seed."""
        return {}


def player(options: Namespace) -> Explorer:
    """The explorer; options that describe a model are refused."""
    refuse_options(options, "explorer", "model", *SERVER_OPTIONS, "temperature")
    return Explorer()
