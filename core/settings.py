"""One frozen Settings: every knob with its default, read from the environment (`SCION_*`) and the command line.

A malformed variable stops the program with its name; an unknown one is reported by `doctor`. Knows no torch.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from library.errors import UsageError

DEFAULT_MODEL = "smollm2-135m"


def data_folder() -> Path:
    """The user's data folder by the platform's custom (XDG on Linux, Application Support on macOS)."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "scion"
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "scion"


def cache_folder() -> Path:
    """Where converted models lie; safe to delete."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "scion"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "scion"


class Settings(BaseSettings):
    """Read with `load_settings`, which turns a bad value into a `UsageError` that names the variable."""

    # An empty variable counts as unset: as a folder it would mean the current one.
    model_config = SettingsConfigDict(
        env_prefix="SCION_", frozen=True, extra="forbid", validate_default=True, env_ignore_empty=True
    )

    library: Path = Field(default_factory=lambda: data_folder() / "library", description="the library's folder")
    cache: Path = Field(default_factory=cache_folder, description="folder for converted models")
    model: str = Field(DEFAULT_MODEL, description="embedded name, hub id, local folder or .gguf file")
    revision: str | None = Field(None, description="commit, tag or branch of a hub model")
    device: str = Field("auto", description="auto, cpu, cuda, cuda:N or mps")
    dtype: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="auto: float32 on CPU, bfloat16 on CUDA where native, else float16"
    )
    attention: Literal["auto", "sdpa", "eager"] = Field("auto", description="attention implementation")
    packed: bool = Field(True, description="on CPU: weights laid out for oneDNN's products, faster decoding")
    threads: Annotated[int, Field(ge=0, le=1024)] = Field(0, description="CPU threads; 0: the physical default")
    gate: Literal["strict", "edits", "calibrated"] = Field("strict", description="the gate's policy")
    calibration: Path | None = Field(None, description="file with the calibrated policy's threshold")
    attempts: Annotated[int, Field(ge=1, le=256)] = Field(4, description="attempts a solve")
    batch: Annotated[int, Field(ge=1, le=64)] = Field(8, description="attempts decoded together")
    max_tokens: Annotated[int, Field(ge=1)] = Field(512, description="token budget of one attempt")
    temperature: Annotated[float, Field(ge=0, le=5)] = Field(0.7, description="0: greedy, one attempt")
    top_p: Annotated[float, Field(gt=0, le=1)] = Field(0.95, description="nucleus sampling mass")
    max_problem_chars: Annotated[int, Field(ge=1)] = Field(20_000, description="longest problem text accepted")
    quota_gib: Annotated[float, Field(ge=0)] = Field(0.0, description="cap on stored states in GiB; 0: none")
    host: str = Field("127.0.0.1", description="address the page is served on")
    port: Annotated[int, Field(ge=0, le=65535)] = Field(7860, description="port the page is served on")
    root_path: str = Field("", description="path prefix behind a proxy")
    allowed_hosts: str = Field("", description="comma-separated host names accepted besides loopback")
    undo_seconds: Annotated[int, Field(ge=0, le=3600)] = Field(60, description="an approval can be undone this long")
    lease_seconds: Annotated[int, Field(ge=10, le=86_400)] = Field(300, description="a review item's reservation")
    second_approver: bool = Field(False, description="publication needs two different reviewers")
    blind: bool = Field(True, description="hide earlier decisions until a reviewer has decided")

    @field_validator("library", "cache", "calibration")
    @classmethod
    def _home(cls, path: Path | None) -> Path | None:
        """`~` is the user's home also where no shell replaces it, as in a file of variables."""
        return None if path is None else path.expanduser()


def load_settings(**overrides: Any) -> Settings:
    """Settings from the environment, with the command line's options on top; `UsageError` names what is wrong."""
    given = {name: value for name, value in overrides.items() if value is not None}
    try:
        return Settings(**given)
    except ValidationError as error:
        lines = []
        for problem in error.errors():
            name = ".".join(str(part) for part in problem["loc"])
            where = f"--{name.replace('_', '-')}" if name in given else f"SCION_{name.upper()}"
            lines.append(f"{where}: {problem['msg']} (got {problem.get('input')!r})")
        raise UsageError("; ".join(lines)) from error


def unknown_variables() -> list[str]:
    """`SCION_*` variables that name no setting: most likely misspelt."""
    known = {f"SCION_{name.upper()}" for name in Settings.model_fields} | _OTHER_VARIABLES
    return sorted(name for name in os.environ if name.startswith("SCION_") and name not in known)


# Read by the tests and the Makefile, not by the program.
_OTHER_VARIABLES = {"SCION_KILL9_ROUNDS", "SCION_PROPERTY_CASES"}
