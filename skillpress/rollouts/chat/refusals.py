"""What a server's error means for the question.

Servers report the same errors in many forms: as ``error`` with ``message``, ``code``, ``type`` and ``param``;
as a plain text under ``error``, ``message`` or ``detail``; or as a list of pydantic's findings. Some quote
the error of another server inside. So this module does not recognise the form but the kind of the error: by
its code or type if these are known, otherwise by its words:

    the prompt is too long         a step without an action
    a filter declined the prompt   a step that was refused
    a parameter is not supported   the request is repeated without it
    too busy, failing, loading     the request is repeated after the pause that the server names
    anything else                  the end: a wrong key, an unknown model, no credit
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from skillpress.rollouts.chat.connection import ServerReply
from skillpress.rollouts.chat.form import LIMIT, NEWER_LIMIT, STREAM
from skillpress.rollouts.chat.outcomes import Failed, ModelAnswer, Outcome, Unsupported, in_one_line, readable

TOO_LONG = frozenset(
    {
        "context_length_exceeded", "context_window_exceeded", "contextwindowexceedederror",
        "exceed_context_size_error", "string_above_max_length", "prompt_too_long", "request_too_large",
        "model_max_prompt_tokens_exceeded", "tokens_limit_reached",
    }
)  # fmt: skip
FILTERED = frozenset(
    {
        "content_filter", "content_policy_violation", "contentpolicyviolationerror",
        "responsibleaipolicyviolation", "data_inspection_failed", "moderation_blocked",
    }
)  # fmt: skip
WITHOUT_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
"""Codes and types, in lower case. ``WITHOUT_CREDIT`` comes with HTTP 429 and does not pass by itself."""

_CONTEXT = r"(?:context[ _-]?(?:length|size|window|limit|overflow)|n_ctx)"
_SAYS_TOO_LONG = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        _CONTEXT + r".{0,300}(?:exceed|maximum|too (?:long|large)|not enough|overflow|reduce|only \d)",
        r"(?:exceed|maximum|too (?:long|large)|longer than|larger than|overflow).{0,300}" + _CONTEXT,
        r"maximum (?:prompt|input|sequence|model) length",
        r"\b(?:prompt|inputs?|messages?|conversation|history)\b(?:(?!took|taking).){0,60}"
        r"(?:too (?:long|large|big)|longer than)",
        r"\b(?:prompt|input)\b.{0,40}\btokens?\b.{0,20}(?:max|<|less than|more than)",
        r"\btotal\b.{0,20}\btokens?\b.{0,60}(?:exceed|more than|greater than)",
        r"\b\d+ tokens?\b.{0,40}only \d+",
        r"(?:shorten|trim|truncate) (?:the|your) (?:prompt|input|messages?|conversation|history)",
        r"\b(?:prompt|input)\b.{0,40}\btokens?\b.{0,60}(?:exceed|too large)",
        r"\b(?:prompt|input)\b.{0,40}exceed.{0,40}(?:max|limit)",
        r"(?:prompt|input) length.{0,80}(?:exceed|should be)",
        r"exceed.{0,60}\btoken limit|\btoken limit.{0,20}exceed",
        r"input is too large|default_max_tokens",
        r"too many (?:input |prompt )?tokens(?! per|, please wait)",
        r"reduce the length of the (?:messages|prompt|input)",
        r"inputs`?.{0,40}must (?:have less than|be <=)",
    )
)
_SAYS_RESPONSE_TOO_LONG = re.compile(r"completion tokens|output tokens|greater than max_model_len")
"""Errors about a prompt may contain these words too; they then also mention input tokens."""
_STATED_CONTEXT = re.compile(r"context length (?:is|of) (?:only )?(\d+)")
_SAYS_FILTERED = re.compile(
    r"content (?:management |safety |usage |filtering )?policy|flagged (?:as|by|for|input)|safety system"
    r"|usage guidelines|inappropriate content"
)
_SAYS_OF_OTHERS = re.compile(
    r"rate[ _-]?limit|per[ -](?:second|minute|hour|day|month)|daily|monthly|\bquota|\b[rt]p[md]\b|\bqueue"
    r"|temporar|unavailable|tim(?:ed|e)[ -]?out|overload|\b(?:account|organi[sz]ation|api key)\b"
)
"""Errors about a busy server or about the user, whatever they say about prompts and policies."""
_SAYS_UNSUPPORTED = re.compile(
    r"unsupported|unknown|unrecogni[sz]ed|unexpected|forbidden|disallowed|prohibited|deprecated"
    r"|extra (?:inputs?|fields?)|extraneous"
    r"|(?:not|n.t|no longer) (?:yet |currently )?"
    r"(?:supported?|accepted?|allowed|permitted|recogni[sz]ed|implemented|available|defined)"
    r"|(?:does|do)(?: not|n.t) (?:support|accept|allow)|(?:cannot|can.t|must not) be (?:set|specified|used)"
    r"|must be (?:unset|omitted|removed|left out)|use \S+ instead"
    r"|(?:not (?:a )?valid|invalid) (?:parameter|argument|field|key|option)"
    r"|not both|cannot both|only one of|use only one|mutually exclusive|only the default"
    r"|can not be|incompatible|not compatible|invalid for this|no such|read-?only"
    r"|\b(?:remove|drop|omit|unset)\b|rather than|in (?:place|favou?r) of|is (?:missing|required)"
    r"|only \S+ is (?:allowed|supported)|only be (?:set to )?(?:1\b|the default)"
)
THROTTLED = frozenset(
    {
        "throttling", "throttlingexception", "throttled", "too_many_requests", "toomanyrequests",
        "rate_limit_error", "rate_limit_exceeded", "rate_limit_reached", "limit_requests", "limit_burst_rate",
        "resource_exhausted", "engine_overloaded_error", "overloaded_error", "slowdown", "servicebusy",
    }
)  # fmt: skip
"""Codes and types, in lower case, of a server that is asked too often."""
_SAYS_THROTTLED = re.compile(
    r"throttl|too many (?:\w+ )?requests|rate[ _-]?limit(?:s|ed|ing)?\b"
    r"|(?:requests?|tokens) per (?:second|minute)|requests? limit (?:is )?(?:exceeded|reached)"
    r"|concurrency (?:limit|quota)|concurrent requests|exceeded your current requests"
    r"|(?:try(?:ing)? again|retry) (?:later|shortly|soon|in (?:\d|an? |some )|after)|please wait|slow down"
    r"|\bbusy\b|overload(?:ed)?\b|(?:high|heavy) load|queue is full|resource (?:has been |is )?exhausted"
    r"|(?:at|over|no|insufficient) capacity|capacity (?:is |was )?(?:exceeded|reached)"
    r"|\b(?:rpm|tpm|qps|rps)\b.{0,20}(?:limit|reached|exceeded)"
    r"|(?:limit|max|exceed\w*).{0,20}\b(?:rpm|tpm|qps|rps)\b"
    r"|(?:request|burst) (?:rate|frequency) (?:is |was |has )?(?:too high|increased|exceeded)"
)
MAY_BE_THROTTLED = frozenset({400, 403, 422})
"""Statuses with which some gateways report that, instead of 429."""
STREAM_ALONE = re.compile(
    r"\bonly (?:supports? |allows? |available (?:in|with) )?stream|non-?stream(?:ing)?\b|stream(?:ing)? mode"
    r"|stream\W{1,3}(?:parameter )?(?:must|should|needs? to|has to) be"
    r"|(?:must|please) (?:set|enable|use)? ?(?:the )?\W?stream|requires? \W?stream"
    r"|streaming is (?:required|mandatory)|stream\W{1,3}false"
)
LONGEST_READ = 20_000
"""Maximum number of characters of an error in which its kind is looked for."""
LONGEST_REASON = 300
"""Maximum number of characters of a server's text in our error messages."""
ECHOES = frozenset({"input", "messages", "prompt", "ctx", "url"})
"""Fields of an error that repeat the request; their text is not the server's."""
DEEPEST = 12
"""Maximum depth of nested values that is read."""
BUSY = frozenset({408, 409, 425, 429, 498, 499})
"""Statuses below 500 that pass: the last two are of servers without room and of gateways."""
OF_OTHERS = BUSY | {401, 402, 503, 504, 524, 529}
"""Statuses that say nothing about the prompt, whatever their text is."""
NEVER = frozenset({501, 505})
"""Statuses from 500 on that do not pass by themselves."""
NAMED = {
    "invalid_api_key": 401, "authentication_error": 401, "permission_error": 403, "not_found_error": 404,
    "model_not_found": 404, "rate_limit_error": 429, "rate_limit_exceeded": 429, "overloaded_error": 529,
}  # fmt: skip
"""Maps codes and types, in lower case, to the status that they usually come with."""
EPOCH, EPOCH_MS = 1e9, 1e12
"""A pause of at least one of these numbers is a time: seconds or milliseconds since 1970."""
UPSTREAM_FAILED = 502
"""The status of an error that came with HTTP 200 and names none: that of a failed gateway."""


def error_of(found: Any) -> Any:
    """The error in a JSON value; None if it contains none."""
    if isinstance(found, list):  # Gemini's interface wraps it in a list
        return next((error_of(each) for each in found if isinstance(each, Mapping)), None)
    if not isinstance(found, Mapping):
        return None
    stated = found.get("error") or found.get("errors") or (found if found.get("object") == "error" else None)
    empty = isinstance(stated, Mapping) and not any(stated.values())
    return None if empty else stated


def read_error(reply: ServerReply, found: Any, sent: Mapping[str, Any]) -> Outcome:
    """Return what an error means.

    Args:
        found: the JSON value of the reply, or the part of it that holds the error.
        sent: the request's parameters, apart from model and messages.
    """
    said = error_of(found)
    if not isinstance(said, (Mapping, list)):  # its text is beside "error", or there is no "error"
        said = found
    texts = [readable(text) for text in _texts(said)]
    words = "\n".join(texts).lower()[:LONGEST_READ]
    marks = {text.strip().lower() for text in texts}
    status = _status(reply.status, said, marks)
    reason = f"HTTP {reply.status}: {_short(texts, reply)}"
    if 300 <= status < 400:
        to = in_one_line(reply.headers.get("location", "nowhere"))[:LONGEST_REASON]
        return Failed(f"HTTP {status}, a redirect to {to}; name that address", again=False)
    if (
        status in MAY_BE_THROTTLED
        and not (marks & (TOO_LONG | WITHOUT_CREDIT))
        and (any(mark.partition(".")[0] in THROTTLED for mark in marks) or _SAYS_THROTTLED.search(words))
    ):
        return Failed(reason, pause=retry_after(reply.headers), everyone=True)
    if STREAM not in sent and status in (400, 422) and STREAM_ALONE.search(words):
        return Failed(f"{reason}; --stream asks for streams", again=False)
    if status not in (401, 402, 403, 404, 429):
        if _is_too_long(status, words, marks):
            return _too_long(words, sent, reason)
        if parameter := _refused_parameter(said, words, sent):
            return Unsupported(parameter, reason)
    if status not in (401, 402, 429) and (marks & FILTERED or _says(status, words, (_SAYS_FILTERED,))):
        return ModelAnswer("", ended="refused")
    remedy = _remedy(words, sent) * (status in (400, 422))
    asked_again = reply.headers.get("x-should-retry", "").lower() == "true"
    return Failed(
        reason + remedy,
        again=asked_again
        or ((status in BUSY or status >= 500) and status not in NEVER and not marks & WITHOUT_CREDIT),
        pause=retry_after(reply.headers),
        everyone=status in (429, 503),
        denied=status in (401, 403),
        conversation=status in (400, 422) and not remedy,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the server asks to wait, given as a number or as a time; None if it gives neither.

    A time is a date of HTTP or ISO 8601, or a number since 1970. It is counted from the ``Date`` of the
    answer, since the server's clock may differ from ours.
    """
    now = _time_of(headers.get("date", "")) or time.time()
    for name, share in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        with suppress(ValueError):
            asked = float(headers.get(name, "").strip().removesuffix("s")) * share
            if math.isfinite(asked):
                in_seconds = asked / 1000 if asked >= EPOCH_MS else asked
                return max(0.0, in_seconds - now if in_seconds >= EPOCH else in_seconds)
    until = _time_of(headers.get("retry-after", ""))
    return None if until is None else max(0.0, until - now)


def _time_of(text: str) -> float | None:
    """Seconds since 1970 of a date as HTTP or ISO 8601 writes it; None for another text."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        with suppress(ValueError, OverflowError, TypeError):
            found = read(text.strip())
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
    return None


def _texts(value: Any, depth: int = 0) -> Iterator[str]:
    """Every text of an error, except those that repeat the request."""
    if isinstance(value, str):
        yield value
    elif depth == DEEPEST:
        return
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            if name not in ECHOES:
                yield from _texts(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner, depth + 1)


def _status(status: int, said: Any, marks: Collection[str]) -> int:
    """The status of an error. If it came with HTTP 200, the status that it names."""
    if status != 200:
        return status
    named = str(said.get("code", said.get("status")) if isinstance(said, Mapping) else None)
    if re.fullmatch("[45][0-9][0-9]", named):
        return int(named)
    return next((status for mark, status in NAMED.items() if mark in marks), UPSTREAM_FAILED)


def _is_too_long(status: int, words: str, marks: Collection[str]) -> bool:
    if any(mark in TOO_LONG for mark in marks):
        return True
    if status == 413:  # unless the account does not allow requests of this size
        return not _SAYS_THROTTLED.search(words)
    if _SAYS_RESPONSE_TOO_LONG.search(words) and "input tokens" not in words:
        return False
    return _says(status, words, _SAYS_TOO_LONG)


def _says(status: int, words: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    """Whether the words are about this prompt and match one of the patterns."""
    if status in OF_OTHERS or _SAYS_OF_OTHERS.search(words):
        return False
    return any(pattern.search(words) for pattern in patterns)


def _too_long(words: str, sent: Mapping[str, Any], reason: str) -> ModelAnswer | Failed:
    """Too long, or failed where the response alone fills the context, so that no prompt fits."""
    stated = _STATED_CONTEXT.search(words)
    longest = max((sent[name] for name in sent if name.startswith("max_")), default=0)
    if stated and int(stated[1]) <= longest:
        return Failed(f"{reason}; max_new_tokens is {longest}, set it lower", again=False)
    return ModelAnswer("", ended="prompt_too_long")


def _refused_parameter(said: Any, words: str, sent: Mapping[str, Any]) -> str | None:
    """The parameter that the error calls unsupported; None if it says something else."""
    if not _SAYS_UNSUPPORTED.search(words):
        return None
    param = said.get("param") if isinstance(said, Mapping) else None
    if isinstance(param, str) and (name := param.rpartition(".")[2]) in sent:
        return name
    places = _places(words, sent)
    if {"temperature", "top_p"} <= places.keys() and re.search("both|only one", words):
        return "top_p"
    if not places and LIMIT in sent and NEWER_LIMIT in words:
        return LIMIT
    return min(places, key=places.__getitem__, default=None)


def _places(words: str, names: Collection[str]) -> dict[str, int]:
    """Each of the names that occur in the words, with its first position."""
    spelt = {name: name.replace("_", "[ _-]?") for name in names}  # some servers say "topK"
    spelt |= {STREAM: "stream(?:ing)?(?![ _-]options)"} if STREAM in spelt else {}
    found = {name: re.search(rf"\b{pattern}\b", words) for name, pattern in spelt.items()}
    return {name: match.start() for name, match in found.items() if match}


def _short(texts: Collection[str], reply: ServerReply) -> str:
    """The error's own words on one line that any terminal can show."""
    body = reply.body[: 4 * LONGEST_REASON].decode("utf-8", errors="replace")
    return in_one_line(" ".join(dict.fromkeys(texts)) or body)[:LONGEST_REASON] or "no reason given"


def _remedy(words: str, sent: Mapping[str, Any]) -> str:
    """What to do about a parameter whose value is called wrong, though not the parameter itself."""
    named = next(iter(_places(words, sent)), "")
    if named.startswith("max_"):
        return f"; max_new_tokens is {sent[named]}, set it lower"
    return f"; its value is {sent[named]}, and --omit {named} leaves it out" if named else ""
