"""Everything that a page of the repository links to or names exists.

Links to other sites cannot be followed without a network, so only their form is checked.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from docs.build import llms
from docs.build.contents import MADE, MORE, sections
from docs.build.links import wrong_links
from docs.build.markdown import links, prose, spans
from docs.build.sources import BrokenLinkError, for_the_site
from tests.support.pages import NAMES, PAGES, ROOT

FILE = re.compile(r"(skillpress|tasks|flows|tests|benchmarks|infra|params|docs)(/[\w.-]+)+/?")
GYMNASIUM = re.compile(r"-v\d+$")
"""The name of a registered environment, ``skillpress/Countdown-v0``, is not a file."""
FILE_NAME = re.compile(r"[\w.*/-]+\.[a-z]{2,7}(#[\w-]+)?")
DEFINITION = re.compile(r"^\[([\w-]+)\]: (\S+)$", re.MULTILINE)
REFERENCE = re.compile(r"\]\[([\w-]+)\]")


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub, and also MyST, give the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    for match in links(page.read_text()):
        target, _, anchor = match["target"].partition("#")
        if "://" in target:
            continue
        place = (page.parent / target).resolve() if target else page
        assert place.exists() and place.is_relative_to(ROOT), f"{page.name}: {match['target']}"
        assert not anchor or anchor in anchors(place), f"{page.name}: {match['target']}"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_no_link_is_called_by_the_name_of_a_file(page: Path) -> None:
    for match in links(page.read_text()):
        text = match["text"].strip("`")
        assert match["image"] or not FILE_NAME.fullmatch(text), f"{page.name}: [{match['text']}]"


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_to_other_sites_are_addresses(page: Path) -> None:
    text = page.read_text()
    defined = dict(DEFINITION.findall(text))
    assert set(REFERENCE.findall(prose(text))) == set(defined)
    for target in (*(match["target"] for match in links(text)), *defined.values()):
        if "://" in target:
            parts = urlsplit(target)
            assert parts.scheme == "https" and "." in parts.netloc and not parts.username, target


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_files_of_the_repository_that_a_page_names_exist(page: Path) -> None:
    named = [span for span in spans(page.read_text()) if FILE.fullmatch(span) and not GYMNASIUM.search(span)]
    patterns = [span for span in named if re.search(r"[A-Z]{4}", span)]  # paper_ENVIRONMENT.yaml
    assert not [span for span in named if span not in patterns and not (ROOT / span).exists()]


def test_a_page_that_no_section_lists_is_on_the_site_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "index.md").write_text("# A\n\n## Start\n\n- [B](b.md): it\n  begins\n- [Gone](gone.md)\n")
    for name in ("b", "new", "api"):
        (tmp_path / f"{name}.md").write_text("# Page\n\nNobody lists it. Yet.\n")
    assert sections(tmp_path) == {"Start": ["b"], MADE: ["api"], MORE: ["new"]}
    listed = llms.text(tmp_path)
    assert "- [Page](_sources/b.md.txt): it begins\n" in listed
    assert "- [Page](_sources/new.md.txt): Nobody lists it.\n" in listed


def test_links_to_the_repository_are_links_to_copies_on_the_site(tmp_path: Path) -> None:
    def on_the_site(text: str) -> str:
        return for_the_site(text, ROOT / "docs" / "page.md", ROOT, tmp_path)

    assert (
        on_the_site("[p](../params.yaml), `[p](../no.yaml)`") == "[p](files/params.yaml), `[p](../no.yaml)`"
    )
    assert (tmp_path / "files" / "params.yaml").read_text() == (ROOT / "params.yaml").read_text()
    assert on_the_site("[all](../params)") == "all"
    for kept in (
        "[x](architecture.md#speed)",
        "![x](report.png)",
        "[x](#here)",
        "[x](https://example.org/a)",
    ):
        assert on_the_site(kept) == kept
    for wrong in ("[x](../no.yaml)", "[x](/etc/hostname)"):
        with pytest.raises(BrokenLinkError, match=r"docs/page\.md: links to"):
            on_the_site(wrong)


def test_the_built_site_is_searched_for_dead_links_missing_anchors_and_foreign_files(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<a id="top"></a><a href="#top">x</a><a href="b.html#here">x</a><a href="https://example.org/x">x</a>'
        '<a href="b.html#nowhere">x</a><a href="c.html">x</a><script src="https://example.org/x.js"></script>'
        '<a href="https://nowhere">x</a><a href="javascript:x()">x</a>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert list(wrong_links(tmp_path)) == [
        "a.html: b.html#nowhere: the page has no such anchor",
        "a.html: c.html: there is no such file",
        "a.html: https://nowhere: is no address",
        "a.html: javascript:x(): runs a script",
        "a.html: https://example.org/x.js: is fetched from another site",
    ]
