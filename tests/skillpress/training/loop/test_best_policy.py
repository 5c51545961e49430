"""The best step's weights are stored next to the checkpoint; test_training_job.py tests which weights they
are."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.core.errors import StorageError
from skillpress.training.loop.loop import copy_policy


def test_a_best_policy_that_is_gone_is_an_error_that_says_what_to_delete(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"key/best: missing.*delete .*/key$"):
        copy_policy(tmp_path / "key" / "best", tmp_path / "policy")
