"""Samples in mapped files are those that were written, and have the chains of samples in memory."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from skillpress.core.chains import Pairs
from skillpress.training.imitation import samples as module
from skillpress.training.imitation.parameters import ImitationParameters
from skillpress.training.imitation.samples import Sample, Samples
from skillpress.training.imitation.trainer import batches

GROWING: list[Sample] = [
    ((1, 2), (3,)),
    ((1, 2, 3, 4), (5, 6)),
    ((1, 2, 3, 4, 5, 6), (7,)),
    ((1, 2, 3), (8,)),
    ((9,), ()),
    ((9, 9), (2,)),
]
ROWS = GROWING * 7


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ROWS_AT_ONCE", 5)


@pytest.fixture
def stored(tmp_path: Path) -> Samples:
    return Samples.written(tmp_path / "rows.arrow", iter(ROWS))


def test_they_are_read_as_they_were_written_and_by_their_owner_alone(stored: Samples, tmp_path: Path) -> None:
    assert list(stored) == ROWS and len(stored) == len(ROWS)
    assert stored[-1] == ROWS[-1] and stored[3:9] == ROWS[3:9]
    assert list(Samples.read(tmp_path / "rows.arrow")) == ROWS
    assert (tmp_path / "rows.arrow").stat().st_mode & 0o777 == 0o600
    with pytest.raises(IndexError, match=r"no sample 42: there are 42"):
        stored[42]


def test_the_file_is_mapped_and_nothing_else_is_written(stored: Samples, tmp_path: Path) -> None:
    assert [Path(file["filename"]) for file in stored.dataset.cache_files] == [tmp_path / "rows.arrow"]
    assert [file.name for file in tmp_path.iterdir()] == ["rows.arrow"]


def test_parts_are_joined_in_their_order_also_those_without_samples(stored: Samples, tmp_path: Path) -> None:
    empty = Samples.written(tmp_path / "empty.arrow", [])
    assert len(empty) == 0 and not empty.goes_on.size
    assert list(Samples.joined([empty, stored, empty, stored])) == ROWS + ROWS


def test_chains_and_updates_are_those_of_samples_in_memory(stored: Samples) -> None:
    pairs = Pairs.of(ROWS)
    assert np.array_equal(stored.goes_on, pairs.goes_on) and stored.goes_on.any()
    assert list(stored.chains) == pairs.chains
    parameters = ImitationParameters(
        demonstrations=1, thoughts=None, detour_rate=0.0, batch_size=4, epochs=2, learning_rate=0.1
    )
    for one, other in zip(
        batches(stored.chains, parameters, 3), batches(pairs.chains, parameters, 3), strict=True
    ):
        assert np.array_equal(one, other)
        chosen, wanted = stored.select(one), pairs.select(one)
        assert chosen.rows == wanted.rows and np.array_equal(chosen.goes_on, wanted.goes_on)
