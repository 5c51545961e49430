import pytest

from skillpress.pipeline import progress
from skillpress.pipeline.progress import StageProgress


def test_a_log_gets_at_most_one_line_per_interval_and_one_at_the_end(capsys, monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with StageProgress("train", total=20, unit="step") as bar:
        for count in range(1, 21):
            now[0] += 1.0
            bar(count, loss=0.5)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[2] for line in lines] == ["5/20", "10/20", "15/20", "20/20", "20/20"]
    assert "loss=0.5" in lines[0]
    assert "1.00step/s" in lines[1]
    assert "00:10<00:10" in lines[1]


def test_work_of_an_earlier_run_is_not_counted_in_the_rate(capsys, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with StageProgress("train", total=100, unit="step") as bar:
        for count in range(91, 101):
            now[0] += 1.0
            bar(count)
    assert "1.00step/s" in capsys.readouterr().err


def test_a_first_batch_says_no_rate_and_the_next_says_its_own(capsys, monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    with StageProgress("demonstrate", total=60_000, unit="episode") as bar:
        for count in (600, 6_600):
            now[0] += 6.0
            bar(count)
    first, second, *_ = capsys.readouterr().err.splitlines()
    assert first.endswith("600/60000 [00:06<?, ?episode/s]")
    assert second.endswith("6600/60000 [00:12<00:53, 1000.00episode/s]")


def test_work_that_makes_no_sense_any_more_is_ended_within_an_interval(monkeypatch) -> None:
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def check() -> None:
        raise RuntimeError("nobody records this")

    with StageProgress("train", total=100, check=check) as bar:
        bar(1)
        now[0] += progress.SECONDS_BETWEEN_LINES
        with pytest.raises(RuntimeError, match="nobody records"):
            bar(2)


def test_nothing_done_nothing_printed(capsys) -> None:
    with pytest.raises(ValueError, match="no"), StageProgress("train", total=2, unit="step"):
        raise ValueError("no")
    assert capsys.readouterr().err == ""
