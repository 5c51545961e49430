"""The page docs/reproduce.md: what each table needs at each scale, its cost, and which were made here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from docs.made import prose
from docs.words import NONE, table
from skillpress.evaluation.paper.manifest import PLACE, Manifest, read_manifest
from skillpress.pipeline.papers.cost import node_cost
from skillpress.pipeline.papers.planned import Machine, planned

PAGE = Path("docs/reproduce.md")
MADE = Path("studies/reuserl/made")
"""The tables that were made here: a folder per scale."""
TITLES = {"alfworld": "ALFWorld", "textworld_cooking": "TextWorld-Cooking", "countdown": "Countdown"}
COMMANDS = """
```
skillpress reproduce "Table 4" --scale smoke
skillpress reproduce "Table 1" --scale paper --dry-run                   # hours, disk, GPUs
skillpress reproduce "Table 1" --scale paper --runs workspaces/paper_*   # runs made elsewhere
```
"""
DIFFERENCES = (
    "The paper's overlays mark each value as stated, inherited or ours. Of what the paper inherits, the "
    "entropy bonus of 0.001 and repeated filler steps are missing."
)


def page(root: Path) -> str:
    """The whole page."""
    manifest = read_manifest(root / PLACE)
    lines = [
        "# Reproduce a table of the paper",
        "",
        *prose(
            f"One command makes any table of ReuseRL. [The manifest](../{PLACE}) says what each needs; "
            "`python -m studies.reuserl` makes this page of it.",
        ),
        COMMANDS,
        *prose(
            "[Ablations](experiments.md) make the runs, benchmark after benchmark; finished ones are not "
            "repeated. A run that differs in a key that the manifest does not name is refused.",
        ),
        "",
        *table(
            ("", "shows", "trainings: " + ", ".join(manifest.scales), "made here"), [*_rows(manifest, root)]
        ),
        "",
        *table(("one training", *TITLES.values()), [*_costs(manifest)]),
        "",
        *_assumptions(manifest),
    ]
    return "\n".join([*lines, "", *prose(DIFFERENCES)]) + "\n"


def _rows(manifest: Manifest, root: Path) -> Iterator[tuple[str, ...]]:
    for name, entry in manifest.tables.items():
        files = sorted((root / MADE).glob(f"*/{name.lower().replace(' ', '_')}.md"))
        here = ", ".join(f"[{file.parent.name}](../{file.relative_to(root)})" for file in files) or NONE
        if entry.rows:
            yield name, entry.words, ", ".join(_trainings(manifest, name)), here
        elif entry.made is not None:
            yield name, entry.words, "none", f"[by a command]({_from_docs(entry.made.writes)})"
        else:
            yield name, entry.words, "none", "by the code"


def _from_docs(file: str) -> str:
    """The way from docs/ to a file of the repository."""
    return file.removeprefix("docs/") if file.startswith("docs/") else f"../{file}"


def _trainings(manifest: Manifest, name: str) -> Iterator[str]:
    """The number of a table's trainings at each scale."""
    for scale in manifest.scales.values():
        seeds = sum(len(scale.benchmarks[benchmark].seeds) for benchmark in manifest.tables[name].rows)
        yield str(seeds * len(manifest.methods_of(name)))


def _costs(manifest: Manifest) -> Iterator[tuple[str, ...]]:
    for name, scale in manifest.scales.items():
        needed = planned(manifest, ["Table 1"], name, Machine())
        cells = []
        for benchmark in TITLES:
            if scale.node is None:
                minutes = scale.benchmarks[benchmark].minutes
                cells.append(NONE if minutes is None else f"{minutes:g} min")
            else:
                run = next(run for run in needed.runs() if run.benchmark == benchmark)
                each = node_cost(run, scale.node)
                used = each.hours * each.gpus
                cells.append(f"{each.hours:.0f} h, {used:.0f} GPU-hours, {each.disk_gb:.0f} GB")
        yield (f"`{name}`", *cells)


def _assumptions(manifest: Manifest) -> Iterator[str]:
    for name, scale in manifest.scales.items():
        if scale.node is not None:
            yield from prose(
                f"`{name}` was never run: these are bounds, hours and disk, on {scale.node.devices} GPUs of "
                f"{scale.node.device_memory:g} GB at {scale.node.sampling_rate:,.0f} sampled and "
                f"{scale.node.training_rate:,.0f} learned tokens a second and GPU, which are examples.",
                "Minutes are means of runs, two at once on two cores.",
            )
