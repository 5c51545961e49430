"""A sample of a stage's episodes as MLflow traces, for its chat view. A trace is one episode.

    episode, AGENT              the whole conversation between environment and policy
      decision 0, CHAT_MODEL    the prompt exactly as the policy saw it, its answer, and its tokens
      act, TOOL                 the action, and the environment's answer
      decision 1, CHAT_MODEL    ...

The episode and its decisions have ``messages`` and ``choices`` in the format of chat-completions servers. If
decisions are a tree, as with sub-agents, each has the attribute ``continues``: the number of the decision
whose conversation it continues, or null. The session of the trace is the task, so that a task's episodes are
listed together. Its metadata name the stage's
run; its tags give the player and the outcome. Episodes have no times, so a decision and its action get a
millisecond each. A hundred episodes of ten steps take about two seconds of a core.
"""

from __future__ import annotations

import hashlib
import json
import time
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import polars as pl
from mlflow.entities import Span, SpanType, TraceInfo, TraceLocation, TraceState
from mlflow.tracing.client import TracingClient
from mlflow.tracing.constant import (
    MAX_CHARS_IN_TRACE_INFO_METADATA,
    SpanAttributeKey,
    TokenUsageKey,
    TraceMetadataKey,
    TraceTagKey,
)

from skillpress.core.beginnings import conversations
from skillpress.core.rollout_files import TRAJECTORY_KEY, iterate_rollouts, scan_rollouts
from skillpress.core.trajectory import Step, Trajectory
from skillpress.integrations.formats.atif import ACT
from skillpress.integrations.formats.texts import TOKENIZER, Said, Texts, load_texts

MILLISECOND = 1_000_000
"""Nanoseconds in a millisecond."""
PREVIEW = 200
"""Lists of traces show at most this many characters of an episode."""
EPISODE = "episode"
"""The root span's name."""


@dataclass(frozen=True)
class StageRecord:
    """What all traces of a stage share."""

    experiment_id: str
    run_id: str
    stage: str


@dataclass(frozen=True)
class EpisodeTrace:
    """One episode as the entities that MLflow stores."""

    of: StageRecord
    trajectory: Trajectory
    said: tuple[Said, ...]
    """Its decisions as text."""
    started: int
    """Start time in nanoseconds since 1970."""

    @property
    def key(self) -> str:
        """A hash of the run and the episode (32 hex digits), so that logging again gives the same trace."""
        name = f"{self.of.run_id}/{self.trajectory.group_id}/{self.trajectory.rollout_index}"
        return hashlib.sha256(name.encode()).hexdigest()[:32]

    @property
    def trace_id(self) -> str:
        """The trace's id in MLflow's format."""
        return f"tr-{self.key}"

    def info(self) -> TraceInfo:
        """The fields that lists and searches of traces show."""
        episode = self.trajectory
        return TraceInfo(
            trace_id=self.trace_id,
            trace_location=TraceLocation.from_experiment_id(self.of.experiment_id),
            request_time=self.started // MILLISECOND,
            execution_duration=len(self.said),
            state=TraceState.OK,
            request_preview=_preview(episode.first_observation),
            response_preview=_preview(f"{episode.outcome}: {' | '.join(episode.actions)}"),
            trace_metadata={
                TraceMetadataKey.TRACE_SESSION: episode.task_id[:MAX_CHARS_IN_TRACE_INFO_METADATA],
                TraceMetadataKey.SOURCE_RUN: self.of.run_id,
            },
            tags={
                TraceTagKey.TRACE_NAME: self.of.stage,
                "group_id": episode.group_id,
                "rollout_index": str(episode.rollout_index),
                "policy": episode.policy,
                "policy_version": str(episode.policy_version),
                "won": str(episode.won).lower(),
                "outcome": episode.outcome,
                "steps": str(len(episode.steps)),
                "reward": f"{episode.total_reward:g}",
            },
        )

    def spans(self) -> Iterator[Span]:
        """The episode, its decisions, and its actions."""
        yield self._span(EPISODE, SpanType.AGENT, self._talk())
        decisions = self.trajectory.decisions
        before = conversations([(step.prompt_ids, step.response_ids) for step in decisions])
        for number, (step, said) in enumerate(zip(decisions, self.said, strict=True)):
            values = _decision(step, said)
            if before:
                one = before[number]
                values["continues"] = None if one is None else one.call
            yield self._span(f"decision {number}", SpanType.CHAT_MODEL, values, number)
            if step.action:
                values = {
                    SpanAttributeKey.INPUTS: {"action": step.action},
                    SpanAttributeKey.OUTPUTS: {"observation": step.observation},
                }
                yield self._span(ACT, SpanType.TOOL, values, number)

    def _talk(self) -> dict[str, Any]:
        """Observations and answers in turns; the last answer is the choice."""
        answers = [said.response for said in self.said if not said.summary]
        heard = [self.trajectory.first_observation, *(step.observation for step in self.trajectory.steps)]
        *before, last = zip(heard, answers, strict=False)  # there is one more observation than answers
        messages = [
            {"role": role, "content": text}
            for pair in before
            for role, text in zip(("user", "assistant"), pair, strict=True)
        ]
        return {
            SpanAttributeKey.INPUTS: {"messages": [*messages, {"role": "user", "content": last[0]}]},
            SpanAttributeKey.OUTPUTS: _choices(last[1]),
        }

    def _span(self, name: str, kind: str, values: Mapping[str, Any], number: int = -1) -> Span:
        """A span of the decision with this number, or of the whole episode; an action is its second half."""
        whole = number < 0
        first, count = (0, len(self.said)) if whole else (number, 1)
        started = self.started + first * MILLISECOND + (MILLISECOND // 2 if name == ACT else 0)
        attributes = {SpanAttributeKey.REQUEST_ID: self.trace_id, SpanAttributeKey.SPAN_TYPE: kind, **values}
        return Span.from_dict(
            {
                "trace_id": b64encode(bytes.fromhex(self.key)).decode(),
                "span_id": self._span_id(name, number),
                "parent_span_id": None if whole else self._span_id(EPISODE, -1),
                "name": name,
                "start_time_unix_nano": started,
                "end_time_unix_nano": self.started + (first + count) * MILLISECOND,
                "status": {"code": "STATUS_CODE_OK", "message": ""},
                "events": [],
                "links": [],
                "attributes": {
                    key: json.dumps(value, ensure_ascii=False) for key, value in attributes.items()
                },
            }
        )

    def _span_id(self, name: str, number: int) -> str:
        return b64encode(hashlib.sha256(f"{self.key} {name} {number}".encode()).digest()[:8]).decode()


def _decision(step: Step, said: Said) -> dict[str, Any]:
    """The values of a decision's span."""
    asked, answered = len(step.prompt_ids), len(step.response_ids)
    usage = {
        TokenUsageKey.INPUT_TOKENS: asked,
        TokenUsageKey.OUTPUT_TOKENS: answered,
        TokenUsageKey.TOTAL_TOKENS: asked + answered,
    }
    return {
        SpanAttributeKey.INPUTS: {"messages": [{"role": "user", "content": said.prompt or ""}]},
        SpanAttributeKey.OUTPUTS: _choices(said.response),
        **({SpanAttributeKey.CHAT_USAGE: usage} if asked else {}),
        "reward": step.reward,
        "reward_parts": [asdict(part) for part in step.reward_parts],
        "invalid": step.invalid,
        "summary": said.summary,
    }


def _preview(text: str) -> str:
    """The beginning of a text, without the one character that PostgreSQL cannot store in a text."""
    return text[:PREVIEW].replace("\x00", "")


def _choices(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


TOGETHER = 20
"""Number of traces whose spans are written in one call."""


def log_traces(of: StageRecord, rollouts: Path, policy: Path, most: int) -> None:
    """Record a sample of a rollout file; lists of traces show the file's first episode first.

    A stage that was killed and continues in its run writes the same traces again, but each only once.

    Args:
        policy: a folder with the tokenizer of the policy that played; without one there are no prompts.
        most: the maximum number of episodes to record.
    """
    texts = load_texts(policy) if (policy / TOKENIZER).is_file() else Texts()
    client, now = TracingClient(), time.time_ns()
    traces = [
        EpisodeTrace(of, episode, tuple(texts(episode)), now - number * MILLISECOND)
        for number, episode in enumerate(sample_episodes(rollouts, most))
    ]
    for first in range(0, len(traces), TOGETHER):
        some = traces[first : first + TOGETHER]
        for trace in some:
            client.start_trace(trace.info())
        client.log_spans(of.experiment_id, [span for trace in some for span in trace.spans()])


def sample_episodes(rollouts: Path, most: int) -> list[Trajectory]:
    """A sample of at most ``most`` episodes of a file: all episodes of some tasks, which are evenly spaced
    in it. If a single task has more episodes than that, only its first ones.

    Raises:
        StorageError: the file is missing, truncated, or has another schema.
    """
    episodes = scan_rollouts(rollouts).select(TRAJECTORY_KEY).unique(maintain_order=True)
    counted = episodes.group_by("task_id", maintain_order=True).len().collect().rows()
    if not counted:
        return []
    each = max(count for _, count in counted)
    count = min(len(counted), max(1, most // each))
    chosen = [counted[number * len(counted) // count][0] for number in range(count)]
    return list(iterate_rollouts(rollouts, pl.col("task_id").is_in(chosen)))[:most]
