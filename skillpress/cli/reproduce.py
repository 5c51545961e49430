"""A paper's tables from one command, each figure next to the printed one.

    skillpress reproduce "Table 4" --scale smoke              runs what is missing, prints the table
    skillpress reproduce "Table 1" --scale paper --dry-run    runs, hours, disk and GPUs; nothing starts
    skillpress reproduce "Table 1" --scale paper --runs workspaces/*-seed0    of runs made elsewhere
    skillpress reproduce "Table 3"                            of the code alone

The manifest (studies/reuserl/tables.yaml) says what each table needs. ``python -m flows.ablation`` makes
missing runs, one benchmark after the other; finished stages are not repeated. A run whose parameters differ
from the manifest's is refused, unless the manifest names the key in ``may_differ``: --params and --set are
for these, such as params/servers.yaml.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from skillpress.core.arguments import CommandParser, many_seeds, output_folder
from skillpress.core.errors import UserError
from skillpress.core.lab import lab_file, overlay
from skillpress.core.storage import read_json, write_text
from skillpress.evaluation.paper.manifest import PLACE, Made, Manifest, PaperEntry, read_manifest
from skillpress.pipeline import parent
from skillpress.pipeline.files import RESULTS
from skillpress.pipeline.finished.run import read_unchanged
from skillpress.pipeline.papers.mapping import MappedPart, mapped, markdown
from skillpress.pipeline.papers.planned import Machine, PaperRun, Planned, planned, scaled_params
from skillpress.pipeline.papers.written import write_tables
from skillpress.pipeline.settings import ROOT


class NotReproducedError(UserError):
    """A part of a table cannot be made here, or differs from the paper's; the message says what."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = CommandParser(description=__doc__)
    parser.add_argument("tables", nargs="+", metavar="TABLE", help='as in the manifest: "Table 4", 4, F.1')
    parser.add_argument("--scale", default="small", help="a scale of the manifest (small)")
    parser.add_argument("--only", nargs="+", default=(), metavar="BENCHMARK", help="such as countdown (all)")
    parser.add_argument("--seeds", nargs="+", type=many_seeds, default=(), help="instead of the manifest's")
    parser.add_argument(
        "--params", type=overlay, action="append", default=[], help="overlay for this machine"
    )
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="the same, one key")
    parser.add_argument("--runs", nargs="+", type=Path, metavar="RUN", help="finished runs; start none")
    parser.add_argument("--dry-run", action="store_true", help="print runs and cost, start nothing")
    parser.add_argument("--manifest", type=Path, help=f"another than {PLACE}")
    parser.add_argument(
        "--out", type=output_folder, default=str(RESULTS / "reproduce"), help="folder to write"
    )
    chosen = parser.parse_args(arguments)
    manifest = read_manifest(chosen.manifest or lab_file(PLACE))
    names = list(dict.fromkeys(map(manifest.named, chosen.tables)))
    seeds = tuple(seed for word in chosen.seeds for seed in word)
    machine = Machine(tuple(map(str, chosen.params)), tuple(chosen.set), seeds)
    for name in names:
        if not manifest.tables[name].rows:
            _of_no_run(name, manifest, chosen.dry_run, chosen.out)
    if of_runs := [name for name in names if manifest.tables[name].rows]:
        needed = planned(manifest, of_runs, chosen.scale, machine, chosen.only)
        runs = needed.runs()
        if chosen.dry_run:
            print("\n".join(_cost_lines(of_runs, needed, runs)))
            return 0
        folders = chosen.runs or _made_here(needed, runs)
        for table in write_tables(of_runs, list(map(read_unchanged, folders)), needed, chosen.out):
            print(f"{table.markdown.replace('<br>', '; ')}\n{table.file}")
    return 0


def _made_here(needed: Planned, runs: Sequence[PaperRun]) -> list[Path]:
    """The folders of the runs; missing runs are made first.

    Raises:
        NotReproducedError: this machine lacks the GPUs, or a run failed.
    """
    node, processes = needed.manifest.scales[needed.scale].node, max(run.params.processes for run in runs)
    if node is not None:
        import torch  # in seconds

        if (count := torch.cuda.device_count()) < processes:
            raise NotReproducedError(
                f"--scale {needed.scale}: needs {processes} GPUs, but this machine has {count}; --dry-run "
                "says what it costs, --runs uses runs made elsewhere, --scale small runs here"
            )
    for benchmark, methods in needed.methods.items():
        words = [word for file in needed.common(benchmark) for word in ("--common", file)]
        for method in methods:
            words += ["--params", needed.manifest.methods[method].overlay]
        words += [word for assignment in needed.assignments(benchmark) for word in ("--set", assignment)]
        _in_lab("flows.ablation", *words, "--seeds", *map(str, needed.seeds(benchmark)))
    return [run.folder for run in runs]


def _in_lab(*module_and_words: str) -> None:
    """Run a module of the lab and wait for it. Raises ``NotReproducedError`` if it fails."""
    parent.name_this_process()
    with subprocess.Popen([sys.executable, "-m", *module_and_words], cwd=ROOT) as process:
        try:
            code = process.wait()
        except KeyboardInterrupt:
            process.wait()  # it stops its experiments first
            raise
    if code:
        raise NotReproducedError(
            f"python -m {' '.join(module_and_words)} failed with exit code {code}, its message is above; the "
            "same command continues from finished work"
        )


def _cost_lines(names: Sequence[str], needed: Planned, runs: Sequence[PaperRun]) -> Iterator[str]:
    from skillpress.pipeline.papers.cost import forecast  # in seconds, as torch is behind it

    yield f"{', '.join(names)} at scale {needed.scale}: {needed.manifest.scales[needed.scale].words}"
    yield from forecast(needed, runs)
    yield "nothing was started"


def _of_no_run(name: str, manifest: Manifest, dry: bool, out: Path) -> None:
    """Make a table or figure that needs no training."""
    entry = manifest.tables[name]
    if entry.made is not None:
        command = f"python -m {' '.join(entry.made.run)}"
        if dry:
            print(f"{name}: {entry.words}; no training: `{command}` writes {entry.made.writes}")
            return
        _in_lab(*entry.made.run)
        print("\n".join([f"{name}: {entry.words}", *_figures(entry.made), str(ROOT / entry.made.writes)]))
    elif dry:
        print(f"{name}: {entry.words}; no training: of the code alone")
    else:
        _print_mapping(name, entry, manifest, out)


def _figures(made: Made) -> Iterator[str]:
    """A command's figures next to the paper's."""
    found = read_json(ROOT / made.writes) if made.figures else {}
    if made.figures:
        yield from ("| figure | here | paper |", "|---|---|---|")
    for figure in made.figures:
        value = found
        for key in figure.key.split("."):
            value = value[key]
        yield f"| {figure.label} | {value:g} | {figure.printed} |"


def _print_mapping(name: str, entry: PaperEntry, manifest: Manifest, out: Path) -> None:
    parts = [*_mapped_parts(entry, manifest)]
    text = markdown(parts)
    write_text(out / f"{name.lower().replace(' ', '_')}.md", text)
    print(f"{name}: {entry.words}\n\n{text}")
    if wrong := [part.title for part in parts if not part.agrees]:
        raise NotReproducedError(f"{name}: the projections of {', '.join(wrong)} are not the printed ones")


def _mapped_parts(entry: PaperEntry, manifest: Manifest) -> Iterator[MappedPart]:
    for benchmark, part in entry.mapping.items():
        environment = scaled_params(next(iter(manifest.scales.values())), benchmark).environment
        project = environment.make_projection()
        lines = tuple(mapped(part, project))
        yield MappedPart(environment.title, part.alphabet, len(project.alphabet), lines)


if __name__ == "__main__":
    sys.exit(main())
