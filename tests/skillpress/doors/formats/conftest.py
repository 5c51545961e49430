from __future__ import annotations

import pytest
from playing import write_tokenizer

from skillpress.doors.formats.texts import Texts, load_texts


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    """Those of the policy that played the tests' episodes."""
    return load_texts(write_tokenizer(tmp_path_factory.mktemp("policy")))
