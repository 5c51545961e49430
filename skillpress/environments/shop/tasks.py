"""Instructions as tasks: drawn by seed, with different ones in each split."""

from __future__ import annotations

from collections.abc import Iterator

from skillpress.core.errors import TaskError
from skillpress.core.seeds import derive
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.shop.catalogue import Wish, catalogue_of
from skillpress.environments.shop.parameters import ShopParameters


def make_tasks(section: ShopParameters, sizes: SplitSizes, seed: int) -> Iterator[Task]:
    """Yield the tasks of all splits.

    Raises:
        TaskError: there are fewer instructions than tasks.
    """
    catalogue = catalogue_of(section)
    different = {(each.asin, each.instruction): each for each in catalogue.wanted}
    drawn = sorted(different.values(), key=lambda each: derive(seed, "shop", each.asin, each.instruction))
    if len(drawn) < len(sizes.splits):
        raise TaskError(
            f"tasks: {len(sizes.splits)} are requested, but the shop has only {len(drawn)} different "
            f"instructions"
        )
    for number, (split, wanted) in enumerate(zip(sizes.splits, drawn, strict=False)):
        category = catalogue.products[wanted.asin].query or "product"
        yield Task(
            task_id=f"{wanted.asin}/{number}",
            environment=section.name,
            seed=0,
            spec={
                "asin": wanted.asin,
                "instruction": wanted.instruction,
                "attributes": list(wanted.attributes),
                "options": dict(wanted.options),
                "most": wanted.most,
            },
            split=split,
            stratum=category,
        )


def wanted_by(task: Task) -> Wish:
    """What a task asks for.

    Raises:
        KeyError: the task belongs to another environment.
    """
    spec = task.spec
    return Wish(
        asin=spec["asin"],
        instruction=spec["instruction"],
        attributes=tuple(spec["attributes"]),
        options=spec["options"],
        most=spec["most"],
    )
