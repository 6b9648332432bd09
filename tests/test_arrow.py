"""Imports point down: app > ui > core > library; and what must not occur in any source."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.program import ROOT, python

PACKAGES = ("library", "core", "ui")
SOURCES = [*sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py")), ROOT / "app.py"]
LIBRARY = [f"library.{path.stem}" for path in (ROOT / "library").glob("*.py") if path.stem != "__init__"]
ABOVE = {
    "library": {"core", "ui", "app", "tests", "torch", "transformers", "gradio", "fastapi", "typer"},
    "core": {"ui", "app", "tests", "gradio", "fastapi", "typer"},
    "ui": {"app", "tests"},
    "app.py": {"tests"},
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Top-level packages of all imports, inside functions too; relative ones cannot leave their package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.partition(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module.partition(".")[0], node.lineno


def upward(package: str, text: str) -> list[str]:
    return [f"line {line} imports {name}" for name, line in imported(ast.parse(text)) if name in ABOVE[package]]


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_imports_point_down(path: Path) -> None:
    assert upward(path.relative_to(ROOT).parts[0], path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("package", "text"),
    [
        ("library", "import torch.nn"),
        ("library", "def f():\n    from core.model import load"),
        ("core", "from gradio import Blocks"),
        ("ui", "import app"),
    ],
)
def test_an_import_that_points_up_is_found(package: str, text: str) -> None:
    assert upward(package, text)


def unsafe(text: str) -> list[str]:
    """Ways to run what was read: unpickling, eval of text, code from a model's folder."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] + [getattr(node, "module", None) or ""]
            banned = {"pickle", "cPickle", "dill", "joblib", "cloudpickle", "shelve", "marshal"}
            found += [f"line {node.lineno}: {name}" for name in names if name.partition(".")[0] in banned]
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called in ("eval", "exec", "compile", "__import__", "torch.load", "np.load", "numpy.load"):
                found.append(f"line {node.lineno}: {called}")
            if called in ("os.system", "os.popen"):
                found.append(f"line {node.lineno}: {called}")
            for word in node.keywords:
                constant = word.value.value if isinstance(word.value, ast.Constant) else None
                if (word.arg == "trust_remote_code" and constant is not False) or (
                    word.arg in ("shell", "allow_pickle") and constant is not False
                ):
                    found.append(f"line {node.lineno}: {word.arg}")
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                named = isinstance(key, ast.Constant) and key.value == "trust_remote_code"
                if named and not (isinstance(value, ast.Constant) and value.value is False):
                    found.append(f"line {node.lineno}: trust_remote_code")
    return found


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_nothing_that_was_read_is_run(path: Path) -> None:
    assert not unsafe(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "torch.load(path)",
        "eval(text)",
        "load(path, trust_remote_code=True)",
        "options = {'trust_remote_code': wanted}",
        "subprocess.run(text, shell=True)",
    ],
)
def test_an_unsafe_source_is_found(text: str) -> None:
    assert unsafe(text)


@pytest.mark.parametrize("path", SOURCES, ids=name_of)
def test_a_module_says_what_it_is_for_and_is_finished(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if text.strip():
        assert ast.get_docstring(ast.parse(text)), "no docstring"
    assert not re.search(r"\b(TODO|FIXME|XXX)\b", text)


HEAVY = ("torch", "transformers", "gradio", "fastapi")


@pytest.mark.parametrize(
    ("modules", "banned"),
    [
        (
            LIBRARY,
            HEAVY,
        ),
        (["app", "core.engine", "core.settings", "core.sources", "core.jobs", "ui.terminal.work"], HEAVY),
        (["core.asking", "core.comparing", "core.model", "core.replay"], ("gradio", "fastapi")),
        (["library.search"], ("sqlmodel", "sqlalchemy", *HEAVY)),
    ],
    ids=["library", "command line", "core", "list"],
)
def test_nothing_imports_more_than_it_needs(modules: list[str], banned: tuple[str, ...]) -> None:
    """By importing, which finds what a third package brings along."""
    code = "import importlib, sys\nfor name in sys.argv[1].split(): importlib.import_module(name)\n"
    code += "print(*(name for name in sys.argv[2].split() if name in sys.modules))"
    ran = python(code, " ".join(modules), " ".join(banned))
    assert ran.code == 0, ran.err
    assert ran.out.split() == []
