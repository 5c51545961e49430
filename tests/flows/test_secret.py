"""This repository's Prefect servers require a secret, and flows that use another server are unaffected."""

import os
from pathlib import Path

import pytest

from flows import secret

SERVER, CLIENT = secret.OF_SERVER, secret.OF_CLIENT


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(secret, "made_here", False)
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path))
    for name in (SERVER, *secret.ELSEWHERE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "environ", os.environ.copy())


def test_server_and_client_have_one_that_is_made_anew_each_time() -> None:
    made = set()
    for _ in range(2):
        os.environ.pop(SERVER, None)
        os.environ.pop(CLIENT, None)
        secret.apply()
        assert secret.made_here and os.environ[SERVER] == os.environ[CLIENT]
        made.add(os.environ[SERVER])
    assert len(made) == 2 and all(len(each) >= 32 for each in made)


def test_one_that_was_given_is_taken() -> None:
    os.environ[SERVER] = "mine"
    secret.apply()
    assert not secret.made_here and os.environ[SERVER] == os.environ[CLIENT] == "mine"


@pytest.mark.parametrize("name", ["PREFECT_API_URL", "PREFECT_API_KEY", "PREFECT_PROFILE"])
def test_clients_of_a_server_elsewhere_are_told_nothing(name: str) -> None:
    os.environ[name] = "there"
    secret.apply()
    assert CLIENT not in os.environ


def test_the_server_that_a_run_has_started_is_not_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secret, "_own_url", "")
    secret.apply()
    secret.use_own_server("http://127.0.0.1:4321/api")
    assert os.environ["PREFECT_API_URL"] == "http://127.0.0.1:4321/api" and not secret.is_elsewhere()
    os.environ["PREFECT_API_URL"] = "http://127.0.0.1:4200/api"
    assert secret.is_elsewhere()


def test_nor_are_those_whose_profile_names_a_server(tmp_path: Path) -> None:
    profiles = 'active = "work"\n[profiles.work]\nPREFECT_API_URL = "https://prefect.example/api"\n'
    (tmp_path / "profiles.toml").write_text(profiles)
    secret.apply()
    assert CLIENT not in os.environ
