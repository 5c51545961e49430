"""Keys and parts of unfinished work."""

from __future__ import annotations

from pathlib import Path

from skillpress.unfinished import Every, Unfinished, experiment_key


def test_a_key_follows_values_and_the_content_of_files_and_folders(tmp_path: Path) -> None:
    tasks, model = tmp_path / "tasks", tmp_path / "model"
    tasks.write_text("one")
    model.mkdir()
    (model / "weights").write_text("1 2")
    first = experiment_key({"seed": 0, "a": 1}, [tasks, model])
    assert experiment_key({"a": 1, "seed": 0}, [tasks, model]) == first
    found = {first, experiment_key({"seed": 1, "a": 1}, [tasks, model])}
    tasks.write_text("two")
    found.add(experiment_key({"seed": 0, "a": 1}, [tasks, model]))
    (model / "weights").write_text("1 3")
    found.add(experiment_key({"seed": 0, "a": 1}, [tasks, model]))
    assert len(found) == 4


def test_parts_come_in_the_order_of_their_numbers_and_kinds_apart(tmp_path: Path) -> None:
    unfinished = Unfinished(tmp_path, "key")
    assert unfinished.parts("a") == []
    unfinished.folder.mkdir()
    for kind, number in (("a", 100), ("b", 1), ("a", 20)):
        unfinished.part(kind, number).touch()
    assert unfinished.parts("a") == [(20, unfinished.part("a", 20)), (100, unfinished.part("a", 100))]
    unfinished.forget()
    unfinished.forget()
    assert not unfinished.folder.exists()


def test_the_clock_strikes_once_in_its_time() -> None:
    assert not Every(1e9)()
    always = Every(0.0)
    assert always() and always()
