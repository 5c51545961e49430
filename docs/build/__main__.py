"""``python -m docs.build``: the documentation site. Exit code 0 when nothing is wrong with it."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from sphinx.cmd.build import build_main

from docs.build import links, llms, sources
from skillpress.core.arguments import output_folder

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m docs.build", description=__doc__)
    default = str(ROOT / "site")
    parser.add_argument("--output", type=output_folder, default=default, help="folder of the site (site/)")
    output = parser.parse_args(arguments).output.resolve()
    for part in ("source", "html"):
        shutil.rmtree(output / part, ignore_errors=True)
    try:
        sources.gather(ROOT, output / "source")
    except sources.BrokenLinkError as error:
        print(error, file=sys.stderr)
        return 2
    code = build_main(
        [
            "-q",
            "-W",
            "--keep-going",
            "-n",
            "-d",
            str(output / "doctrees"),
            str(output / "source"),
            str(output / "html"),
        ]
    )
    if code:
        return code
    (output / "html" / "llms.txt").write_text(llms.text(output / "source"), encoding="utf-8")
    wrong = list(links.wrong_links(output / "html"))
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        print(f"site: {output / 'html' / 'index.html'}")
    return 2 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
