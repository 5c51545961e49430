"""The page in a real browser: every figure is drawn, nothing is loaded, nothing fails."""

from __future__ import annotations

import dataclasses

import polars as pl
import pytest
from playwright.sync_api import Browser

from skillpress.reports.report.data import Curve, Example, ExampleStep, ReportData
from skillpress.reports.report.dictionary_figures import LABEL, _labels
from skillpress.reports.report.page import render_report
from skillpress.reports.report.theme import BASELINE_COLORS, DARK, FAMILY_COLORS, KIND_COLORS, METHOD_COLORS

PATIENCE = 300_000
"""In milliseconds. The time of a page depends on the machine's other work, not only on the page."""
MARKS = ".scatterlayer .trace, .barlayer .trace"


class Opened:
    """An open page with its errors and its requests."""

    def __init__(self, browser: Browser, html: str, folder, width: int = 1280, scheme="light") -> None:
        (folder / "report.html").write_text(html, encoding="utf-8")
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page.set_default_timeout(PATIENCE)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(m.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto((folder / "report.html").as_uri())
        self.page.wait_for_function(
            "[...document.querySelectorAll('.plot')].every(p => p.querySelector('svg.main-svg'))"
        )

    def traces(self) -> dict[str, int]:
        """Figure to the number of its traces in the drawing."""
        return self.page.evaluate(
            "marks => Object.fromEntries([...document.querySelectorAll('.plot')]"
            ".map(p => [p.id, p.querySelectorAll(marks).length]))",
            MARKS,
        )


@pytest.mark.parametrize("name", ["experiment", "ablation"])
def test_every_figure_is_drawn_without_a_complaint_or_a_network(request, browser, tmp_path, name):
    data: ReportData = request.getfixturevalue(name)
    opened = Opened(browser, render_report(data), tmp_path)
    methods = len({policy.method for policy in data.policies})
    trained = len({curve.method for curve in data.curves})
    traces = opened.traces()
    assert traces["figure-success"] == methods
    assert traces["figure-budget"] >= methods
    assert traces["figure-lengths"] == 2 * methods  # a histogram and a median each
    assert traces["figure-mix"] == 7  # kinds of action
    curves = [count for figure, count in traces.items() if figure.startswith("figure-curve-")]
    assert len(curves) == 6 and min(curves) >= trained
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith(("file:", "data:"))] == []


def test_what_was_rewarded_beside_success_is_shown_as_l0s_figure_3(experiment, browser, tmp_path):
    (curve,) = experiment.curves
    rewarded = curve.frame.with_columns(
        pl.lit(0.4).alias("reward/executed"),
        pl.lit(0.1).alias("reward/format"),
        pl.lit(250.0).alias("response_tokens"),
        pl.lit(6.5).alias("episode_length"),
    )
    data = dataclasses.replace(experiment, curves=[dataclasses.replace(curve, frame=rewarded)])
    opened = Opened(browser, render_report(data), tmp_path)
    assert opened.page.locator("#rewards h3").all_inner_texts() == [
        "Reward: executed", "Reward: format", "Length of responses", "Steps of an episode",
    ]  # fmt: skip
    drawn = {name for name, traces in opened.traces().items() if traces}
    assert {"figure-curve-reward-executed", "figure-curve-response_tokens"} <= drawn
    assert opened.complaints == [] and "What was rewarded" not in render_report(experiment)


def test_the_dictionary_has_a_section_of_its_own(experiment, browser, tmp_path):
    opened = Opened(browser, render_report(experiment), tmp_path)
    traces = opened.traces()
    assert traces["figure-bits"] == 2  # the dictionary and the successes
    assert traces["figure-savings"] == len({len(phrase) for phrase in experiment.dictionary.learned})
    assert traces["figure-coverage"] == traces["figure-lifetimes"] == 1
    assert traces["figure-similarity"] == 3  # with the step before, with the base, by uses
    assert traces["figure-scaling"] == 2  # ours and the other
    captions = opened.page.locator("#dictionary figcaption").all_inner_texts()
    assert captions[-1].endswith("A benchmark, not this experiment: a laptop, 2 cores, 2026-11-21.")


@pytest.mark.parametrize("width", [1280, 768, 360])
def test_the_page_is_never_wider_than_the_screen(experiment, browser, tmp_path, width):
    opened = Opened(browser, render_report(experiment), tmp_path, width)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    widest = opened.page.evaluate(
        "Math.max(...[...document.querySelectorAll('svg.main-svg')]"
        ".map(drawing => drawing.getBoundingClientRect().right))"
    )
    assert widest <= width


def flat(experiment: ReportData) -> ReportData:
    """An experiment whose curves hardly move: with few decimals, ticks would look the same."""
    (curve,) = experiment.curves
    hardly = curve.frame.with_columns(
        success=0.04 + 0.01 * pl.col("success"),
        invalid=0.01 + 1e-5 * pl.col("invalid"),
        success_length=pl.lit(1 / 3),
        entropy=1000 + 1e-3 * pl.col("entropy"),
    )
    return dataclasses.replace(experiment, curves=[dataclasses.replace(curve, frame=hardly)])


def test_no_two_ticks_of_an_axis_read_alike(experiment, browser, tmp_path):
    axes = Opened(browser, render_report(flat(experiment)), tmp_path).page.evaluate(
        "[...document.querySelectorAll('.plot')].flatMap(plot => ['.xtick', '.ytick']"
        ".map(tick => [...plot.querySelectorAll(tick + ' text')].map(text => text.textContent)))"
    )
    assert len(axes) > 30 and all(axes[:2])
    assert [labels for labels in axes if len(set(labels)) < len(labels)] == []


LOOKS = """() => {
  const channels = (color) => color.match(/[\\d.]+/g).slice(0, 3).map(Number);
  const light = (color) => channels(color).reduce((sum, part) => sum + part, 0) / 765;
  const words = [...document.querySelectorAll("p, td, th, figcaption, dd, small, code")];
  return {
    ground: light(getComputedStyle(document.body).backgroundColor),
    ink: words.map((each) => light(getComputedStyle(each).color)),
    ticks: [...document.querySelectorAll(".xtick text, .ytick text")]
      .map((each) => light(getComputedStyle(each).fill)),
    wide: [...document.querySelectorAll(".scroll")].filter((each) => each.scrollWidth > each.clientWidth)
      .map((each) => getComputedStyle(each).backgroundImage),
    page: document.documentElement.scrollWidth,
  };
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_narrow_page_of_either_scheme_can_be_read_and_shows_where_tables_go_on(
    experiment, browser, tmp_path, scheme
):
    looks = Opened(browser, render_report(experiment), tmp_path, 400, scheme).page.evaluate(LOOKS)
    assert (looks["ground"] > 0.9) == (scheme == "light")
    assert len(looks["ticks"]) > 50 and len(looks["ink"]) > 100
    assert min(abs(shade - looks["ground"]) for shade in looks["ink"] + looks["ticks"]) > 0.35
    assert len(looks["wide"]) > 5 and all("gradient" in image for image in looks["wide"])
    assert looks["page"] <= 400


def test_every_colour_has_a_shade_for_dark_pages_that_is_mapped_once():
    assert not set(DARK) & set(DARK.values())
    assert {*METHOD_COLORS, *BASELINE_COLORS, *KIND_COLORS, *FAMILY_COLORS} <= set(DARK)


def test_the_page_counts_methods_without_baselines_and_speaks_of_seeds_where_there_are_several(
    experiment, ablation
):
    one, many = render_report(experiment), render_report(ablation)
    assert "1 method and 2 baselines on" in one
    assert "4 methods and 2 baselines on" in many
    said = ("Bands span the seeds", "the band spans the seeds", "Other trainings", "one training seed's")
    assert [words for words in said if words in one] == []
    assert "Bands span the seeds" in many and "the band spans the seeds" in many
    assert "{{" not in one.split("<script>")[0]


def test_a_page_of_very_few_tasks_says_that_its_intervals_are_rough(experiment):
    few = [
        dataclasses.replace(p, summary=dataclasses.replace(p.summary, tasks=6)) for p in experiment.policies
    ]
    said = "Intervals over fewer than 10 tasks are rough"
    assert said in render_report(dataclasses.replace(experiment, policies=few))
    assert said not in render_report(experiment)


def test_phrases_that_are_cut_alike_have_labels_of_their_own():
    long = "OP_Add-small-small → OP_Sub-large-near_target"
    labels = _labels([f"{long} → {end}" for end in ("Reset", "Rollback", "OP_Mul")])
    assert len(set(labels)) == 3 and max(map(len, labels)) <= LABEL


def test_an_episode_is_drawn_as_one_box_per_phrase_and_one_cell_per_step(experiment, browser, tmp_path):
    page = Opened(browser, render_report(experiment), tmp_path).page
    for example in experiment.examples:
        figure = page.locator("figure", has=page.get_by_role("heading", name=example.title))
        assert figure.locator(".box:not(.alone)").count() == len(example.phrases)
        assert figure.locator(".cell code").all_inner_texts() == [step.action for step in example.steps]


def test_text_from_outside_is_shown_and_never_run(experiment, browser, tmp_path):
    hostile = "<img src=x onerror=\"console.error('run')\"></script><script>console.error('run')</script>"
    data = dataclasses.replace(
        experiment,
        title=hostile,
        policies=[dataclasses.replace(policy, method=hostile) for policy in experiment.policies],
        curves=[Curve(hostile, experiment.curves[0].frame)],
        comparisons={hostile: next(iter(experiment.comparisons.values()))},
        examples=[Example.of(hostile, hostile, [ExampleStep(hostile, hostile)], None)],
        parameters={hostile: {hostile: hostile}},
        versions={hostile: hostile},
    )
    opened = Opened(browser, render_report(data), tmp_path)
    assert opened.complaints == []
    assert opened.page.locator("img").count() == 0
    assert opened.page.locator("h1").inner_text() == hostile


def test_the_same_data_give_the_same_page(experiment):
    assert render_report(experiment) == render_report(experiment)


def test_an_experiment_without_training_curves_examples_or_dictionary_has_a_page_too(
    experiment, browser, tmp_path
):
    data = ReportData(experiment.title, experiment.policies)
    opened = Opened(browser, render_report(data), tmp_path)
    assert opened.complaints == []
    assert opened.page.locator("section").count() == 3
    assert opened.page.locator("nav a").count() == 3


def test_a_report_about_nothing_is_refused():
    with pytest.raises(ValueError, match="at least one evaluated policy"):
        render_report(ReportData("empty", []))
