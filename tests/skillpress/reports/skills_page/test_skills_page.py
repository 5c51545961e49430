"""The page in a real browser: it loads nothing, runs nothing, and shows hostile text as text."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from skillpress.core.rollout_files import write_rollouts
from skillpress.core.visible import line, visible
from skillpress.logs.fields import Wanted, success_field
from skillpress.logs.log import Log, read_log
from skillpress.logs.projection import NameProjection
from skillpress.reports.report.theme import DARK, FAMILY_COLORS, INK, PAPER, both
from skillpress.reports.skills_page import page as page_module
from skillpress.reports.skills_page.content import Settings, describe
from skillpress.reports.skills_page.episodes import episodes, frames, place_of, viewer_id
from skillpress.reports.skills_page.page import render

PATIENCE = 300_000
"""In milliseconds. The time of a page depends on the machine's other work, not only on the page."""
HOSTILE = (
    "<script>window.ran = 1</script>",
    '"><img src=x onerror="window.ran = 1">',
    "javascript:window.ran=1",
    "</style><style>body{display:none}",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x1b[0m \x00 \x08",
    "\u202eesrever\u202c \u2066x\u2069 \u200b\ufeff",
    "e" + "\u0301" * 500,
    "\ud800 half",
    "x" * 1_000_000,
)


def call(number: int, tool: str, argument: str) -> list[dict[str, Any]]:
    """A call of a tool and its answer."""
    function = {"name": tool, "arguments": json.dumps({"text": argument})}
    asked = {"id": str(number), "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [asked]},
        {"role": "tool", "tool_call_id": str(number), "content": argument},
    ]


def made_log(path: Path, tools: tuple[str, ...], said: tuple[str, ...], traces: int = 120) -> Path:
    """Traces that go through the tools in turn, twice if they succeed; every tenth line is bad."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(traces):
            won = number % 3 > 0
            used = [*tools, *(tools if won else tools[:2])]
            said_now = (said[(number + place) % len(said)] for place in range(len(used)))
            messages = [each for pair in zip(range(99), used, said_now, strict=False) for each in call(*pair)]
            record = {
                "id": said[number % len(said)][:300],
                "messages": messages,
                "won": won,
                "created": number,
            }
            file.write(json.dumps(record) + "\n")
            if number % 10 == 9:
                file.write(json.dumps({said[number % len(said)][:200]: 1}) + "\n")
    return path


def page_of(log: Log, wanted: Wanted, **more: Any) -> str:
    content = describe(log, Settings(seed=1), more.pop("compared", None))
    shown = episodes(content, NameProjection(), wanted)
    return render(content, shown, **{"title": "log", "projected_by": "tools", "viewer": None, **more})


def page_from(path: Path, success: str | None = "won", **more: Any) -> str:
    wanted = Wanted(success=None if success is None else success_field(success))
    return page_of(read_log([path], NameProjection(), wanted, 0.5), wanted, **more)


class Opened:
    """An open page with its errors and its requests."""

    def __init__(
        self, browser: Browser, html: str, folder: Path, width: int = 1280, scheme: Any = "light"
    ) -> None:
        (folder / "page.html").write_text(html, encoding="utf-8")
        self.page: Page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto((folder / "page.html").as_uri())


@pytest.mark.parametrize("width", [1280, 400])
def test_hostile_text_stays_text(browser: Browser, tmp_path: Path, width: int) -> None:
    path = made_log(tmp_path / "log", HOSTILE[:6], HOSTILE)
    opened = Opened(browser, page_from(path, title=HOSTILE[0]), tmp_path, width)
    page = opened.page
    page.eval_on_selector_all("details", "all => all.forEach(each => each.open = true)")
    assert page.evaluate("window.ran") is None
    assert page.evaluate("document.scripts.length + document.images.length + document.forms.length") == 0
    assert opened.complaints == [] and len(opened.requests) == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "nothing is wider than the screen"
    text = page.inner_text("body")
    assert "<script>window.ran = 1</script>" in text and "{{ 7 * 7 }}" in text and "\\u202eesrever" in text
    assert not set("\x00\x08\x1b\u202e\u2066\u200b\ufeff") & set(text)
    assert len(page.content()) < 3_000_000, "a million letters are cut"
    links = page.eval_on_selector_all("a", "all => all.map(each => each.getAttribute('href'))")
    assert all(link.startswith("#") for link in links)


def test_a_link_opens_the_trace_behind_a_phrase(browser: Browser, tmp_path: Path) -> None:
    opened = Opened(browser, page_from(made_log(tmp_path / "log", ("a", "b", "c"), ("x",))), tmp_path)
    assert not opened.page.locator("details.episode[open]").count()
    opened.page.click("#routines td.ids a >> nth=0")
    opened.page.wait_for_selector("details.episode[open] .frame.learned")


def test_the_page_says_what_it_found(tmp_path: Path) -> None:
    html = page_from(made_log(tmp_path / "log", ("look", "edit", "test"), ("x",), traces=180))
    for sentence in (
        "won: 120 won, 60 lost",
        "18 of 198 lines, which are not traces",
        "Bonferroni",
        "ordered by time",
    ):
        assert sentence in html
    assert "Two versions" not in html and "all its traces" not in html


def test_without_outcomes_the_comparison_is_left_out_and_said_so(tmp_path: Path) -> None:
    path = made_log(tmp_path / "log", ("look", "edit"), ("x",))
    path.write_text(path.read_text(encoding="utf-8").replace('"won"', '"marked"'), encoding="utf-8")
    html = page_from(path, success=None)
    assert "not certain; --success FIELD takes one" in html and "does not say which is better" in html
    assert "these traces do not say which succeeded" in html and "Bonferroni" not in html
    assert "fitted to all 120 traces" in html
    assert "are successes, so there is nothing to compare" in page_from(path, success="created>=0")


def test_another_log_is_compared_with(tmp_path: Path) -> None:
    wanted = Wanted()
    other = read_log([made_log(tmp_path / "b", ("look", "guess"), ("x",))], NameProjection(), wanted, 0.5)
    html = page_from(made_log(tmp_path / "a", ("look", "edit"), ("x",)), success=None, compared=other)
    assert "the traces compared with</bdi> (120 traces" in html and "guess" in html


def test_traces_without_any_routine_have_a_page(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(json.dumps({"messages": call(1, "look", "x")}) + "\n")
    html = page_from(path, success=None)
    assert "There is no routine" in html and "No certificate" in html


def test_a_rollout_links_into_the_viewer(episode, tmp_path: Path) -> None:
    for name in ("one", "two"):
        episodes_played = [episode(f"{name}{n}", 0, ["look", "go", "look", "go"], True) for n in range(30)]
        write_rollouts(tmp_path / name, episodes_played)
    made_log(tmp_path / "between", ("look", "go"), ("x",), traces=3)
    log = read_log([tmp_path / n for n in ("one", "between", "two")], NameProjection(), Wanted(), 0.5)
    assert [viewer_id(log, place) for place in (0, 29, 30, 33)] == ["0-0", "0-29", None, "1-0"]
    assert place_of(log, 33) == f"{tmp_path / 'two'}, episode 0"
    rollouts = read_log([tmp_path / "one"], NameProjection(), Wanted(), 0.5)
    assert 'href="http://127.0.0.1:9/#/episode/0-0"' in page_of(
        rollouts, Wanted(), viewer="http://127.0.0.1:9/"
    )
    assert "<code>#/episode/0-0</code>" in page_of(rollouts, Wanted())


def test_every_step_of_a_trace_is_in_one_frame(tmp_path: Path) -> None:
    path = made_log(tmp_path / "log", ("a", "b", "c"), ("x",))
    content = describe(read_log([path], NameProjection(), Wanted(), 0.5), Settings())
    shown = episodes(content, NameProjection(), Wanted())
    for each in shown:
        numbers = [step.number for frame in each.frames for step in frame.steps]
        assert numbers == list(range(1, each.steps + 1))
    steps = [step for frame in shown[0].frames for step in frame.steps]
    unnamed = replace(steps[0], skill=None)
    found = frames([unnamed, *steps, unnamed], content.dictionary)
    assert [step for frame in found for step in frame.steps] == [unnamed, *steps, unnamed]


def test_hidden_letters_become_visible_and_long_texts_are_cut() -> None:
    assert visible("a\u202eb\x1b[0m\n", 99) == "a\\u202eb\\u001b[0m\n"
    assert visible("x" * 50, 10) == "x" * 10 + " … (50 characters)"
    assert line("a\nb\tc" + "x" * 50, 5) == "a⏎b c…"
    assert visible("e\u0301\u0301\u0301\u0301\u0301\u0301", 99) == "e\u0301\u0301\u0301\u0301"
    assert visible("naïve Ωмега 漢字", 99) == "naïve Ωмега 漢字"


def test_the_page_follows_the_readers_scheme(browser: Browser, tmp_path: Path) -> None:
    """Backgrounds and letters swap; cells take the shades of the report's."""
    path = made_log(tmp_path / "log", ("look", "find", "open"), ("hello",))
    seen = {}
    for scheme in ("light", "dark"):
        page = Opened(browser, page_from(path), tmp_path, 400, scheme).page
        seen[scheme] = [
            page.eval_on_selector(where, f"each => getComputedStyle(each).{what}")
            for where, what in (
                ("body", "backgroundColor"), ("body", "color"), (".k0", "backgroundColor"),
            )
        ]  # fmt: skip
    light, dark = (["#" + "".join(f"{int(n):02x}" for n in re.findall(r"\d+", each)) for each in seen[s]]
                   for s in ("light", "dark"))  # fmt: skip
    assert light == [PAPER, INK, FAMILY_COLORS[0]]
    assert dark == [DARK[PAPER], DARK[INK], DARK[FAMILY_COLORS[0]]]
    css = (Path(page_module.__file__).parent / "templates" / "skills.css").read_text(encoding="utf-8")
    assert all(f".k{n} {{ background: {both(color)}; }}" in css for n, color in enumerate(FAMILY_COLORS))
