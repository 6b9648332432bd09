"""What all commands share: the options' state, opening the library, output as words or JSON, errors as exit codes."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import typer

from library.errors import ScionError

if TYPE_CHECKING:
    from core.engine import Engine
    from core.jobs import JobView
    from core.settings import Settings
    from library.store import Library


@dataclass
class Session:
    """The global options of one command."""

    overrides: dict[str, Any] = field(default_factory=dict)
    as_json: bool = False

    def settings(self) -> Settings:
        from core.settings import load_settings

        return load_settings(**self.overrides)

    @contextlib.contextmanager
    def library(self, *, create: bool = False) -> Iterator[Library]:
        from library.store import Library

        settings = self.settings()
        quota = round(settings.quota_gib * (1 << 30)) or None
        with Library.open(settings.library, actor=actor(), create=create, quota_bytes=quota) as library:
            yield library

    @contextlib.contextmanager
    def engine(self, *, create: bool = False) -> Iterator[Engine]:
        from core.engine import Engine

        with self.library(create=create) as library:
            engine = Engine(self.settings(), library)
            try:
                yield engine
            finally:
                engine.close()

    def show(self, value: Any, words: Callable[[], str] | str) -> None:
        """Print `value` as JSON with --json, else the words."""
        if self.as_json:
            typer.echo(json.dumps(plain(value), ensure_ascii=False, indent=2))
        else:
            typer.echo(words if isinstance(words, str) else words())

    def follow(self, engine: Engine, job_id: str) -> JobView:
        """Wait for a job, showing its progress on a terminal; Ctrl-C asks it to stop."""
        painter = _Painter(quiet=self.as_json or not sys.stderr.isatty())
        try:
            view = engine.worker.wait(job_id, watch=painter.paint)
        except KeyboardInterrupt:
            engine.cancel(job_id, by=actor())
            view = engine.worker.wait(job_id, timeout=30)
        painter.end()
        if view.state == "failed":
            name, _, text = view.error.partition(": ")
            raise JobFailed(name, text or view.error)
        return view


class JobFailed(ScionError):
    """A job's error, with the exit code of the error's own kind."""

    def __init__(self, name: str, text: str) -> None:
        import library.errors as errors

        kind = getattr(errors, name, None)
        if isinstance(kind, type) and issubclass(kind, ScionError):
            self.exit_code = kind.exit_code
            super().__init__(text)
        else:
            super().__init__(f"{name}: {text}")


class _Painter:
    def __init__(self, *, quiet: bool) -> None:
        self.quiet, self.last = quiet, ""

    def paint(self, view: JobView) -> None:
        p = view.progress
        line = p.note if p.phase == "loading model" else p.phase
        if p.phase == "queued":
            line = f"waiting, {p.place} before"
        elif p.budget and p.tokens:
            line += f"  {p.tokens}/{p.budget}"
            if p.tokens_per_second:
                line += f"  {p.tokens_per_second:.1f} tokens/s  attempt {p.attempt}/{p.attempts}"
        if not self.quiet and line != self.last:
            sys.stderr.write("\r\x1b[K" + line[:110])
            sys.stderr.flush()
            self.last = line

    def end(self) -> None:
        if not self.quiet and self.last:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def session(context: typer.Context) -> Session:
    found = context.find_object(Session)
    assert found is not None  # the root callback made it
    return found


def actor() -> str:
    """The name under which the command line acts: the operating system's user."""
    return os.environ.get("USER") or os.environ.get("LOGNAME") or "local"


def plain(value: Any) -> Any:
    """Rows, dataclasses and enums as JSON values."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if hasattr(value, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name in value.__dataclass_fields__}
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def table(rows: Sequence[Sequence[Any]], heads: Sequence[str]) -> str:
    """Columns aligned by spaces, for a terminal."""
    texts = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(head), *(len(row[i]) for row in texts)) if texts else len(head) for i, head in enumerate(heads)]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in texts]
    return "\n".join(["  ".join(h.ljust(w) for h, w in zip(heads, widths, strict=True)).rstrip(), *lines])


def short(text: str | None, width: int) -> str:
    flat = " ".join((text or "").split())
    return flat if len(flat) <= width else flat[: width - 1] + "…"


def size(count: float) -> str:
    """Bytes in words."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""


def finish(code: int) -> None:
    """End the command with this exit code, if it is not 0."""
    if code:
        raise typer.Exit(code)
