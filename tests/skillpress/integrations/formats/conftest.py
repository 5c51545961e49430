from __future__ import annotations

import pytest

from skillpress.integrations.formats.texts import Texts, load_texts
from tests.support.integrations.playing import write_tokenizer


@pytest.fixture(scope="session")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Texts:
    """The texts of the policy that played the tests' episodes."""
    return load_texts(write_tokenizer(tmp_path_factory.mktemp("policy")))
