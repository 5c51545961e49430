"""Memory of a process that computes for minutes."""

import gc
import subprocess
import sys
import weakref

import pytest

from skillpress.core.long_work import long_work


class Node:
    """An object of a cycle."""

    def __init__(self) -> None:
        self.me = self


def test_inside_nothing_that_existed_is_visited_and_afterwards_everything_is() -> None:
    before = gc.get_freeze_count()
    with long_work():
        assert gc.get_freeze_count() > before
    assert gc.get_freeze_count() == 0


def test_a_cycle_that_is_made_inside_is_collected() -> None:
    with long_work():
        gone = weakref.ref(Node())
        gc.collect()
        assert gone() is None


def test_a_cycle_that_was_there_is_collected_after_the_end() -> None:
    node = Node()
    seen = weakref.ref(node)
    with long_work():
        del node
        gc.collect()
        assert seen() is not None
    gc.collect()
    assert seen() is None


def test_an_error_inside_ends_it() -> None:
    with pytest.raises(KeyError), long_work():
        raise KeyError
    assert gc.get_freeze_count() == 0


PROGRAM = """
import resource, sys
from skillpress.core.long_work import keep_freed_memory

if sys.argv[1] == "kept" and not keep_freed_memory():
    print("other")
    sys.exit()
for _ in range(20):
    array = bytearray(64 << 20)  # its pages are cleared by the kernel, or by Python in memory that it has
    del array
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def test_a_large_array_takes_the_memory_of_the_last_one() -> None:
    said = {
        how: subprocess.run([sys.executable, "-c", PROGRAM, how], capture_output=True, text=True, check=True)
        for how in ("given back", "kept")
    }
    if said["kept"].stdout.strip() == "other":
        pytest.skip("the C library is not glibc, or older than 2.35")
    given_back, kept = (int(each.stdout) for each in said.values())
    assert kept < given_back / 2
