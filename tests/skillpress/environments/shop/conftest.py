"""A shop of four products in WebShop's files, and a synthetic one."""

from __future__ import annotations

import json

import pytest

from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.shop.parameters import ShopParameters

PRODUCTS = [
    {
        "asin": "B000000001",
        "name": "Alder rain jacket, waterproof",
        "full_description": "A jacket.",
        "small_description": ["It is packable.", "Sealed seams."],
        "pricing": "$35.50",
        "customization_options": {
            "Color": [{"value": "Navy", "image": None}, {"value": "Black/White"}],
            "Size": [{"value": "small"}, {"value": "large"}],
        },
        "query": "Rain Jacket",
        "product_category": "Clothing › Jackets",
        "images": ["https://example.com/1.jpg"],
    },
    {
        "asin": "B000000002",
        "name": "Birke rain jacket, hooded",
        "small_description": None,
        "pricing": "$1,035.50$1,060.00",
        "customization_options": "",
        "query": "rain jacket",
        "product_category": "Clothing › Jackets",
    },
    {
        "asin": "B000000003",
        "name": "Garden hose",
        "pricing": "$20",
        "query": "hose",
        "product_category": "Garden",
    },
    {"asin": "B000000004", "name": "Without a price", "pricing": ""},
]
GENERATED = {
    "B000000001": {"attributes": ["waterproof", "packable"], "instruction": "", "instruction_attributes": []},
    "B000000002": {
        "attributes": ["hooded"],
        "instruction": "i need a hooded rain jacket.",
        "instruction_attributes": ["hooded"],
    },
    "B999999999": {
        "attributes": ["lost"],
        "instruction": "no such product",
        "instruction_attributes": ["lost"],
    },
}
HUMAN = {
    "B000000001": [
        {
            "instruction": "i want a waterproof, packable jacket in navy, size large",
            "instruction_attributes": ["waterproof", "packable"],
            "instruction_options": ["navy", "large"],
        }
    ]
}


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The keys of a section whose files are WebShop's."""
    folder = tmp_path_factory.mktemp("shop")
    named = {"products": PRODUCTS, "attributes": GENERATED, "instructions": HUMAN}
    for name, content in named.items():
        (folder / f"{name}.json").write_text(json.dumps(content))
    return {name: str(folder / f"{name}.json") for name in named} | {"indexes": str(folder / "indexes")}


@pytest.fixture(scope="session")
def section(files: dict[str, str]) -> ShopParameters:
    return ShopParameters.model_validate({"name": "shop", "max_steps": 12, **files})


@pytest.fixture(scope="session")
def task(section: ShopParameters) -> Task:
    (made,) = section.make_tasks(SplitSizes(1, 0, 0), 0)
    return made


@pytest.fixture(scope="session")
def synthetic(tmp_path_factory: pytest.TempPathFactory) -> ShopParameters:
    home = str(tmp_path_factory.mktemp("synthetic"))
    return ShopParameters(name="shop", max_steps=12, catalogue=60, indexes=home)
