"""Shown text contains no password and no key, and other words stay as they are."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from skillpress.core.redaction import without_secrets

SAFE = st.text("abcXYZ019_.~!$^*()+-%/@:#?&=", min_size=1, max_size=20)
"""Passwords as people type them into an address, unescaped."""


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("postgresql://me:hunter2@host/db", "postgresql://me:***@host/db"),
        ("'postgresql+asyncpg://me:p@ss/w:rd@h:5432/db' no", "'postgresql+asyncpg://me:***@h:5432/db' no"),
        ("postgresql+asyncpg:/me:hunter2@host", "postgresql+asyncpg:/me:***@host"),
        ("https://me:hunter2@mlflow.example/", "https://me:***@mlflow.example/"),
        ("https://hunter2@git.example/x.git", "https://***@git.example/x.git"),
        ("redis://:hunter2@host", "redis://:***@host"),
        ("postgresql://host/db?user=me&password=hunter2&x=1", "postgresql://host/db?user=me&password=***&x=1"),
        ('invalid dsn: "host=h password=hunter2 user=me"', 'invalid dsn: "host=h password=*** user=me"'),
        ("{'api_key': 'hunter2hunter2'}", "{'api_key': '***'}"),
        ("Authorization: Bearer hunter2hunter2", "Authorization: Bearer ***"),
        ("s3://key?access_key=hunter2", "s3://key?access_key=***"),
        ("http://host/x?api-key=hunter2&n=1", "http://host/x?api-key=***&n=1"),
        ("https://host/?key=hunter2#part", "https://host/?key=***#part"),
        ("https://host/?X-Amz-Signature=hunter2", "https://host/?X-Amz-Signature=***"),
        ("x-api-key: hunter2", "x-api-key: ***"),
        ("password='hunter2 and more' host=h", "password='***' host=h"),
        ("Authorization: Token hunter2hunter2", "Authorization: Token ***"),
        ("no such key: sk-hunter2hunter2hunter2", "no such key: sk-***"),
        ("two: a://b:hunter2@c and d://e:hunter2@f", "two: a://b:***@c and d://e:***@f"),
    ],
)  # fmt: skip
def test_secrets_are_hidden_wherever_they_are_written(said: str, shown: str) -> None:
    assert without_secrets(said, {}) == shown


@pytest.mark.parametrize(
    "said",
    [
        "sqlite:////data/mlruns/mlflow.db", "http://127.0.0.1:5000/#/experiments/1", "http://host:8000/a@b",
        "git@host:team/x.git", "s3://bucket/path@2/file", "skillpress-nightly@5.2", "a: b@c", "tokens: 5",
        "training/tokens 12", "max_tokens=16", "password authentication failed for user me",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(said: str) -> None:
    assert without_secrets(said, {}) == said


@given(SAFE)
def test_no_password_of_an_address_survives(password: str) -> None:
    secret = f"pw{password}pw"
    assert secret not in without_secrets(f"cannot open postgresql://user:{secret}@host/name: refused", {})


@given(st.text(st.characters(codec="ascii", exclude_categories=["C", "Z"]), min_size=6, max_size=30))
def test_the_environments_secrets_are_hidden_also_by_themselves(value: str) -> None:
    for name in ("OPENAI_API_KEY", "MLFLOW_TRACKING_PASSWORD", "PREFECT_API_AUTH_STRING", "HF_TOKEN"):
        assert value not in without_secrets(f"the server said {value} twice: {value}", {name: value})


def test_a_password_of_an_address_in_the_environment_is_hidden_also_in_its_decoded_form() -> None:
    environment = {"MLFLOW_TRACKING_URI": "postgresql://me:open%2Fsesame@host/db"}
    said = without_secrets("refused: open/sesame, open%2Fsesame", environment)
    assert said == "refused: ***, ***"


@pytest.mark.parametrize("letters", ["a", "0f", "a:b:", "https://b", "@a:b", "api_key ", "?key_", "token "])
def test_a_long_text_is_looked_through_once(letters: str) -> None:
    text = letters * (500_000 // len(letters))  # would take hours if time grew with the square
    assert without_secrets(text, {}) == text


def test_an_error_that_ends_a_process_is_shown_without_them() -> None:
    program = (
        "from skillpress.core.redaction import hide_secrets_of_tracebacks as hide; hide()\n"
        "raise RuntimeError('cannot open postgresql://me:' + 'hunter2' + '@host/db')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert ended.returncode == 1 and "RuntimeError: cannot open postgresql://me:***@host/db" in ended.stderr
    assert "hunter2@" not in ended.stderr


def test_an_error_that_ends_a_thread_is_shown_without_them_too() -> None:
    program = (
        "from threading import Thread\n"
        "from skillpress.core.redaction import hide_secrets_of_tracebacks as hide; hide()\n"
        "def fail(): raise RuntimeError('cannot open postgresql://me:' + 'hunter2' + '@host/db')\n"
        "thread = Thread(target=fail); thread.start(); thread.join()"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "RuntimeError: cannot open postgresql://me:***@host/db" in ended.stderr
    assert "hunter2@" not in ended.stderr
