"""A small shop of made-up products, the same for the same size: for tests, and for training on a CPU.

A product is a kind of thing by a maker, with some of its kind's attributes, in its title or only among its
features, and with sizes and colours. Every product has an instruction, which asks for the kind, two of its
attributes, a colour and a size.
"""

from __future__ import annotations

from random import Random

from skillpress.core.seeds import derive
from skillpress.environments.shop.catalogue import Product, Wish, highest, priced

KINDS = {
    "running shoes": ("lightweight", "waterproof", "wide fit", "memory foam", "non slip", "vegan leather"),
    "rain jacket": ("waterproof", "packable", "hooded", "fleece lined", "reflective", "slim fit"),
    "desk lamp": ("dimmable", "usb powered", "adjustable arm", "energy saving", "glare free", "cordless"),
    "water bottle": ("leak proof", "double walled", "bpa free", "wide mouth", "easy to clean", "insulated"),
    "throw blanket": ("machine washable", "soft", "fleece lined", "reversible", "allergy free", "knitted"),
    "phone case": ("shock proof", "thin edges", "slim fit", "waterproof", "card holder", "see through"),
    "backpack": ("laptop sleeve", "waterproof", "packable", "padded straps", "reflective", "anti theft"),
    "yoga mat": ("non slip", "extra thick", "latex free", "foldable", "machine washable", "eco friendly"),
}  # fmt: skip
MAKERS = ("Alder", "Birke", "Cobalt", "Drift", "Ember", "Fjord", "Grove", "Haven", "Iris", "Juno")
COLOURS = ("black", "white", "navy", "forest green", "burgundy", "mustard", "teal", "coral")
SIZES = ("small", "medium", "large", "x-large")


def synthetic(size: int) -> tuple[dict[str, Product], list[Wish]]:
    """``size`` products by asin, and an instruction for each."""
    products = [_product(number, Random(derive(0, "shop product", number))) for number in range(size)]
    wanted = [_wanted(each, Random(derive(0, "shop instruction", each.asin))) for each in products]
    return {each.asin: each for each in products}, wanted


def _product(number: int, random: Random) -> Product:
    kind = random.choice(list(KINDS))
    attributes = random.sample(KINDS[kind], 3)
    told, hidden = attributes[:2], attributes[2]
    maker = random.choice(MAKERS)
    return Product(
        asin=f"B{number:09d}",
        title=f"{maker} {kind}, {', '.join(told)}, model {number}",
        price=round(random.uniform(8, 90), 2),
        description=f"{maker} makes this {kind} for every day.",
        features=(f"It is {hidden}.", f"Also {told[0]}.", "Comes in a box."),
        reviews=("Does what it says.",),
        options={
            "color": tuple(random.sample(COLOURS, random.randint(2, 4))),
            "size": tuple(random.sample(SIZES, random.randint(2, 3))),
        },
        attributes=tuple(attributes),
        query=kind,
        category=f"Shop › {kind}",
    )


def _wanted(product: Product, random: Random) -> Wish:
    attributes = tuple(random.sample(product.attributes, 2))
    options = {name: random.choice(values) for name, values in product.options.items()}
    asked = (
        f"I want a {product.query} that is {attributes[0]} and {attributes[1]}, in the color "
        f"{options['color']} and the size {options['size']}"
    )
    most = highest(product.price)
    return Wish(
        asin=product.asin, instruction=priced(asked, most), attributes=attributes, options=options, most=most
    )
