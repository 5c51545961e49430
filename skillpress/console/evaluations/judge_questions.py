"""``skillpress judge-questions``: let a model say which training questions have one lasting answer.

    skillpress judge-questions --model Qwen/Qwen2.5-7B-Instruct --output verdicts.parquet
    skillpress judge-questions --model http://127.0.0.1:8000/v1 --params params/notebook_qa.yaml --output ...

The model judges the questions that the rules keep, at temperature 0, through the engine that the parameters
name or a chat-completions server. Set environment.objectivity to the file. Verdicts from before an
interruption are kept beside it, and the same command continues from there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

import polars as pl

from skillpress.console.evaluations.chat import AT_ONCE, journal_of, player
from skillpress.console.evaluations.endings import endings_told
from skillpress.console.evaluations.models import identify
from skillpress.console.evaluations.options import add_parameter_options, add_server_options
from skillpress.console.evaluations.parameters import evaluation_params
from skillpress.console.evaluations.players import is_url
from skillpress.core.arguments import Parser, whole
from skillpress.core.engine import Sampling
from skillpress.core.errors import ParamsError
from skillpress.core.interface import Ask
from skillpress.core.resume import ResumeStore, content_key
from skillpress.core.tables import write_table
from skillpress.environments.notebook_qa.parameters import NotebookQaParameters
from skillpress.environments.notebook_qa.tasks import questions_to_judge
from skillpress.experiment.experiment import Experiment
from skillpress.experiment.params import Params
from skillpress.measure.judge.objectivity import PROMPT, judge_objectivity
from skillpress.measure.judge.verdicts import ask_engine
from skillpress.models.policy.pretrained import load_pretrained
from skillpress.pipeline.progress import Progress
from skillpress.play.chat.asking import ask_server
from skillpress.play.chat.client import ChatClient
from skillpress.play.chat.journal import endings
from skillpress.play.chat.server import ChatServer

RESPONSE_TOKENS = 256
"""Room for one sentence of reasons and the verdict; a model that reasons first needs more."""
QUESTIONS_AT_ONCE = 64
"""Questions judged between two saves."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit code."""
    chosen = _parser().parse_args(arguments)
    params = evaluation_params("notebook_qa", chosen.model, chosen.params, assignments=chosen.set)
    section = params.environment
    if not isinstance(section, NotebookQaParameters):
        raise ParamsError(f"environment.name: is {section.name!r}; only questions of notebook_qa are judged")
    if chosen.max_new_tokens < 1:
        raise ParamsError(f"--max-new-tokens: is {chosen.max_new_tokens}; must be at least 1")
    server = player(chosen).server if is_url(chosen.model) else None
    identity = server.model if server else identify(chosen.model)
    questions = questions_to_judge(section)
    sampling = Sampling(temperature=0.0, max_new_tokens=chosen.max_new_tokens)
    asked = {"judge": identity, "prompt": PROMPT, "longest": chosen.max_new_tokens}
    key = content_key({**asked, "questions": questions.to_dicts()}, [])
    store = ResumeStore(chosen.output.with_name(f"{chosen.output.name}.unfinished"), key)
    judge_all(questions, _judge(server or chosen.model, sampling, params, store), store)
    verdicts = pl.concat([pl.read_parquet(file) for _, file in store.spans("verdicts")])
    write_table(chosen.output, verdicts, "verdicts")
    ended = endings(journal_of(store))
    store.clear()
    said = Counter(verdicts["objective"].to_list())
    print(
        f"{chosen.output}: {said[True]} fit, {said[False]} unfit, {said[None]} without a readable verdict "
        f"(kept); name it in environment.objectivity"
    )
    limit = f"{chosen.max_new_tokens} tokens (raise --max-new-tokens)"
    if told := endings_told(ended, ended.total(), limit):
        print(f"answers: {told}")
    return 0


def judge_all(questions: pl.DataFrame, judge: AbstractContextManager[Ask], store: ResumeStore) -> None:
    """Have the model judge the questions without a verdict in the store, and save each batch."""
    done = store.spans("verdicts")[-1][0] if store.spans("verdicts") else 0
    with Progress("judge-questions", questions.height, "question") as progress:
        progress(done)
        if done == questions.height:
            return
        with judge as ask:
            while done < questions.height:
                batch = questions.slice(done, QUESTIONS_AT_ONCE)
                found = judge_objectivity(batch["question"].to_list(), batch["answers"].to_list(), ask)
                verdicts = batch.select("dataset", "id").with_columns(
                    objective=pl.Series(found, dtype=pl.Boolean)
                )
                last = done + batch.height
                write_table(store.span("verdicts", done + 1, last), verdicts, "verdicts")
                done = last
                progress(done)


@contextmanager
def _judge(judge: ChatServer | str, sampling: Sampling, params: Params, store: ResumeStore) -> Iterator[Ask]:
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


def _parser() -> Parser:
    parser = Parser(description=__doc__)
    parser.add_argument("--model", required=True, metavar="FOLDER|NAME|URL", help="who judges")
    parser.add_argument(
        "--output", required=True, type=Path, metavar="FILE", help="the Parquet file of verdicts"
    )
    add_parameter_options(parser, "paper_notebook_qa", "environment.max_answer_words=5")
    parser.add_argument("--max-new-tokens", type=whole(1), default=RESPONSE_TOKENS, metavar="N",
                        help=f"of a verdict at most (default {RESPONSE_TOKENS})")  # fmt: skip
    add_server_options(parser)
    return parser
