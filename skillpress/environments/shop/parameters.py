"""A shop in WebShop's interface: find, configure and buy the product that an instruction asks for.

Written from memory of the WebShop paper (Yao et al. 2022); neither the paper nor its code was available.
``catalogue.py`` reads products and instructions in WebShop's files, ``synthetic.py`` makes small ones,
``score.py`` has the reward, ``environment.py`` the pages.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import Field, model_validator

from skillpress.core.interface import Environment, Rendering, ScratchVocabulary
from skillpress.core.trajectory import Task
from skillpress.environments.section import EnvironmentSection, Oracle, Projection, SplitSizes
from skillpress.environments.shop.skills import PROJECTION


class ShopParameters(EnvironmentSection):
    """Which products the shop has, and which instructions there are."""

    measures: ClassVar[tuple[str, ...]] = ("score", "type", "attributes", "options", "price")
    """Measured at the last step: WebShop's reward, and its parts as shares. Success is a score of 1."""
    libraries: ClassVar[tuple[str, ...]] = ("tantivy",)

    products: str = ""
    """JSON file of products in WebShop's form (``items_shuffle.json``). If empty, a synthetic catalogue is
    made."""
    instructions: str = ""
    """JSON file of WebShop's instructions by product (``items_ins_v2.json`` or ``items_human_ins.json``)."""
    attributes: str = ""
    """JSON file with the attributes of products, if ``instructions`` has none (``items_ins_v2.json``)."""
    catalogue: Annotated[int, Field(ge=10, le=20_000)] = 300
    """Number of products of a synthetic catalogue."""
    indexes: str = ""
    """Folder of search indexes; if empty, as in ``notebook_qa``."""

    @model_validator(mode="after")
    def _both_files(self) -> ShopParameters:
        if bool(self.products) != bool(self.instructions):
            raise ValueError(
                f"products is {self.products!r} and instructions {self.instructions!r}: name both files, or "
                "neither for a synthetic catalogue"
            )
        return self

    def make_tasks(self, sizes: SplitSizes, seed: int) -> Iterator[Task]:
        from skillpress.environments.shop.tasks import make_tasks

        return make_tasks(self, sizes, seed)

    def make(self) -> Environment:
        from skillpress.environments.shop.environment import Shop

        return Shop(self)

    def make_projection(self) -> Projection:
        return PROJECTION

    def renderings(self) -> Mapping[str, Callable[[int], Rendering]]:
        from skillpress.environments.shop.prompts import OWN, CompactRendering, TextRendering

        return {
            "compact": lambda history: CompactRendering(history),
            "text": lambda history: TextRendering(history, OWN),
        }

    def vocabulary(self, history: int) -> ScratchVocabulary:
        from skillpress.environments.shop.prompts import vocabulary

        return vocabulary(history)

    def make_oracle(self) -> Oracle:
        from skillpress.environments.shop.oracle import ShopOracle

        return ShopOracle(self)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that are named."""
        named = (self.products, self.instructions, self.attributes)
        return tuple(Path(name).expanduser() for name in named if name)

    def inputs(self) -> Mapping[str, str]:
        from skillpress.environments.shop.catalogue import file_bytes

        return {
            file.name: hashlib.blake2b(file_bytes(file), digest_size=16).hexdigest() for file in self.files
        }
