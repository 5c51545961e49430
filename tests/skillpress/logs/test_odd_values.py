"""An odd value in a field of a record costs that record at most."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from skillpress.logs.fields import Wanted
from skillpress.logs.log import read_log
from skillpress.logs.projection import NameProjection
from skillpress.logs.reading_again import traces_at
from tests.support.integrations.trace_records import chat

ODD = {
    "half of a pair": r'"half \ud800"',
    "an integer of 400 digits": "1" * 400,
    "an integer of 5,000 digits": "1" * 5000,
    "NaN": "NaN",
    "infinity": "-Infinity",
    "a number beyond all": "1e999",
    "nothing": "null",
    "a zero byte": r'"\u0000"',
    "a list": "[[]]",
    "a mapping": '{"": {"\\ud800": 1}}',
    "a time of any form": '"03/01/26 25:61"',
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("field", ["id", "task_id", "model", "created", "solved", "messages", "any \\udc00"])
def test_an_odd_value_in_any_field_costs_one_line_at_most(odd: str, field: str, tmp_path: Path) -> None:
    changed = json.dumps(chat())[1:-1] + f', "{field}": {ODD[odd]}'
    (tmp_path / "log").write_text(f"{json.dumps(chat())}\n{{{changed}}}\n")
    found = read_log([tmp_path / "log"], NameProjection(), Wanted(), 0.5)
    assert len(found) == (1 if field == "messages" else 2) and found.good_lines + found.bad_lines == 2
    texts = [text for trace in found.traces for text in (trace.task, trace.version)]
    for text in (*texts, *(bad.why for bad in found.bad)):
        text.encode()
    for _, trace in traces_at(found, Wanted(), range(len(found))):
        trace.name.encode()
