"""One rank of a gang: a process in the folder that all machines share (see ``gang.py``).

    python -m skillpress.rollouts.workers.gang_rank WORK DIGEST SOURCE [CODE ...] DESCRIPTOR ANCESTOR

WORK is the file that holds the pickled work, and DIGEST is its hash, which shows whether this machine sees
the same disk. SOURCE is the hash of the code for which the work was made: this package's, and that of the
files CODE of the lab and of other packages. The rank sends its messages to DESCRIPTOR and ends with the
process ANCESTOR.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path

from skillpress.rollouts.workers.gang_work import read_work
from skillpress.rollouts.workers.launched import launch_of_environment
from skillpress.rollouts.workers.parent import end_with
from skillpress.rollouts.workers.ranks import serve, stopped


def main(arguments: Sequence[str]) -> None:
    """Run the rank. The result or exception of the work is sent to the descriptor."""
    work, digest, source, *code, descriptor, ancestor = arguments
    end_with(int(ancestor))
    signal.signal(signal.SIGTERM, stopped)
    launch = launch_of_environment()
    assert launch is not None
    with Connection(int(descriptor), readable=False) as connection:
        serve(connection, launch.rank, launch.size, lambda: read_work(Path(work), digest, source, code))


if __name__ == "__main__":
    main(sys.argv[1:])
