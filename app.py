"""Scion's one entry: settings, wiring, command line. The only place that composes; `python app.py --help`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from library.errors import ScionError
from ui.terminal import bench, context, evaluate, reviews, shelf, users, work
from ui.terminal.common import Session, session

VERSION = "0.1.0"

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Scion: a curated library of verified KV-cache grafts.",
)
app.add_typer(reviews.app, name="review")
app.add_typer(shelf.app, name="library")
app.add_typer(evaluate.app, name="evaluate")
app.add_typer(context.app, name="context")
app.add_typer(users.app, name="users")
app.command()(work.solve)
app.command()(work.ask)
app.command()(work.gate)
app.command()(bench.bench)


@app.callback()
def root(
    context: typer.Context,
    library: Annotated[Path | None, typer.Option(help="the library's folder (SCION_LIBRARY)")] = None,
    model: Annotated[str | None, typer.Option(help="embedded name, hub id, folder or .gguf (SCION_MODEL)")] = None,
    revision: Annotated[str | None, typer.Option(help="commit, tag or branch of a hub model")] = None,
    device: Annotated[str | None, typer.Option(help="auto, cpu, cuda, cuda:N or mps")] = None,
    dtype: Annotated[str | None, typer.Option(help="auto, float32, bfloat16 or float16")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="machine-readable output")] = False,
) -> None:
    overrides = {"library": library, "model": model, "revision": revision, "device": device, "dtype": dtype}
    context.obj = Session(overrides, as_json)


@app.command()
def serve(
    context: typer.Context,
    host: Annotated[str | None, typer.Option(help="address to listen on")] = None,
    port: Annotated[int | None, typer.Option(help="port to listen on")] = None,
) -> None:
    """Serve the page and print its address."""
    import uvicorn

    state = session(context)
    state.overrides.update(host=host, port=port)
    settings = state.settings()
    _check_port(settings.host, settings.port)
    with state.engine(create=True) as engine:
        from ui.server import build_app

        interrupted = engine.library.interrupt_jobs()
        engine.publish_due()
        typer.echo(f"library {settings.library}, model {settings.model}")
        if interrupted:
            typer.echo(f"{interrupted} jobs of an earlier run are marked interrupted")
        web = build_app(engine, settings)
        typer.echo(f"Scion is at http://{settings.host}:{settings.port}{settings.root_path}")
        sys.stdout.flush()
        uvicorn.run(
            web,
            host=settings.host,
            port=settings.port,
            root_path=settings.root_path,
            log_level="warning",
            timeout_graceful_shutdown=3,
        )


@app.command()
def doctor(context: typer.Context) -> None:
    """Versions, device, model, digests, library, energy meter. Exit code 1 if something is wrong."""
    state = session(context)
    settings = state.settings()
    found, problems = _examine(settings)
    if state.as_json:
        typer.echo(json.dumps({**found, "problems": problems}, indent=2, ensure_ascii=False))
    else:
        for name, value in found.items():
            typer.echo(f"{name:<12} {value if not isinstance(value, dict) else json.dumps(value)}")
        for problem in problems:
            typer.echo(f"PROBLEM      {problem}")
        if not problems:
            typer.echo("all is well")
    if problems:
        raise typer.Exit(1)


def _examine(settings: Any) -> tuple[dict[str, Any], list[str]]:
    import platform

    from core import energy
    from core.calibrations import read_calibration
    from core.gate import CANONICAL_VERSION
    from core.model import load
    from core.settings import unknown_variables
    from library.rekeying import stale
    from library.store import Library

    problems = [f"{name} is set but names no setting" for name in unknown_variables()]
    found: dict[str, Any] = {"scion": VERSION, "python": platform.python_version(), "platform": platform.platform()}
    try:
        calibration = read_calibration(settings)
        found["calibration"] = calibration.explain() if calibration else "none; see evaluate calibrate"
        if calibration and not calibration.current:
            problems.append(f"calibration: {calibration.explain()}")
    except ScionError as error:
        problems.append(f"calibration: {error}")
    try:
        model = load(settings)
        found |= {"model": model.name, "profile": model.profile.name, "parameters": model.parameters}
        found |= {"window": model.window, "device": str(model.device), "dtype": str(model.dtype)}
        found |= {"identity": model.identity.digest, "weights": model.identity.fields["weights"]}
        found |= {"environment": model.environment.digest, "runs on": dict(model.environment.fields)}
        found["energy"] = energy.source(model.device.type)
    except ScionError as error:
        problems.append(f"model: {error}")
    found["library"] = str(settings.library)
    try:
        with Library.open(settings.library, create=False) as library:
            found["artifacts"] = library.index.count()
            found["published"] = library.index.count(states=["published"])
            if old := stale(library, CANONICAL_VERSION):
                problems.append(f"{old} records have keys of an older version; run library rekey")
            if (finding := library.verify_log()) is not None:
                problems.append(f"audit log: entry {finding.seq}: {finding.reason}")
    except ScionError as error:
        found["artifacts"] = f"none yet: {error}"
    return found, problems


def _check_port(host: str, port: int) -> None:
    import socket

    from library.errors import UsageError

    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port") from error


def main() -> None:
    """Run the command line; the project's errors become one line and an exit code."""
    try:
        app()
    except ScionError as error:
        typer.echo(f"scion: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:  # a folder that may not even be looked into, a pipe that was closed
        typer.echo(f"scion: {error.strerror or error}" + (f": {error.filename}" if error.filename else ""), err=True)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
