"""A command line as the commands that it runs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.environments.calls.shell import commands, program, text_of_command

LINES = {
    "ls -la": ["ls -la"],
    "cd /repo && timeout 60 python -m pytest -q 2>&1 | tail -3": ["pytest -q 2>&1", "tail -3"],
    "A=1 B='x y' sudo -u me /usr/bin/python x.py; echo done": ["python x.py", "echo done"],
    "cat <<'EOF' > x.py\nimport os; a | b\nEOF\npython x.py": ["cat  > x.py", "python x.py"],
    "echo 'a && b | c; d' \"e; f\"": ["echo 'a && b | c; d' \"e; f\""],
    "for f in *.py; do cat $f; done": ["cat $f"],
    "if grep -q x f; then ls; else pwd; fi": ["grep -q x f", "ls", "pwd"],
    "(cd x && make) || true": ["make"],
    "bash -lc 'cd /r && rg foo | head'": ["rg foo", "head"],
    "find . -name '*.py' | xargs -n 1 grep foo": ["find . -name '*.py'", "grep foo"],
    "echo $(ls | wc -l) `cat x; y` $((1+2)); pwd": ["echo $(ls | wc -l) `cat x; y` $((1+2))", "pwd"],
    "git commit -m \"$(cat <<'EOF'\nfix \"it\" && that\nEOF\n)\" && git push": [
        'git commit -m "$(cat \n)"', "git push"
    ],
    "cat << EOF > f\nthe log cuts it off; ls": ["cat  > f"],
    'python -c "print(1 << n)"': ['python -c "print(1 << n)"'],
    "sleep 1 & wait 2>/dev/null": ["sleep 1", "wait 2>/dev/null"],
    "# why\nls # what\n": ["ls"],
    "cat a \\\n b": ["cat a   b"],
    "ls>out.txt": ["ls"],
    "cd /x": ["cd /x"],
    "export A=1; cd y": ["export A=1", "cd y"],
    "": [],
    "x='never closed; ls": [],
}  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_a_line_runs_these_commands(line: str) -> None:
    assert commands(line) == LINES[line]


@given(st.text(alphabet="ab '\"`$()<>|&;\\\n#-=E", max_size=60))
def test_no_line_fails_and_no_command_is_empty(line: str) -> None:
    assert all(run.split() for run in commands(line))


@given(st.text(alphabet="ab/ ", min_size=1).filter(lambda word: word.strip(" /")))
def test_a_program_is_the_last_name_of_its_path(word: str) -> None:
    assert program(word) == word.rstrip("/").rpartition("/")[2].strip()


def test_a_list_of_words_is_a_line_or_what_its_shell_runs() -> None:
    assert text_of_command(["bash", "-lc", "ls | wc"]) == "ls | wc"
    assert text_of_command(["ls", "-l"]) == "ls -l"
    assert text_of_command({"command": "ls"}) == ""
