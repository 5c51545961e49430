"""Objects that the garbage collector passes over."""

import gc
import weakref

import pytest

from skillpress.core.lasting import lasting_objects


class Node:
    """An object of a cycle."""

    def __init__(self) -> None:
        self.me = self


def test_inside_nothing_that_existed_is_visited_and_afterwards_everything_is() -> None:
    before = gc.get_freeze_count()
    with lasting_objects():
        assert gc.get_freeze_count() > before
    assert gc.get_freeze_count() == 0


def test_a_cycle_that_is_made_inside_is_collected() -> None:
    with lasting_objects():
        gone = weakref.ref(Node())
        gc.collect()
        assert gone() is None


def test_a_cycle_that_was_there_is_collected_after_the_end() -> None:
    node = Node()
    seen = weakref.ref(node)
    with lasting_objects():
        del node
        gc.collect()
        assert seen() is not None
    gc.collect()
    assert seen() is None


def test_an_error_inside_ends_it() -> None:
    with pytest.raises(KeyError), lasting_objects():
        raise KeyError
    assert gc.get_freeze_count() == 0
