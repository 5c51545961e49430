"""Shared by the commands that ask a judge: the judge itself, and verdicts that survive an interruption."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from skillpress.cli.evaluations.chat import AT_ONCE, journal_of, player
from skillpress.cli.evaluations.endings import endings_told
from skillpress.cli.evaluations.models import identify
from skillpress.cli.evaluations.players import is_url
from skillpress.core.engine import Sampling
from skillpress.core.interface import Ask
from skillpress.core.resume import ResumeStore, content_key
from skillpress.core.tables import write_table
from skillpress.evaluation.judge.verdicts import ask_engine
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.models.policy.pretrained import load_pretrained
from skillpress.pipeline.progress import StageProgress
from skillpress.rollouts.chat.asking import ask_server
from skillpress.rollouts.chat.client import ChatClient
from skillpress.rollouts.chat.journal import endings
from skillpress.rollouts.chat.server import ChatServer

AT_A_TIME = 64
"""Number of verdicts between two saves."""
KIND = "verdicts"

Judge = Callable[[pl.DataFrame, Ask], pl.DataFrame]
"""Maps rows to rows with their verdicts, by asking a model."""


@contextmanager
def judged(
    wanted: Callable[[], pl.DataFrame],
    judge: Judge,
    prompt: str,
    chosen: Namespace,
    *,
    params: Params,
    output: Path,
) -> Iterator[tuple[pl.DataFrame, str]]:
    """All rows with their verdicts, and a sentence on the judge's unusable answers (empty if there are none).

    Verdicts from before an interruption are kept next to ``output`` until the context ends without an error,
    and the same call continues from there.

    Args:
        wanted: the rows to judge, read after the model was found.
        prompt: the judge's prompt; verdicts that another prompt gave do not count.
        chosen: the command line, with the options of ``options.add_judge``.
        output: the file that the caller writes in the context.
    """
    server = player(chosen).server if is_url(chosen.model) else None
    asked: dict[str, Any] = {
        "judge": server.model if server else identify(chosen.model),
        "prompt": prompt,
        "longest": chosen.max_new_tokens,
        **({name: value for name, value in server.asked.items() if name != "omit"} if server else {}),
    }
    rows = wanted()
    store = ResumeStore(
        output.with_name(f"{output.name}.unfinished"), content_key({**asked, "rows": rows.to_dicts()}, [])
    )
    sampling = Sampling(temperature=0.0, max_new_tokens=chosen.max_new_tokens)
    judge_all(rows, judge, _model(server or chosen.model, sampling, params, store), store)
    found = pl.concat([pl.read_parquet(file) for _, file in store.spans(KIND)])
    ended = endings(journal_of(store))
    limit = f"{chosen.max_new_tokens} tokens (raise --max-new-tokens)"
    yield found, endings_told(ended, ended.total(), limit)
    store.clear()


def judge_all(
    rows: pl.DataFrame, judge: Judge, model: AbstractContextManager[Ask], store: ResumeStore
) -> None:
    """Have the model judge the rows without a verdict in the store, and save each batch."""
    done = store.spans(KIND)[-1][0] if store.spans(KIND) else 0
    with StageProgress("judge", rows.height, "question") as progress:
        progress(done)
        if done == rows.height:
            return
        with model as ask:
            while done < rows.height:
                batch = rows.slice(done, AT_A_TIME)
                last = done + batch.height
                write_table(store.span(KIND, done + 1, last), judge(batch, ask), KIND)
                done = last
                progress(done)


@contextmanager
def _model(judge: ChatServer | str, sampling: Sampling, params: Params, store: ResumeStore) -> Iterator[Ask]:
    """The model, loaded or connected to when it gets the first question."""
    if isinstance(judge, ChatServer):
        with closing(ChatClient(judge, sampling, journal_of(store))) as client:
            client.meet()
            yield ask_server(client.reply, AT_ONCE, params.seed)
    else:
        policy = load_pretrained(judge, params.policy.dtype)
        with closing(Experiment(params).engine(policy)) as engine:
            yield ask_engine(
                engine, lambda prompt: policy.encode([prompt])[0], policy.decode, sampling, params.seed
            )
