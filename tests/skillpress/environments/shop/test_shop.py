"""WebShop's interface: its files, its pages, its actions, and its reward."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from skillpress.core.errors import TaskError, UserError
from skillpress.core.interface import AgentState
from skillpress.core.trajectory import Task
from skillpress.environments.section import SplitSizes
from skillpress.environments.shop.catalogue import Product, Wish, catalogue_of, price_of
from skillpress.environments.shop.parameters import ShopParameters
from skillpress.environments.shop.score import kind_of, scored
from tests.support.episodes import made_step, made_trajectory

WAY = ("search[rain jacket]", "click[B000000001]", "click[navy]", "click[Large]", "click[Buy Now]")


def test_products_and_instructions_are_read_from_webshops_files(section: ShopParameters, task: Task) -> None:
    catalogue = catalogue_of(section)
    assert sorted(catalogue.products) == ["B000000001", "B000000002", "B000000003"]
    jacket = catalogue.products["B000000001"]
    assert jacket.options == {"color": ("navy", "black | white"), "size": ("small", "large")}
    assert (jacket.price, jacket.attributes, jacket.query) == (
        35.5,
        ("waterproof", "packable"),
        "rain jacket",
    )
    assert catalogue.products["B000000002"].price == 1035.5
    assert task.spec["options"] == {"color": "navy", "size": "large"} and task.spec["most"] == 50.0
    assert task.spec["instruction"].endswith("size large, and price lower than 50.00 dollars")


def test_generated_instructions_are_read_too(section: ShopParameters) -> None:
    generated = section.model_copy(update={"instructions": section.attributes, "attributes": ""})
    (wanted,) = catalogue_of(generated).wanted
    assert (wanted.asin, wanted.attributes, wanted.options) == ("B000000002", ("hooded",), {})
    assert len(section.inputs()) == 3 and len(generated.inputs()) == 2


def test_the_pages_of_a_purchase(section: ShopParameters, task: Task) -> None:
    shop = section.make()
    seen, info = shop.reset(task)
    instruction = task.spec["instruction"]
    assert seen == f"Instruction: [SEP] {instruction} [SEP] Search"
    assert info.admissible == (f"search[{instruction.rpartition(', and')[0]}]",)
    seen, *_, info = shop.step(WAY[0])
    assert " [SEP] Back to Search [SEP] Page 1 (Total results: 2) [SEP] B00000000" in seen
    assert "B000000001 [SEP] Alder rain jacket, waterproof [SEP] $35.50" in seen
    assert set(info.admissible) == {"click[back to search]", "click[b000000001]", "click[b000000002]"}
    seen, *_, info = shop.step(WAY[1])
    assert "color [SEP] navy [SEP] black | white [SEP] size [SEP] small [SEP] large [SEP] Alder" in seen
    assert seen.endswith("Price: $35.50 [SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now")
    assert "packable." not in seen, "features are on a page of their own"
    assert shop.step("click[features]")[0].endswith("< Prev [SEP] It is packable. [SEP] Sealed seams.")
    shop.step("click[< prev]")
    for click in WAY[2:4]:
        seen, *_, info = shop.step(click)
    assert "navy (chosen)" in seen and "large (chosen)" in seen
    seen, terminated, truncated, info = shop.step(WAY[4])
    assert seen.endswith("Your score [SEP] 1.0000")
    assert (terminated, truncated, info.won, info.answer) == (True, False, True, "B000000001")
    assert info.measures == {"score": 1.0, "type": 1.0, "attributes": 1.0, "options": 1.0, "price": 1.0}
    with pytest.raises(RuntimeError, match="over"):
        shop.step("search[a]")


def test_what_a_page_does_not_offer_changes_nothing(section: ShopParameters, task: Task) -> None:
    shop = section.make()
    before, _ = shop.reset(task)
    for action, invalid in (
        ("click[buy now]", "not_on_the_page"),
        ("buy it", "unreadable"),
        ("search[]", "not_on_the_page"),
    ):
        seen, _, _, info = shop.step(action)
        assert (seen, info.invalid) == (before, invalid)
    shop.step(WAY[0])
    assert shop.step("search[again]")[3].invalid == "not_on_the_page", "only the search page has the bar"
    shop.step(WAY[1]), shop.step(WAY[2])
    shop.step("click[< prev]")
    assert "(chosen)" not in shop.step(WAY[1])[0], "options are forgotten with the page"


def test_an_incomplete_purchase_has_a_score_and_is_lost(section: ShopParameters, task: Task) -> None:
    shop = section.make()
    shop.reset(task)
    for action in (*WAY[:3], WAY[4]):
        info = shop.step(action)[3]
    assert (info.won, info.lost) == (False, "wrong_purchase")
    assert info.measures["score"] == pytest.approx(4 / 5)  # two attributes, one of two options, the price
    shop = section.model_copy(update={"max_steps": 2}).make()
    shop.reset(task)
    shop.step(WAY[0])
    _, terminated, truncated, info = shop.step(WAY[1])
    assert (terminated, truncated, info.measures["score"]) == (False, True, 0.0)


@pytest.mark.parametrize(
    ("title", "query", "kind"),
    [
        ("other red running shoes", "lamp", 1.0),
        ("red thing", "lamp", 0.5),  # 1 of 5 words
        ("red thing", "shoes", 1.0),
        ("garden hose", "shoes", 0.0),
    ],
)
def test_the_type_of_a_purchase(title: str, query: str, kind: float) -> None:
    target = Product("a", "red canvas running shoes light", 1.0, query="shoes")
    assert kind_of(target, Product("b", title, 1.0, query=query)) == kind
    assert kind_of(target, replace(target, title="another")) == 1.0
    many = replace(target, title=" ".join(f"{number:03}" for number in range(12)), query="")
    assert kind_of(many, Product("b", "011", 1.0)) == 0.1, "1 of 12 words"


def test_the_score_counts_attributes_options_and_price() -> None:
    wanted = Wish("a", "i", ("machine washable", "soft"), {"size": "large"}, 30.0)
    target = Product("a", "blanket", 25.0, attributes=("machine washable", "soft"))
    other = Product("b", "blanket", 35.0, attributes=("Machine-washable!",))
    assert scored(wanted, target, target, {"size": "Large"})["score"] == 1.0
    found = scored(wanted, target, other, {"size": "small"})
    assert found == {"score": 0.25, "type": 1.0, "attributes": 0.5, "options": 0.0, "price": 0.0}


def test_prices_are_read_as_webshop_writes_them() -> None:
    assert [price_of(text) for text in ("$9.99", "$1,009.50$1,200.00", "", None)] == [
        9.99,
        1009.5,
        None,
        None,
    ]


def test_the_synthetic_shop_is_the_same_for_the_same_size(synthetic: ShopParameters) -> None:
    made = [list(synthetic.make_tasks(SplitSizes(20, 10, 30), seed)) for seed in (0, 0, 1)]
    assert made[0] == made[1] != made[2]
    synthetic.check_tasks(made[0])
    with pytest.raises(TaskError, match="61 are requested, but the shop has only 60"):
        list(synthetic.make_tasks(SplitSizes(60, 0, 1), 0))


def test_a_page_of_results_can_be_turned_both_ways(synthetic: ShopParameters) -> None:
    shop = synthetic.make()
    shop.reset(next(iter(synthetic.make_tasks(SplitSizes(1, 0, 0), 0))))
    first = shop.step("search instruction")
    second = shop.step("next")
    assert "Page 2" in second[0] and "< prev" in second[0].lower()
    assert shop.step("click[< Prev]")[0] == first[0]
    assert shop.step("back")[0].endswith("Search")


def test_skills_are_named_by_the_action(section: ShopParameters, task: Task) -> None:
    said = [*WAY[:2], "click[features]", "click[< prev]", *WAY[2:], "click[back to search]", "hello"]
    trajectory = made_trajectory(steps=[made_step(action=each) for each in said])
    found = [skills[0] if skills else None for skills in section.make_projection()(task, trajectory)]
    assert found == ["Search", "Open", "Inspect", "Turn", "Choose", "Choose", "Buy", "Restart", None]


def test_the_text_prompt_lists_what_can_be_clicked(section: ShopParameters, task: Task) -> None:
    shop = section.make()
    observation, info = shop.reset(task)
    prompt = section.rendering("text", 2).prompt(AgentState(task, observation, info))
    assert task.spec["instruction"] in prompt and info.admissible[0] in prompt


@pytest.mark.parametrize(
    ("key", "content", "said"),
    [
        ("products", "[", "not JSON"),
        ("products", "{}", "holds a JSON dict; WebShop's file holds a list"),
        ("products", '[{"asin": "B1"}]', "row 0 is not a product in WebShop's form .KeyError: 'name'"),
        ("instructions", "{}", "has no instruction for a product of"),
        ("instructions", '{"B000000001": [7]}', "B000000001 has no instruction in WebShop's form"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_webshops_is_named(
    section: ShopParameters, tmp_path: Path, key: str, content: str, said: str
) -> None:
    (tmp_path / "file.json").write_text(content)
    with pytest.raises(UserError, match=rf"file\.json[\s\S]*{said}|{said}[\s\S]*file\.json"):
        catalogue_of(section.model_copy(update={key: str(tmp_path / "file.json")}))


def test_one_file_without_the_other_is_refused(files: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="name both files"):
        ShopParameters(name="shop", max_steps=9, products=files["products"])
    absent = ShopParameters(name="shop", max_steps=9, products="/absent.json", instructions="/absent.json")
    with pytest.raises(UserError, match=r"absent\.json: cannot be read"):
        catalogue_of(absent)
    assert json.loads(Path(files["products"]).read_text())
