"""``skillpress view``: browse episodes in a web browser.

    skillpress view                                  the experiment of this folder skillpress view
    workspaces/grpo workspaces/segcost skillpress view results/evaluations/countdown-models-policy skillpress
    view data/rollouts/evaluation.parquet --tokenizer models/base skillpress view LOGS
    the log of any agent skillpress view results/skills                   the page of skillpress skills
    skillpress view .claude/skills                   the same page, found through the folder of --write

Only browsers on this machine can open the page, until Ctrl-C. The command leaves no files and fetches nothing
from the network. It reads the logs that skillpress skills reads, with the same options.
"""

from __future__ import annotations

import socket
import sys
import threading
import webbrowser
from collections.abc import Sequence
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from skillpress.cli import layers
from skillpress.cli.reading import add_field_options, add_ways_of_reading
from skillpress.cli.viewing.found import find, skills_page
from skillpress.cli.viewing.logs import is_log, log_source
from skillpress.core.arguments import CommandParser, whole
from skillpress.pipeline.files import TRAINED
from skillpress.reports.viewer.catalogue import RolloutCatalogue
from skillpress.reports.viewer.server import LOOPBACK, PORT, listen, serve

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
    logs = [path for path in paths if is_log(path)]
    found = find([path for path in paths if path not in logs], chosen.tokenizer)
    title = ", ".join(str(path.resolve().name) for path in paths)
    sys.setswitchinterval(SWITCH_SECONDS)
    with ExitStack() as stack:
        sources, note = found.sources, None
        if logs:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="skillpress-view-")))
            source, note = log_source(logs, chosen, folder)
            sources = (*sources, source)
        opened = stack.enter_context(closing(listen(chosen.port)))
        catalogue = RolloutCatalogue(title, sources, found.phrases, note, opens_on=TRAINED)
        stack.enter_context(closing(catalogue))
        files = f"{len(sources)} file{'s' if len(sources) > 1 else ''}"
        _show(f"{len(catalogue):,} episodes of {files}", catalogue, opened, chosen.browser)
    return 0


def _show(named: str, shown: RolloutCatalogue | str, opened: socket.socket, browser: bool) -> None:
    """Serve until Ctrl-C."""
    address = f"http://{LOOPBACK}:{opened.getsockname()[1]}/"
    print(f"{named}: {address} (Ctrl-C ends it)", flush=True)
    if not isinstance(shown, str) and layers.missing("tokens"):
        print(f"tokens are shown as numbers, without words: {layers.remedy('tokens')}", flush=True)
    if browser:
        threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
    with suppress(KeyboardInterrupt):  # the usual way to end it
        serve(shown, opened)


def _parser() -> CommandParser:
    parser = CommandParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, metavar="RUN|ROLLOUTS.parquet|EVALUATION|LOGS|SKILLS",
                        help="what to open (default: the experiment of this folder)")  # fmt: skip
    parser.add_argument(
        "--port", type=whole(1, 65535), help=f"default: {PORT}, or a free one where that is taken"
    )
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER",
                        help="of the policy, where none is found beside the rollouts")  # fmt: skip
    parser.add_argument("--no-browser", dest="browser", action="store_false", help="print the address only")
    parser.add_run_code()
    add_ways_of_reading(parser)
    add_field_options(parser)
    return parser
