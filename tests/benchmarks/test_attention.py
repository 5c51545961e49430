"""The figures of what a reader must learn."""

from __future__ import annotations

import ast

from benchmarks.attention import ALGORITHMS, closure, imported, lines


def test_imports_for_type_checkers_are_left_out() -> None:
    source = "from a import b\nif TYPE_CHECKING:\n    from c import d\ndef work():\n    import e, f\n"
    assert list(imported(ast.parse(source))) == ["a", "e", "f"]


def test_grpo_is_told_by_its_own_file_the_clipped_surrogate_and_what_these_use() -> None:
    found = closure(f"{ALGORITHMS}.grpo", ALGORITHMS)
    assert {f"{ALGORITHMS}.{name}" for name in ("grpo", "clipped_surrogate", "batch")} <= set(found)
    assert f"{ALGORITHMS}.ppo" not in found
    assert 0 < lines("benchmarks/attention.py") < 200
