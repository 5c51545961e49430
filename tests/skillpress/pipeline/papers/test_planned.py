"""The runs that a table needs are those that an ablation makes, and no others count as them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flows.ablation import variants_of
from skillpress.core.errors import ParamsError
from skillpress.evaluation.paper.manifest import PLACE, Manifest, read_manifest
from skillpress.evaluation.paper.methods import method
from skillpress.pipeline.finished.run import RunsError, read_run
from skillpress.pipeline.papers.planned import Machine, Planned, planned, scaled_params
from tests.support.pipeline.finished_run import SMALL, play_run


@pytest.fixture(scope="module")
def manifest(repository: Path) -> Manifest:
    return read_manifest(repository / PLACE)


@pytest.mark.parametrize("scale", ["paper", "small", "smoke"])
def test_every_run_of_every_scale_is_the_papers_row_that_it_is_called(manifest: Manifest, scale: str) -> None:
    runs = planned(manifest, ["Table 1"], scale, Machine()).runs()
    assert {method(run.params).name for run in runs} == set(manifest.methods)
    assert all(method(run.params).name == run.method for run in runs)


def test_a_run_that_several_tables_need_is_made_once(manifest: Manifest) -> None:
    needed = planned(manifest, ["Table 10", "Table 4", "Table 9"], "smoke", Machine(), ["countdown"])
    assert needed.methods == {"countdown": ["grpo", "round_length", "segcost", "segcost_no_buffer"]}
    assert len({run.variant.name for run in needed.runs()}) == len(needed.runs()) == 4


def test_an_ablation_of_the_scale_makes_the_workspaces_that_are_read(manifest: Manifest) -> None:
    machine = Machine(("params/local.yaml",), ("processes=4",), (3,))
    needed = planned(manifest, ["Table 4"], "paper", machine)
    overlays = [manifest.methods[name].overlay for name in needed.methods["countdown"]]
    made = variants_of(overlays, needed.common("countdown"), (), machine.assignments)
    assert [f"{variant.name}-seed3" for variant in made.values()] == [
        run.variant.name for run in needed.runs()
    ]


@pytest.mark.parametrize(
    ("machine", "said"),
    [
        (
            Machine(assignments=("training.steps=5",)),
            "training.steps is 5, the manifest's runs have 4; only seed,",
        ),
        (Machine(("params/dapo.yaml",)), "algorithm.name is dapo, the manifest's runs have grpo"),
        (Machine(("params/bits.yaml",)), ""),
    ],
)
def test_what_the_manifest_does_not_name_may_not_differ(
    manifest: Manifest, machine: Machine, said: str
) -> None:
    """An overlay below the methods' that they replace, as bits' shaping, changes nothing and may be there."""
    needed = planned(manifest, ["Table 4"], "smoke", machine)
    if not said:
        assert len(needed.runs()) == 4
        return
    with pytest.raises(ParamsError, match=f"grpo on countdown, scale smoke: {said}"):
        needed.runs()


def test_what_a_machine_needs_may_differ(manifest: Manifest) -> None:
    machine = Machine(("params/servers.yaml",), ("sampling.slots=64", "policy.model=/models/qwen"))
    assert len(planned(manifest, ["Table 7"], "paper", machine).runs()) == 4


def test_other_seeds_and_a_single_benchmark_may_be_asked_for(manifest: Manifest) -> None:
    three = planned(manifest, ["Table 1"], "paper", Machine(seeds=(0, 1, 2)), ["countdown"])
    assert len(three.runs()) == 4 * 3
    with pytest.raises(ParamsError, match="--only: is 'wordle', and these tables have runs of alfworld, "):
        planned(manifest, ["Table 1"], "paper", Machine(), ["wordle"])


@pytest.fixture
def needed(manifest: Manifest, tmp_path: Path) -> Planned:
    """Table 4 at a scale whose runs are those of ``play_run``."""
    from skillpress.core.yaml_files import write_yaml

    overlay = tmp_path / "tiny.yaml"
    overlay.write_text(write_yaml(SMALL), encoding="utf-8")
    smoke = manifest.scales["smoke"]
    tiny = smoke.benchmarks["countdown"].model_copy(update={"overlays": [str(overlay)]})
    scale = smoke.model_copy(update={"benchmarks": {**smoke.benchmarks, "countdown": tiny}})
    return planned(manifest.model_copy(update={"scales": {"tiny": scale}}), ["Table 4"], "tiny", Machine())


GRPO: dict[str, Any] = {"reward": {"shaping": "none"}}


def test_a_finished_run_is_known_by_its_parameters(needed: Planned, tmp_path: Path, repository: Path) -> None:
    assert needed.check(read_run(play_run(tmp_path / "a", repository, GRPO, {"seed": 9}))) == "grpo"
    assert needed.check(read_run(play_run(tmp_path / "b", repository))) == "segcost"


@pytest.mark.parametrize(
    ("overlay", "said"),
    [
        (
            {"training": {"learning_rate": 0.1}},
            "segcost, the nearest method, training.learning_rate is 0.1, ",
        ),
        (
            {"policy": {"history": 2}},
            "segcost, the nearest method, policy.history is 2, the manifest's runs have 4",
        ),
        ({"reward": {"shaping": "bits"}}, "grpo, the nearest method, reward.shaping is bits, "),
    ],
)
def test_a_finished_run_that_differs_is_refused_with_the_key_and_both_values(
    needed: Planned, tmp_path: Path, repository: Path, overlay: dict[str, Any], said: str
) -> None:
    run = read_run(play_run(tmp_path / "a", repository, overlay))
    with pytest.raises(RunsError, match=rf"is not a run of countdown at scale tiny; of {said}"):
        needed.check(run)


def test_the_parameters_of_a_scale_are_those_of_its_overlays(manifest: Manifest) -> None:
    assert scaled_params(manifest.scales["paper"], "alfworld").policy.model == "Qwen/Qwen2.5-1.5B-Instruct"
