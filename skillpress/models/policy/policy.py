"""A policy on disk and in memory: a Hugging Face model folder, whatever model it contains.

The same few lines load a scratch policy, SmolLM2 and Qwen2.5. The folder contains what distinguishes them: a
chat template, the token that texts begin with, and the tokens that end a response. A folder's files often
disagree about the latter, so a response ends with any token that one of them names (``with_all_ends``).
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import torch

from skillpress.core.unneeded import unneeded

with unneeded("sklearn"):  # half a second, for a kind of sampling that is not used here
    from transformers import AutoModelForCausalLM, PreTrainedModel, PreTrainedTokenizerFast
    from transformers.models.auto.tokenization_auto import get_tokenizer_config
    from transformers.utils import logging as transformers_logging

from skillpress.core.chat_messages import Message
from skillpress.core.errors import PolicyError, UserError
from skillpress.core.markup import THOUGHT, THOUGHT_END, silent_tokens
from skillpress.core.storage import atomic_directory
from skillpress.core.trajectory import TokenIds
from skillpress.models.policy.attention import apply_soft_cap
from skillpress.models.policy.chat_template import QUESTION, ChatTemplate, chat_template, without_tools
from skillpress.models.policy.model_files import (
    listed,
    named_ends,
    refuse_other_files,
    template_for_processors,
)
from skillpress.models.policy.older_readers import make_savable, name_for_older_readers
from skillpress.rollouts.programs.requests import ModelRequest

transformers_logging.disable_progress_bar()  # a bar for each folder that is read or written
UNBOUNDED = 1 << 20
"""Context length of a model whose configuration names no limit."""


@dataclass(frozen=True)
class Policy:
    """A causal language model with its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerFast

    @property
    def stop_token_ids(self) -> frozenset[int]:
        """The tokens that end a response."""
        assert self.model.generation_config is not None
        stop = self.model.generation_config.eos_token_id
        return frozenset([stop] if isinstance(stop, int) else stop or [])

    @property
    def parameters(self) -> int:
        """Number of weights of the model."""
        return sum(weight.numel() for weight in self.model.parameters())

    @property
    def context_length(self) -> int:
        """Maximum number of tokens of a prompt and its response together."""
        config = self.model.config.get_text_config()  # multimodal configurations have one per modality
        return int(getattr(config, "max_position_embeddings", None) or UNBOUNDED)

    @property
    def vocabulary(self) -> int:
        """Number of token ids that the model knows."""
        return int(self.model.config.get_text_config().vocab_size)

    def encode(self, prompts: Sequence[str]) -> list[TokenIds]:
        """Token ids of prompts.

        An instruction model's prompts are put into its chat template. A base model's prompt begins with the
        tokens that its tokenizer puts before a text: a BOS token or nothing.
        """
        chat = self._chat
        begin = () if chat else self.text_begin
        rows = self._encode_texts([chat.prompt(text) for text in prompts] if chat else prompts)
        return [begin + row for row in rows]

    def encode_request(self, request: ModelRequest) -> TokenIds:
        """Token ids of the prompt for a program's request.

        The chat template shows messages and tools. A model without one reads the contents alone, one after
        the other; it has no form for tools.

        Raises:
            PolicyError: the template cannot show the request, or there are tools and no form for them.
        """
        chat = self._chat
        if request.tools and (reason := without_tools(self.tokenizer)):
            raise PolicyError(reason)
        if chat is not None:
            text = chat.conversation([message.plain() for message in request.messages], request.tools)
            return self._encode_texts([text])[0]
        said = "\n".join(message.content for message in request.messages)
        return self.text_begin + self._encode_texts([said])[0]

    def encode_exchange(self, request: ModelRequest, answer: Message) -> tuple[TokenIds, TokenIds]:
        """Token ids of a request's prompt, and of a complete response that says ``answer``.

        The prompt is that of :meth:`encode_request`. The chat template writes the response, with its calls; a
        model without one writes the content alone.

        Raises:
            UnshownConversationError: the template cannot show the request or the answer.
            PolicyError: there are tools or calls, and no form for them.
        """
        chat, prompt = self._chat, self.encode_request(request)
        if chat is not None:
            messages = [message.plain() for message in request.messages]
            ids = self.encode_beginning(chat.answer(messages, request.tools, answer.plain()))
            stop = next((place for place, token in enumerate(ids) if token in self.stop_token_ids), None)
            return prompt, (*ids, self._closing_id) if stop is None else ids[: stop + 1]
        if answer.calls:
            raise PolicyError(
                f"{self.tokenizer.name_or_path}: without a chat template it cannot show tool calls"
            )
        return prompt, self.encode_response(answer.content)

    def extend(self, contexts: Sequence[TokenIds], turns: Sequence[str]) -> list[TokenIds]:
        """Prompts that extend earlier ones: each context (a prompt and its response) unchanged, token by
        token, followed by a turn of the user.

        An instruction model's chat template determines the text between them. The response's stop token
        belongs to this text and is added if the response was cut before it.
        """
        chat = self._chat
        rows = self._encode_texts([chat.after_response(turn) for turn in turns] if chat else turns)
        return [
            context + (self._unless_closed(context, row) if chat else row)
            for context, row in zip(contexts, rows, strict=True)
        ]

    def encode_response(self, response: str) -> TokenIds:
        """Token ids of a complete response, without what its prompt has opened, closed by a stop token."""
        ids = self.encode_beginning(response)
        return ids if ids and ids[-1] in self.stop_token_ids else (*ids, self._closing_id)

    def encode_beginning(self, text: str) -> TokenIds:
        """Token ids of a response's beginning; a thought that the prompt has opened is closed first."""
        opening = self._opening
        if opening and text.startswith(THOUGHT):
            text = text.removeprefix(opening).removeprefix(THOUGHT)
        elif opening:
            text = f"\n{THOUGHT_END}\n\n{text}"
        return self._encode_texts([text])[0]

    def decode(self, token_ids: TokenIds) -> str:
        """The text of a response: what its prompt has opened, followed by the text of its tokens."""
        return self._opening + self.text(token_ids)

    def text(self, token_ids: TokenIds) -> str:
        """The text of tokens, without special tokens that are not words (``markup.silent_tokens``)."""
        spoken = [token for token in token_ids if token not in self._silent]
        return str(self.tokenizer.decode(spoken, skip_special_tokens=False))

    def words(self) -> list[str]:
        """The text of every token that is a single word, in the order of their ids."""
        texts = (self.text((token,)).strip() for token in range(len(self.tokenizer)))
        return [text for text in texts if text.isprintable() and len(text.split()) == 1]

    def _encode_texts(self, texts: Sequence[str]) -> list[TokenIds]:
        """Token ids of the texts alone, without anything around them."""
        encoded = self.tokenizer.backend_tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [tuple(row.ids) for row in encoded]

    def _unless_closed(self, context: TokenIds, between: TokenIds) -> TokenIds:
        """The tokens that follow the response, without the stop token if it already ends with one."""
        if context[-1] not in self.stop_token_ids:
            return between
        stop = next((place for place, token in enumerate(between) if token in self.stop_token_ids), -1)
        return between[stop + 1 :]

    @property
    def _chat(self) -> ChatTemplate | None:
        return chat_template(self.tokenizer)

    @property
    def _opening(self) -> str:
        """The end of prompts that belongs to the response."""
        chat = self._chat
        return chat.opening if chat else ""

    @property
    def text_begin(self) -> TokenIds:
        """The special tokens that the tokenizer puts before a text."""
        (word,) = self._encode_texts(["a"])
        marked = self.tokenizer.backend_tokenizer.encode("a", add_special_tokens=True).ids
        return tuple(marked[: marked.index(word[0])]) if word else ()

    @cached_property
    def _silent(self) -> frozenset[int]:
        chat, silent = self._chat, silent_tokens(self.tokenizer.backend_tokenizer)
        if chat is None or chat.turn_end is None:
            return silent
        return silent | {chat.turn_end}  # some tokenizers do not mark it as special

    @property
    def _closing_id(self) -> int:
        """The stop token of a complete response: the chat template's, the tokenizer's, or the first."""
        chat, stop = self._chat, self.stop_token_ids
        named = (chat.turn_end if chat else None, self.tokenizer.eos_token_id)
        return next((token for token in named if isinstance(token, int) and token in stop), min(stop))


def load_policy(source: str | Path, dtype: str = "float32") -> Policy:
    """Load a model folder, or a name on the Hugging Face hub, with weights of ``float32`` or ``bfloat16``.

    Raises:
        PolicyError: there is no model or only an adapter, a part of its weights is missing, its tokenizer
            encodes text to nothing or to tokens that the model lacks, no token ends a response, or its chat
            template drops the prompt.
    """
    try:
        refuse_other_files(source)
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            str(source),
            dtype=getattr(torch, dtype),
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            trust_remote_code=False,  # it must not ask in the terminal for permission either
        )
        model, report = loaded
        # Not AutoTokenizer: for some model types it ignores the saved class, and a word-level tokenizer then
        # encodes every text to nothing.
        tokenizer = PreTrainedTokenizerFast.from_pretrained(str(source))
        begins = get_tokenizer_config(str(source)).get("add_bos_token")
        ends = named_ends(source)
        template = None if tokenizer.chat_template else template_for_processors(source)
    except UserError:
        raise
    except Exception as error:  # whatever third-party files cause; tokenizers raises this class itself
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if "trust_remote_code" in str(error):
            reason = "it needs code of its own, by auto_map in config.json, and a folder's code is never run"
        elif "instantiate the backend tokenizer" in reason:
            reason = "it has no tokenizer.json, and none can be made here of its other files"
        raise PolicyError(
            f"{source}: not a Hugging Face causal language model that can be loaded here ({reason})"
        ) from error
    _check_weights(report, type(model).__name__, source)
    refuse_infinite_weights(model.state_dict(), source)
    apply_soft_cap(model)
    policy = Policy(model.eval(), tokenizer)
    if isinstance(begins, bool) and begins != bool(policy.text_begin) and tokenizer.bos_token is not None:
        # Some folders say so only in tokenizer_config.json, which transformers 5 does not read.
        tokenizer.add_bos_token = begins
    if template is not None:
        tokenizer.chat_template = template
    _check_named_ends(policy, source)
    with_all_ends(policy, ends)
    _check(policy, source)
    return policy


def with_all_ends(policy: Policy, others: frozenset[int] = frozenset()) -> Policy:
    """Make responses end with any token that the generation configuration, the tokenizer or the chat template
    names as an end. The policy's generation configuration is changed in place.

    The files of a fine-tuned model often disagree: its chat template ends turns with one token, and
    generation_config.json still names another one.

    Args:
        others: additional ends, which are used only if they are added tokens and not ordinary words.
    """
    config, chat = policy.model.generation_config, chat_template(policy.tokenizer)
    assert config is not None
    named = (policy.tokenizer.eos_token_id, chat.turn_end if chat else None)
    added = policy.tokenizer.backend_tokenizer.get_added_tokens_decoder()
    more = {token for token in named if isinstance(token, int)} | (others & added.keys())
    more -= policy.stop_token_ids
    if more:
        config.eos_token_id = [*sorted(policy.stop_token_ids), *sorted(more)]
    return policy


class SavedPart(Protocol):
    """A part of a model folder besides the model."""

    def save(self, folder: Path) -> None:
        """Write the part into a new folder."""


ADAPTER = "adapter"
"""The folder of a LoRA adapter in a model folder, whose weights already include its changes."""


def save_policy(
    policy: Policy,
    folder: str | Path,
    weights: Mapping[str, torch.Tensor] | None = None,
    adapter: SavedPart | None = None,
) -> None:
    """Write the model folder. It replaces an older one completely or not at all.

    Args:
        weights: saved instead of the model's own; None saves those.
        adapter: the trained part of the weights, to be loaded over the policy that training started from.
    """
    make_savable(policy.model)
    with atomic_directory(folder) as temporary:
        with unneeded("deepspeed"):  # two seconds, to see that the model is not one of its engines
            policy.model.save_pretrained(temporary, state_dict=None if weights is None else dict(weights))
        policy.tokenizer.save_pretrained(temporary)
        name_for_older_readers(temporary, policy.model.config)
        if adapter is not None:
            adapter.save(temporary / ADAPTER)


def copy_model(model: PreTrainedModel) -> PreTrainedModel:
    """A second model with the same weights that shares no memory with the first."""
    twin = copy.deepcopy(model)
    twin.eval()
    return twin


def _check_named_ends(policy: Policy, source: str | Path) -> None:
    config = policy.model.generation_config
    named = None if config is None else config.eos_token_id
    if named is not None and len(listed(named)) != (len(named) if isinstance(named, list) else 1):
        raise PolicyError(
            f"{source}: eos_token_id in generation_config.json (or config.json) is {named!r}; it must be the "
            "number of a token, or a list of these"
        )


def _check(policy: Policy, source: str | Path) -> None:
    tokenizer = policy.tokenizer
    word = str(tokenizer.convert_ids_to_tokens(tokenizer.vocab_size - 1))
    if not tokenizer.backend_tokenizer.encode(word, add_special_tokens=False).ids:
        raise PolicyError(f"{source}: its tokenizer encodes {word!r} to nothing; check tokenizer.json")
    if not policy.stop_token_ids:
        raise PolicyError(
            f"{source}: no token ends a response: generation_config.json names no eos_token_id, and "
            "tokenizer_config.json no eos_token"
        )
    if beyond := sorted(token for token in policy.stop_token_ids if not 0 <= token < policy.vocabulary):
        raise PolicyError(
            f"{source}: responses should end with token {beyond[0]}, but the model has ids 0 to "
            f"{policy.vocabulary - 1}; correct eos_token_id in generation_config.json, or eos_token in "
            "tokenizer_config.json"
        )
    words = tokenizer.backend_tokenizer.get_vocab(with_added_tokens=False).values()
    last = max(*words, *policy.encode([QUESTION])[0])
    if last >= policy.vocabulary:  # an added token that never occurs may be beyond, as in Gemma 3
        raise PolicyError(
            f"{source}: its tokenizer knows token {last} ({tokenizer.convert_ids_to_tokens(last)!r}), but "
            f"the model has ids 0 to {policy.vocabulary - 1}; use this model's tokenizer, or resize "
            "the model's embeddings"
        )


def refuse_infinite_weights(weights: Mapping[str, torch.Tensor], source: str | Path) -> None:
    """Refuse weights with a NaN or an infinity.

    Raises:
        PolicyError: the message names the tensors.
    """
    wrong = [
        name
        for name, tensor in weights.items()
        if tensor.is_floating_point() and tensor.numel() and not _finite(tensor)
    ]
    if wrong:
        shown = ", ".join(wrong[:3]) + (f" and {len(wrong) - 3} others" if len(wrong) > 3 else "")
        raise PolicyError(
            f"{source}: {shown} hold{'s' if len(wrong) == 1 else ''} values that are not finite (NaN or "
            "infinity), as after a training that has diverged; use an earlier checkpoint, or train with a "
            "lower training.learning_rate"
        )


def _finite(tensor: torch.Tensor) -> bool:
    low, high = torch.aminmax(tensor)  # one pass without a copy; both are NaN if any value is
    return bool(torch.isfinite(low) and torch.isfinite(high))


def _check_weights(report: Mapping[str, Any], model: str, source: str | Path) -> None:
    """Refuse a model some of whose weights would be random, by transformers' report on the loading."""
    missing, reshaped = report["missing_keys"], {name for name, *_ in report["mismatched_keys"]}
    for names, what in ((missing, "no weights"), (reshaped, "weights of another shape")):
        if names:
            shown = ", ".join(sorted(names)[:3]) + (" and others" if len(names) > 3 else "")
            raise PolicyError(
                f"{source}: holds {what} for {shown} of config.json's {model}; the folder belongs to another "
                "kind of model, or was not copied completely"
            )
