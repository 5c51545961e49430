"""Recorded episodes as samples: own tokens as they are, foreign conversations by the chat template."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import pytest
import torch
from trl.chat_template_utils import qwen2_5_chat_template

from skillpress.core.chat_messages import Message
from skillpress.core.errors import ParamsError
from skillpress.core.rollout_files import read_rollouts, write_rollouts
from skillpress.core.trajectory import Step, Trajectory
from skillpress.logs.episodes import gather
from skillpress.models.policy import Policy
from skillpress.models.policy.scoring import ResponseScorer, pack_responses
from skillpress.rollouts.programs.tool_calls import Reader, hermes, llama_json
from skillpress.training.imitation import trainer
from skillpress.training.imitation.episodes import EpisodeSamples, Gathered, read_conversations
from skillpress.training.imitation.parameters import ImitationParameters
from skillpress.training.imitation.samples import Sample
from tests.support.episodes import made_step
from tests.support.integrations import foreign_records, trace_records
from tests.support.models.chatting import chat_policy
from tests.support.models.tiny import tiny_policy

SECTION = ImitationParameters(
    demonstrations=0, thoughts=None, detour_rate=0.0, batch_size=8, learning_rate=0.01, epochs=80
)


def episode(policy: Policy, number: int, won: bool, **changes: Any) -> Trajectory:
    """Two steps that walk up if they are won, and down otherwise."""
    word = "up" if won else "down"
    prompts = policy.encode([f"{number} {number + 1}", f"{number} {number + 1} {word}"])
    steps = tuple(
        made_step(
            prompt_ids=prompt,
            response_ids=policy.encode_response(word),
            logprobs=(-1.0, -1.0),
            action=json.dumps({"content": word}),
            observation=f"{number}",
        )
        for prompt in prompts
    )
    told = {
        "task_id": f"task-{number}",
        "group_id": f"group-{number}",
        "rollout_index": 0,
        "steps": steps,
        "won": won,
        "terminated": True,
        "truncated": False,
        "outcome": "won" if won else "unsuccessful",
        "policy_version": 0,
        "seed": number,
        "first_observation": f"{number} {number + 1}",
    }
    return Trajectory(**{**told, **changes})


def own_file(folder: Path, policy: Policy, episodes: int = 12) -> Path:
    """A rollout file in which every third episode is won."""
    file = folder / "own.parquet"
    write_rollouts(file, [episode(policy, number, number % 3 == 0) for number in range(episodes)])
    return file


def chosen(
    policy: Policy, gathered: Gathered, budget: int = 64, longest: int = 8, read: Reader | None = None
) -> tuple[list[Sample], EpisodeSamples]:
    made = EpisodeSamples(policy, budget, longest, read)
    with tempfile.TemporaryDirectory() as folder:
        return [*made.of(gathered, Path(folder) / "recorded.arrow")], made


def chat(**changes: Any) -> dict[str, Any]:
    """A chat that says in one field whether it was won."""
    made = trace_records.chat(**{"resolved": True, **changes})
    return {name: value for name, value in made.items() if name != "solved"}


def likelihood(policy: Policy, samples: list[Sample]) -> float:
    with torch.no_grad():
        found, _ = ResponseScorer(policy.model)(pack_responses(samples), 1.0)
    return float(found.mean())


def test_a_policy_that_imitates_its_own_won_episodes_finds_them_likelier(tmp_path: Path) -> None:
    policy = tiny_policy()
    file = own_file(tmp_path, policy)
    won, made = chosen(policy, gather([str(file)], "won", tmp_path))
    everything, _ = chosen(policy, gather([str(file)], "all", tmp_path))
    lost = [sample for sample in everything if sample not in won]
    before, of_lost = likelihood(policy, won), likelihood(policy, lost)
    trainer.imitate(policy, won, SECTION, 0, token_limit=1024)
    assert likelihood(policy, won) > -1.0 > before
    assert likelihood(policy, lost) < of_lost
    assert made.counts.episodes == 4 and made.counts.responses == len(won) == 8


def test_own_tokens_are_learned_as_they_were_sampled(tmp_path: Path) -> None:
    policy = tiny_policy()
    file = own_file(tmp_path, policy)
    steps = [step for each in read_rollouts(file) if each.won for step in each.steps]
    found, _ = chosen(policy, gather([str(file)], "won", tmp_path))
    assert found == [(step.prompt_ids, step.response_ids) for step in steps]


def test_what_was_read_won_used_refused_and_too_long_is_said(tmp_path: Path) -> None:
    policy = tiny_policy()
    fine, long = episode(policy, 0, True), episode(policy, 1, True)
    steps = (long.steps[0], *(step for step in fine.steps))
    mixed = episode(
        policy,
        1,
        True,
        steps=tuple(
            Step(**{**vars(step), **change})
            for step, change in zip(
                steps,
                ({"invalid": "broken_call"}, {"prompt_ids": (5,) * 20}, {"response_ids": (5,) * 20}),
                strict=True,
            )
        ),
    )
    write_rollouts(tmp_path / "own.parquet", [fine, mixed, episode(policy, 2, False)])
    gathered = gather([str(tmp_path / "own.parquet")], "won", tmp_path)
    found, made = chosen(policy, gathered, budget=16)
    assert len(found) == 2
    assert gathered.told(made.counts) == (
        "3 episodes read, 2 won, 2 chosen, 1 used with 2 responses; 2 responses are too long for "
        "policy.context_tokens or sampling.max_new_tokens; 1 responses were refused when they were played"
    )


def test_a_file_of_another_tokenizer_is_refused_by_name(tmp_path: Path) -> None:
    file = own_file(tmp_path, tiny_policy())
    gathered = gather([str(file)], "won", tmp_path)
    other = chat_policy(qwen2_5_chat_template)
    with pytest.raises(
        ParamsError, match=r"imitation\.episodes: .*own\.parquet: .* tokenizer other than .* 0%"
    ):
        chosen(other, gathered)
    write_rollouts(file, [episode(other, number, True) for number in range(3)])
    with pytest.raises(
        ParamsError, match=r"tokenizer other than .* it has token \d+, and this policy has 55"
    ):
        chosen(tiny_policy(), gather([str(file)], "won", tmp_path))


def conversations(folder: Path, *records: Any, which: str = "won") -> list[list[tuple[str, str, bool]]]:
    """Each conversation's messages as (role, content and tools, whether it is learned)."""
    file = folder / "log.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    found = gather([str(file)], which, folder)
    assert found.conversations is not None
    return [
        [
            (
                each.role,
                " ".join([each.content, *(call.name for call in each.calls)]).strip(),
                place in c.learned,
            )
            for place, each in enumerate(c.messages)
        ]
        for c in read_conversations(found.conversations)
    ]


def test_a_chat_is_its_messages_of_which_the_assistants_are_learned(tmp_path: Path) -> None:
    (found,) = conversations(tmp_path, chat(), chat(id="2", resolved=False, solved=False))
    assert found == [
        ("system", "You mend programs.", False),
        ("user", "Mend gcd.", False),
        ("assistant", "search edit", True),
        ("tool", "edited", False),
        ("tool", "gcd.py:1", False),
        ("assistant", "test", True),
        ("tool", "3 passed", False),
        ("assistant", "It is mended.", True),
    ]


def test_atif_says_by_a_named_field_what_was_won(tmp_path: Path) -> None:
    whole = trace_records.atif()
    whole["steps"] = [step for step in whole["steps"] if not step.get("is_copied_context")]
    lost = {**whole, "session_id": "other", "extra": {"verifier": {"reward": 0.0}}}
    (found,) = conversations(tmp_path, whole, lost, which="extra.verifier.reward>=1")
    assert [message for message in found if message[2]] == [
        ("assistant", "Look. search edit", True),
        ("assistant", "Done. test", True),
        ("assistant", "It is mended.", True),
    ]
    assert ("tool", "gcd.py:1", False) in found and ("user", "Mend gcd.", False) in found


def test_a_line_for_each_call_of_the_model_is_learned_once(tmp_path: Path) -> None:
    whole = chat()["messages"]
    calls = [
        {"session_id": "a", "resolved": True, "messages": whole[:end], "response": whole[end]}
        for end in (2, 5, 7)
    ]
    (found,) = conversations(tmp_path, *calls)
    assert [message[1] for message in found if message[2]] == ["search edit", "test", "It is mended."]


def test_a_history_that_is_rewritten_is_learned_once_and_as_it_was_shown(tmp_path: Path) -> None:
    """An agent that shows its model the task and the last call alone."""
    whole = chat()["messages"]
    windows = [(whole[1:2], whole[2]), (whole[1:5], whole[5]), (whole[1:2] + whole[5:7], whole[7])]
    calls = [
        {"session_id": "a", "resolved": True, "messages": asked, "response": said} for asked, said in windows
    ]
    found = conversations(tmp_path, *calls, calls[0] | {"session_id": "b"})
    assert [[message[1] for message in each if message[2]] for each in found] == [
        ["search edit", "test"], ["It is mended."], ["search edit"],
    ]  # fmt: skip
    gathered = gather([str(tmp_path / "log.jsonl")], "won", tmp_path)
    _, made = chosen(chat_policy(qwen2_5_chat_template), gathered, budget=4096, longest=512)
    assert made.counts.episodes == gathered.won == 2 and gathered.silent == 0


@pytest.mark.parametrize(
    "record",
    [
        foreign_records.responses(), foreign_records.tau_bench(), foreign_records.inspect_sample(),
        foreign_records.langchain(), foreign_records.sharegpt(), foreign_records.verifiers(),
        foreign_records.nemo_gym(), foreign_records.agents_sdk(), foreign_records.swe_agent_calls(),
    ],
    ids=[
        "responses", "tau-bench", "inspect", "LangChain", "ShareGPT", "verifiers", "NeMo-Gym", "agents SDK",
        "SWE-agent",
    ],
)  # fmt: skip
def test_every_format_of_messages_is_a_conversation_that_asks_first(tmp_path: Path, record: Any) -> None:
    (found,) = conversations(tmp_path, record, which="all")
    assert found[0][0] in ("system", "user") and foreign_records.DONE in [m[1] for m in found if m[2]]
    examples = "reward" in record and "completion" in record  # verifiers: a turn of the prompt
    said = [learned for role, _, learned in found if role == "assistant"]
    assert said == [False] * examples + [True] * (len(said) - examples)


def test_a_foreign_log_is_rendered_and_only_what_the_reader_reads_is_learned(tmp_path: Path) -> None:
    policy = chat_policy(qwen2_5_chat_template)
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps(chat()) + "\n")
    gathered = gather([str(file)], "won", tmp_path)
    found, made = chosen(policy, gathered, budget=4096, longest=512, read=hermes)
    assert made.counts.responses == len(found) == 3
    assert policy.text(found[-1][0]).count("gcd.py:1") == 1
    assert policy.decode(found[-1][1]) == "It is mended."
    _, other = chosen(policy, gathered, budget=4096, longest=512, read=llama_json)
    assert other.counts.unlike == 2 and other.counts.responses == 1
    assert "environment.calls reads them" in gathered.told(other.counts)


@pytest.mark.parametrize(
    ("name", "text", "which", "said"),
    [
        ("none.jsonl", None, "won", r"none\.jsonl: no such file in the working directory or the lab"),
        ("log.jsonl", "{}", "won", r"no trace was found in .*log\.jsonl: .*not a known format"),
        ("log.jsonl", "chat", "reward>=1", r"imitation\.which reward: none of 1 traces has it"),
        ("log.jsonl", "lost", "won", r"none of the 1 episodes read .* imitation\.which .* 'all'"),
    ],
)
def test_files_that_teach_nothing_are_refused_with_the_remedy(
    tmp_path: Path, name: str, text: str | None, which: str, said: str
) -> None:
    texts = {
        "chat": json.dumps(chat()),
        "lost": json.dumps(chat(resolved=False)),
    }
    if text is not None:
        (tmp_path / name).write_text(texts.get(text, text) + "\n")
    with pytest.raises(ParamsError, match=rf"imitation\.episodes: .*{said}"):
        gather([str(tmp_path / name)], which, tmp_path)


def test_runs_of_spans_are_counted_since_they_hold_no_messages(tmp_path: Path) -> None:
    file = tmp_path / "log.jsonl"
    file.write_text("\n".join(json.dumps(record) for record in (chat(), foreign_records.langfuse())))
    gathered = gather([str(file)], "all", tmp_path)
    assert gathered.silent == 1 and gathered.chosen == 2
    assert next(iter(read_conversations(tmp_path / "conversations.parquet"))).messages[1] == Message(
        "user", "Mend gcd."
    )
