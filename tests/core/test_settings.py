from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from core import settings
from core.settings import Settings, load_settings, unknown_variables
from library.errors import UsageError


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SCION_LIBRARY", "SCION_CACHE", "SCION_THREADS", "SCION_CHROMIUM"):
        monkeypatch.delenv(name, raising=False)


def test_defaults_lie_in_the_users_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    made = load_settings()
    assert made.library == Path("/data/scion/library")
    assert made.cache == Path("/cache/scion")
    assert (made.model, made.gate, made.host, made.port) == ("smollm2-135m", "strict", "127.0.0.1", 7860)


@pytest.mark.parametrize(
    ("platform", "data", "cache"),
    [
        ("linux", ".local/share/scion", ".cache/scion"),
        ("darwin", "Library/Application Support/scion", "Library/Caches/scion"),
    ],
)
def test_folders_follow_the_platform(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, platform: str, data: str, cache: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert settings.data_folder() == tmp_path / data
    assert settings.cache_folder() == tmp_path / cache


@pytest.mark.parametrize(
    ("variable", "text", "field", "value"),
    [
        ("SCION_PORT", "0", "port", 0),
        ("SCION_TEMPERATURE", "0", "temperature", 0.0),
        ("SCION_SECOND_APPROVER", "true", "second_approver", True),
        ("SCION_QUOTA_GIB", "1.5", "quota_gib", 1.5),
        ("SCION_DTYPE", "bfloat16", "dtype", "bfloat16"),
        ("SCION_PORT", "", "port", 7860),
        ("SCION_CALIBRATION", "", "calibration", None),
    ],
)
def test_variables_are_read(monkeypatch: pytest.MonkeyPatch, variable: str, text: str, field: str, value: object):
    monkeypatch.setenv(variable, text)
    assert getattr(load_settings(), field) == value


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("SCION_PORT", "seventy"),
        ("SCION_PORT", "65536"),
        ("SCION_ATTEMPTS", "0"),
        ("SCION_BATCH", "65"),
        ("SCION_TEMPERATURE", "-0.1"),
        ("SCION_TOP_P", "0"),
        ("SCION_DTYPE", "float8"),
        ("SCION_GATE", "off"),  # switching the gate off is a choice of one ask, never a setting
        ("SCION_SECOND_APPROVER", "perhaps"),
        ("SCION_LEASE_SECONDS", "5"),
        ("SCION_QUOTA_GIB", "nan"),
    ],
)
def test_a_malformed_variable_is_named(monkeypatch: pytest.MonkeyPatch, variable: str, text: str) -> None:
    monkeypatch.setenv(variable, text)
    with pytest.raises(UsageError, match=variable) as caught:
        load_settings()
    assert repr(text) in str(caught.value)
    assert caught.value.exit_code == 2


def test_all_malformed_variables_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCION_PORT", "x")
    monkeypatch.setenv("SCION_THREADS", "-1")
    with pytest.raises(UsageError, match=r"SCION_THREADS.*SCION_PORT|SCION_PORT.*SCION_THREADS"):
        load_settings()


def test_options_win_over_variables_and_are_named_as_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCION_PORT", "1000")
    assert load_settings(port=2000).port == 2000
    assert load_settings(port=None).port == 1000
    with pytest.raises(UsageError, match="--dtype"):
        load_settings(dtype="float8")


def test_a_home_mark_is_the_users_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SCION_LIBRARY", "~/shelf")
    monkeypatch.setenv("SCION_CACHE", "~/models")
    made = load_settings()
    assert (made.library, made.cache) == (tmp_path / "shelf", tmp_path / "models")


def test_an_empty_folder_is_not_the_current_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCION_LIBRARY", "")
    assert load_settings().library == settings.data_folder() / "library"


def test_misspelt_variables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCION_LIBARY", "/x")
    monkeypatch.setenv("SCION_PORT", "7000")
    monkeypatch.setenv("SCION_KILL9_ROUNDS", "5")
    assert unknown_variables() == ["SCION_LIBARY"]


def test_settings_are_frozen_and_closed() -> None:
    with pytest.raises(ValidationError):
        load_settings().port = 1  # type: ignore[misc]
    with pytest.raises(ValidationError, match="colour"):
        Settings(colour="blue")


def test_every_setting_is_described() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []
