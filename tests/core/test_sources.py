from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from core import sources
from core.sources import EMBEDDED, Embedded, converted, locate
from library.errors import ModelError, NotWritable, StorageFull, UnknownModel


def fill(parts: object, work: Path) -> None:
    """Stands in for the conversion, which needs a real GGUF file and half a minute."""
    (work / "config.json").write_text("{}")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "_convert", fill)


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"GGUF" + b"\0" * 100)
    return path


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nope", "smollm2-135m, gemma3-270m"),
        ("./missing", "unknown model"),
        ("~/missing-model", "unknown model"),
        ("/missing/model", "unknown model"),
        ("a/b/c", "unknown model"),
        ("../x", "unknown model"),
        ("missing.gguf", "no GGUF file"),
    ],
)
def test_unknown_names_are_refused_with_the_way_out(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(UnknownModel, match=message):
        locate(name, tmp_path)


def test_a_hub_id_is_only_named_not_fetched(tmp_path: Path) -> None:
    found = locate("owner/model", tmp_path / "cache")
    assert (found.name, found.path, found.hub) == ("owner/model", "owner/model", True)
    assert not (tmp_path / "cache").exists()


def test_a_folder_needs_a_config(tmp_path: Path) -> None:
    with pytest.raises(UnknownModel, match=r"config\.json"):
        locate(str(tmp_path), tmp_path)
    (tmp_path / "config.json").write_text("{}")
    found = locate(str(tmp_path), tmp_path)
    assert (found.name, found.path, found.hub) == (tmp_path.name, str(tmp_path), False)


def test_a_missing_package_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    absent = Embedded("absent", "no_such_module", ("no_such_module/model.gguf",), "pip install absent")
    monkeypatch.setitem(EMBEDDED, "absent", absent)
    with pytest.raises(UnknownModel, match="pip install absent"):
        locate("absent", tmp_path)


def test_a_file_is_converted_once(tmp_path: Path, gguf: Path, quick: None) -> None:
    told: list[str] = []
    first = locate(str(gguf), tmp_path / "cache", say=told.append)
    second = locate(str(gguf), tmp_path / "cache", say=told.append)
    assert first == second
    assert first.name == "model"
    assert len(told) == 1
    assert json.loads((Path(first.path) / "complete.json").read_text())["parts"] == ["model.gguf"]


def test_a_changed_file_is_converted_anew(tmp_path: Path, gguf: Path, quick: None) -> None:
    first = locate(str(gguf), tmp_path / "cache")
    gguf.write_bytes(b"GGUF" + b"\1" * 101)
    assert locate(str(gguf), tmp_path / "cache").path != first.path


def test_half_of_a_converted_folder_is_made_anew(tmp_path: Path, gguf: Path, quick: None) -> None:
    target = Path(locate(str(gguf), tmp_path / "cache").path)
    (target / "complete.json").unlink()
    assert locate(str(gguf), tmp_path / "cache").path == str(target)
    assert (target / "complete.json").is_file()


def test_a_failed_conversion_leaves_nothing(tmp_path: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(parts: object, work: Path) -> None:
        (work / "half").write_text("x")
        raise ModelError("cannot read")

    monkeypatch.setattr(sources, "_convert", fail)
    with pytest.raises(ModelError, match="cannot read"):
        converted("model", [gguf], tmp_path / "cache", None)
    assert list((tmp_path / "cache" / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.ENOSPC, StorageFull), (errno.EACCES, NotWritable), (errno.EROFS, NotWritable)]
)
def test_a_cache_that_cannot_be_written_is_named(
    tmp_path: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch, number: int, kind: type[Exception]
) -> None:
    def fail(parts: object, work: Path) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(sources, "_convert", fail)
    with pytest.raises(kind, match=f"SCION_CACHE.*{os.strerror(number)}"):
        converted("model", [gguf], tmp_path / "cache", None)
    assert list((tmp_path / "cache" / "models").iterdir()) == []


def test_two_conversions_at_once_end_with_one_folder(
    tmp_path: Path, gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"

    def race(parts: object, work: Path) -> None:
        monkeypatch.setattr(sources, "_convert", fill)
        converted("model", [gguf], cache, None)  # another process is done first
        fill(parts, work)

    monkeypatch.setattr(sources, "_convert", race)
    target = converted("model", [gguf], cache, None)
    assert [path.name for path in (cache / "models").iterdir()] == [target.name]
    assert (target / "complete.json").is_file()


def test_a_file_that_is_no_model_is_refused(tmp_path: Path, gguf: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot read the GGUF file model\.gguf"):
        locate(str(gguf), tmp_path / "cache")
    assert list((tmp_path / "cache" / "models").iterdir()) == []


def test_parts_are_joined_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "split_model"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('importing a model package runs its code')")
    for number in range(2):
        (package / f"part{number}").write_bytes(bytes([number]))
    monkeypatch.syspath_prepend(str(tmp_path))
    split = Embedded("split", "split_model", ("split_model/part0", "split_model/part1"), "")
    monkeypatch.setitem(EMBEDDED, "split", split)
    seen: list[list[str]] = []
    monkeypatch.setattr(sources, "_convert", lambda parts, work: seen.append([p.name for p in parts]))
    locate("split", tmp_path / "cache")
    assert seen == [["part0", "part1"]]
