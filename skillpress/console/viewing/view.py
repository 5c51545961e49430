"""``skillpress view``: browse episodes in a web browser.

    skillpress view                                  the experiment of this folder
    skillpress view workspaces/grpo workspaces/segcost
    skillpress view results/evaluations/countdown-models-policy
    skillpress view data/rollouts/evaluation.parquet --tokenizer models/base
    skillpress view results/skills                   the page of skillpress skills, for the log of any agent

Only browsers on this machine can open the page, until Ctrl-C. The command writes no files and fetches nothing
from the network.
"""

from __future__ import annotations

import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from skillpress.console import layers
from skillpress.console.viewing.found import find, skills_page
from skillpress.core.arguments import Parser, whole
from skillpress.show.viewer.catalogue import Catalogue
from skillpress.show.viewer.server import LOOPBACK, PORT, listen, serve

SWITCH_SECONDS = 0.0005
"""The longest time that an answer waits for the thread that computes costs to release the interpreter."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    paths = chosen.paths or [Path()]
    if len(paths) == 1 and (page := skills_page(paths[0])) is not None:
        with closing(listen(chosen.port)) as opened:
            _show(f"the skills page {page}", page.read_text(encoding="utf-8"), opened, chosen.browser)
        return 0
    found = find(paths, chosen.tokenizer)
    title = ", ".join(str(path.resolve().name) for path in paths)
    sys.setswitchinterval(SWITCH_SECONDS)
    with (
        closing(listen(chosen.port)) as opened,
        closing(Catalogue(title, found.sources, found.phrases)) as catalogue,
    ):
        files = f"{len(found.sources)} file{'s' if len(found.sources) > 1 else ''}"
        _show(f"{len(catalogue):,} episodes of {files}", catalogue, opened, chosen.browser)
    return 0


def _show(named: str, shown: Catalogue | str, opened: socket.socket, browser: bool) -> None:
    """Serve until Ctrl-C."""
    address = f"http://{LOOPBACK}:{opened.getsockname()[1]}/"
    print(f"{named}: {address} (Ctrl-C ends it)", flush=True)
    if not isinstance(shown, str) and layers.missing("tokens"):
        print(f"tokens are shown as numbers, without words: {layers.remedy('tokens')}", flush=True)
    if browser:
        threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
    with suppress(KeyboardInterrupt):  # the usual way to end it
        serve(shown, opened)


def _parser() -> Parser:
    parser = Parser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="RUN|ROLLOUTS.parquet|EVALUATION|SKILLS",
                        help="what to open (default: the experiment of this folder)")  # fmt: skip
    parser.add_argument(
        "--port", type=whole(1, 65535), help=f"default: {PORT}, or a free one where that is taken"
    )
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER",
                        help="of the policy, where none is found beside the rollouts")  # fmt: skip
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="print the address only")
    return parser
