"""A clock that a test sets forwards and backwards under running processes.

A library that is loaded before all others adds seconds, read from a file, to the time of day. The monotonic
clock stays as it is, as it does when an administrator or NTP sets the time.
"""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

LIBRARY = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long added(void) {
    char text[32] = {0};
    int file = open(getenv("ADDED_SECONDS"), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    if (read(file, text, 31) < 0) text[0] = 0;
    close(file);
    return atol(text);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int failed = syscall(SYS_clock_gettime, clock, now);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += added();
    return failed;
}

time_t time(time_t *now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    now->tv_sec = found.tv_sec;
    now->tv_usec = found.tv_nsec / 1000;
    return 0;
}
"""
DAY = 86_400


@contextmanager
def jumping_clock(folder: Path, seed: int = 0) -> Iterator[dict[str, str]]:
    """Yield the environment of processes whose clock is set several times a second, by up to ten days."""
    (folder / "clock.c").write_text(LIBRARY)
    library, file, over = folder / "clock.so", folder / "added", threading.Event()
    built = ["cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(folder / "clock.c")]
    if subprocess.run(built, check=False).returncode:
        pytest.skip("no C compiler here to build a clock that can be set")
    random = Random(seed)

    def jump() -> None:
        while not over.wait(random.uniform(0.1, 0.5)):
            (folder / "next").write_text(str(random.randint(-10 * DAY, 10 * DAY)))
            (folder / "next").replace(file)

    jumping = threading.Thread(target=jump)
    jumping.start()
    try:
        yield {"LD_PRELOAD": str(library), "ADDED_SECONDS": str(file)}
    finally:
        over.set()
        jumping.join()
