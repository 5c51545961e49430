"""``skillpress serve-retriever``: find passages of a file, by Search-R1's HTTP protocol.

    skillpress serve-retriever --passages paragraphs.parquet --port 8900
    skillpress serve-retriever --passages paragraphs.parquet --encoder FOLDER --prefixes 'query: ' 'passage: '
    SKILLPRESS_RETRIEVER=http://127.0.0.1:8900 skillpress run --params params/search.yaml

The file is Parquet with id, title and text, or JSON lines with id and contents (title, line break, text). Its
index is made once, in the folder of --indexes. Search is by BM25 or, with --encoder, by the vectors of a
sentence-embedding model, which needs the layer train.
"""

from __future__ import annotations

import signal
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from skillpress.cli.evaluations.options import add_address, address_of
from skillpress.core.arguments import CommandParser
from skillpress.core.web import server_of
from skillpress.environments.notebook_qa.parameters import index_home
from skillpress.environments.notebook_qa.search import open_search
from skillpress.environments.search.retriever import Retriever
from skillpress.environments.search.server import retriever_app
from skillpress.integrations.serving.server import listen

PORT = 8900
OPEN = "anyone who can reach the port can search; there is no password"


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until Ctrl-C or SIGTERM; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    retrieve = _retriever(chosen)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        listen(chosen.host, chosen.port) as listening,
        suppress(KeyboardInterrupt),
    ):  # the usual way to end it
        address = f"http://{address_of(chosen.host, listening, OPEN)}"
        print(f"ready: {address} finds passages of {chosen.passages} (Ctrl-C ends it)", flush=True)
        server_of(retriever_app(retrieve)).run(sockets=[listening])
    return 0


def _retriever(chosen: Namespace) -> Retriever:
    home = index_home(str(chosen.indexes or ""))
    if chosen.encoder is None:
        return open_search(chosen.passages, home).passages
    from skillpress.environments.search.dense import DenseSearch  # with transformers

    return DenseSearch(chosen.passages, chosen.encoder, home, tuple(chosen.prefixes)).passages


def _parser() -> CommandParser:
    parser = CommandParser(prog="skillpress serve-retriever", description=__doc__)
    parser.add_argument("--passages", required=True, type=Path, metavar="FILE", help="Parquet or .jsonl")
    parser.add_argument(
        "--indexes", type=Path, metavar="DIR", help="default: $SKILLPRESS_INDEXES, or the user's cache"
    )
    parser.add_argument("--encoder", type=Path, metavar="FOLDER", help="a sentence-embedding model, not BM25")
    parser.add_argument(
        "--prefixes", nargs=2, default=("", ""), metavar=("QUERY", "PASSAGE"), help="what the encoder expects"
    )
    add_address(parser, "the interface; there is no password", PORT)
    return parser
