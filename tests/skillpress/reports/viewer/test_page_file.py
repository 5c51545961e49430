"""The document: what its policy allows a browser, and data that cannot leave their element."""

from __future__ import annotations

import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest

from skillpress.reports.viewer.page_file import PAGE, live_page, self_contained
from tests.support.reports.viewer_samples import HOSTILE


class Elements(HTMLParser):
    """The elements of a document, with their contents."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None], str]] = []
        self.within = False
        self.feed(document)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), ""))
        self.within = True

    def handle_endtag(self, tag):
        self.within = False

    def handle_data(self, data):
        if self.within:
            tag, attributes, text = self.found[-1]
            self.found[-1] = (tag, attributes, text + data)

    def one(self, tag: str, **attributes: str) -> tuple[dict[str, str | None], str]:
        """The only element of a kind."""
        fitting = [
            (found, text)
            for name, found, text in self.found
            if name == tag and attributes.items() <= found.items()
        ]
        assert len(fitting) == 1
        return fitting[0]


def policy(elements: Elements) -> dict[str, str]:
    content = elements.one("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert content is not None
    return dict(part.strip().split(" ", 1) for part in content.split(";"))


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize(
    ("document", "connect"), [(live_page(), "'self'"), (self_contained({}), "'none'")], ids=["live", "alone"]
)
def test_only_the_one_script_and_the_one_style_are_allowed(document, connect):
    elements = Elements(document)
    assert policy(elements) == {
        "default-src": "'none'",
        "script-src": hash_of(elements.one("script", type="module")[1]),
        "style-src": hash_of(elements.one("style")[1]),
        "img-src": "data:",
        "connect-src": connect,
        "base-uri": "'none'",
        "form-action": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }


def test_the_policy_stands_before_all_that_it_governs():
    names = [(tag, attributes.get("http-equiv")) for tag, attributes, _ in Elements(live_page()).found]
    assert names.index(("meta", "Content-Security-Policy")) < names.index(("style", None))


def test_both_documents_have_the_same_script_and_style():
    live, alone = Elements(live_page()), Elements(self_contained({}))
    assert live.one("script", type="module") == alone.one("script", type="module")
    assert live.one("style") == alone.one("style")


def test_data_come_back_as_they_went_in_and_never_end_their_element():
    data = {"episodes": [*HOSTILE, "half a pair: \ud83d", "<!--<script>", "]]>"]}
    document = self_contained(data)
    document.encode("utf-8")
    _, text = Elements(document).one("script", id="episodes")
    assert json.loads(text) == data
    assert "<" not in text


def test_a_number_that_json_cannot_say_is_refused():
    with pytest.raises(ValueError, match="not JSON compliant"):
        self_contained({"episodes": [{"reward": float("nan")}]})


def test_whatever_is_vendored_is_named_with_version_and_licence():
    told = (PAGE / "vendor" / "README.md").read_text(encoding="utf-8")
    for file in PAGE.glob("vendor/*.mjs"):
        row = next(line for line in told.splitlines() if line.startswith(f"| {file.name} |"))
        licence = row.split("|")[4].split(",")[1].strip()
        assert (PAGE / "vendor" / licence).is_file()
