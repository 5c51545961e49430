"""A policy whose responses follow a rule, with a tokenizer of bytes and the chat template of Qwen2.5.

Its first response calls the tool that it is shown; the second says the sum, if the tool's result has come.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel as Bytes
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast, Qwen2Config
from trl.chat_template_utils import qwen2_5_chat_template

from skillpress.core.engine import Completion, Promises, Request, StateDict
from skillpress.core.trajectory import Task, TokenIds, Trajectory
from skillpress.environments.program.parameters import ProgramParameters
from skillpress.environments.program.shared import SharedPrograms
from skillpress.models.policy import Policy
from skillpress.rollouts.collection import Collector, ThreadVectorEnv, requests
from skillpress.rollouts.programs.tool_calls import hermes
from tests.support.rollouts.program_parts import agent_of

SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
ASSISTANT = "<|im_start|>assistant\n"
ASKED = re.compile(r"add (\d+) and (\d+)")


def byte_policy() -> Policy:
    """A policy that is shown tools in Hermes' form; its weights are never used."""
    letters = {letter: number for number, letter in enumerate(sorted(ByteLevel.alphabet()))}
    tokenizer = Tokenizer(BPE(letters, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = ByteLevel(add_prefix_space=False), Bytes()
    tokenizer.add_special_tokens(list(SPECIAL))
    fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token=SPECIAL[2], pad_token=SPECIAL[0])
    fast.chat_template = qwen2_5_chat_template
    config = Qwen2Config(
        vocab_size=len(fast), hidden_size=8, intermediate_size=8, num_hidden_layers=1, num_attention_heads=1,
        num_key_value_heads=1, max_position_embeddings=1 << 16, eos_token_id=fast.eos_token_id,
    )  # fmt: skip
    return Policy(AutoModelForCausalLM.from_config(config), fast)


class ScriptedEngine:
    """Answers at once, and remembers every prompt with its response."""

    promises = Promises(exact_seeds=True, exact_logprobs=False, lockstep=True)

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._done: list[tuple[int, Completion]] = []
        self.sampled: list[tuple[TokenIds, TokenIds]] = []
        """(prompt, response) of every request."""

    def submit(self, requests: Sequence[Request]) -> None:
        for request in requests:
            prompt = str(self.policy.tokenizer.decode(list(request.prompt)))
            ids = self.policy.encode_response(self.said(prompt))
            self.sampled.append((request.prompt, ids))
            logprobs = np.full(len(ids), -0.5, np.float32)
            self._done.append((request.key, Completion(ids, logprobs, "stop")))

    def completed(self, wait: float) -> list[tuple[int, Completion]]:
        done, self._done = self._done, []
        return done

    def abort(self) -> None:
        self._done.clear()

    def update_weights(self, weights: StateDict, version: int) -> None:
        """There are none."""

    def sleep(self) -> None:
        """Nothing to release."""

    def wake(self) -> None:
        """Nothing to take back."""

    def close(self) -> None:
        """Nothing to close."""

    def said(self, prompt: str) -> str:
        """The response to a prompt."""
        numbers = ASKED.search(prompt)
        assert numbers is not None, f"the task is not in the prompt: {prompt[-500:]}"
        a, b = int(numbers[1]), int(numbers[2])
        first = prompt.count(ASSISTANT) == 1
        has_come = f"sum={a + b}" in prompt
        told = f"The sum is {a + b}." if has_come else "The tool has said nothing."
        if '"name": "bash"' in prompt:
            ending = f"echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT; echo '{told}'"
            return call("bash", command=f"echo sum=$(({a} + {b}))" if first else ending)
        if '"name": "final_answer"' in prompt:
            return call("add", a=a, b=b) if first else call("final_answer", answer=told)
        if '"name": "add"' in prompt:
            return f"Let me see.\n{call('add', a=a, b=b)}" if first else told
        code = f"print(add({a}, {b}))" if first else f"final_answer({told!r})"
        return f"Thought: I use code.\n<code>\n{code}\n</code>"


def call(name: str, /, **arguments: object) -> str:
    """A call in Hermes' form."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def collected(
    section: ProgramParameters, engine: ScriptedEngine, tasks: Sequence[Task], budget: int
) -> list[Trajectory]:
    """An episode of each task, two at once. ``budget`` is the most tokens of a prompt."""
    shared = SharedPrograms(section, 2)
    agent = agent_of(engine.policy, engine, budget, hermes, longest=512)
    with Collector(ThreadVectorEnv(shared, shared.seconds, shared.close), agent, 2) as collector:
        return collector.collect(requests(tasks, 1, 7, "test"))
