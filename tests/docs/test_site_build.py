"""The site, built like ``make docs`` builds it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from docs.build.contents import sections
from tests.support.pages import ROOT


def test_it_is_built_without_a_warning_all_links_lead_somewhere_and_every_page_is_listed(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "docs.build", "--output", str(tmp_path)],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"site: {tmp_path / 'html' / 'index.html'}\n"
    listed = (tmp_path / "html" / "llms.txt").read_text()
    front = (tmp_path / "html" / "index.html").read_text()
    for names in sections(tmp_path / "source").values():
        for name in names:
            assert f"](_sources/{name}.md.txt): " in listed and f'href="{name}.html"' in front, name
            assert (tmp_path / "html" / "_sources" / f"{name}.md.txt").is_file()
    assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= {
        page.stem for page in (tmp_path / "html").glob("*.html")
    }
