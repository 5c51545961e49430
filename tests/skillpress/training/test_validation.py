"""The peak's weights, kept beside the checkpoint; that they are the right ones is in test_loop.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from skillpress.errors import StorageError
from skillpress.training.validation import copy_policy


def test_a_peak_that_is_gone_is_an_error_that_says_what_to_delete(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"key/peak: missing.*delete .*/key$"):
        copy_policy(tmp_path / "key" / "peak", tmp_path / "policy")
