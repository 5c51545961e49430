"""Machine code is stored once per user and content of the package, wherever the clone lies."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import skillpress

PROGRAM = """
from skillpress.skills.cover import data_bits
print(data_bits(8, 4), sum(data_bits.stats.cache_hits.values()))
"""


def run_in_a_process(home: Path) -> str:
    environment = {**os.environ, "XDG_CACHE_HOME": str(home)}
    environment["PYTHONPATH"] = str(Path(skillpress.__file__).parents[1])
    return subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, check=True, capture_output=True, text=True
    ).stdout.strip()


def test_a_second_process_loads_what_the_first_compiled(tmp_path):
    assert run_in_a_process(tmp_path) == "16.0 0"
    assert run_in_a_process(tmp_path) == "16.0 1"


def test_where_the_cache_cannot_be_written_it_still_works(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert run_in_a_process(blocked).startswith("16.0")


PLACE = """
import skillpress.skills.compiled as compiled
print(compiled._folder())
"""


def test_machine_code_that_another_user_could_have_planted_is_not_run(tmp_path):
    (tmp_path / f"skillpress-{os.getuid()}").mkdir(mode=0o777)
    os.chmod(tmp_path / f"skillpress-{os.getuid()}", 0o777)
    blocked = tmp_path / "file"
    blocked.write_text("")
    environment = {**os.environ, "XDG_CACHE_HOME": str(blocked), "TMPDIR": str(tmp_path)}
    environment["PYTHONPATH"] = str(Path(skillpress.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", PLACE], env=environment, capture_output=True, text=True)
    assert done.returncode and "another user may have put files there" in done.stderr
