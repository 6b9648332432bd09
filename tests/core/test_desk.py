"""The use cases of books over a real engine and a tiny model: files that were sent, acceptance, questions, room."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.engine import Engine
from core.model import FrozenModel
from library import uploads
from library.errors import Conflict, NotFound, StaleVersion, UsageError
from tests.core.engines import engine_at, result_of
from tests.core.readers import prose, tiny_reader

SEGMENT = 256


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    return tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture
def engine(model: FrozenModel, tmp_path: Path) -> Iterator[Engine]:
    with engine_at(tmp_path / "library", model) as opened:
        yield opened


def text(seed: int, paragraphs: int = 6) -> bytes:
    return "\n\n".join(prose(seed, paragraphs)).encode()


def made(engine: Engine, **files: bytes) -> dict[str, object]:
    sent = [(f"{name}.md", data) for name, data in files.items()]
    return dict(result_of(engine, engine.books.build_from(sent, "novel", by="ada", segment_tokens=SEGMENT)))


def test_files_that_are_sent_make_a_book_and_later_ones_join_it(engine: Engine) -> None:
    first = made(engine, a=text(1))
    assert (first["state"], first["kept"]) == ("pending", 0)
    second = made(engine, b=text(2))
    assert second["kept"] == first["segments"]
    assert engine.books.view("novel").files == ("a.md", "b.md")
    third = made(engine, a=text(3))  # the same name: in place of the first
    assert third["kept"] == second["built"]
    assert result_of(engine, engine.books.resume("novel", by="ada"))["built"] == 0


def test_a_person_accepts_what_they_saw(engine: Engine) -> None:
    made(engine, a=text(1))
    with pytest.raises(Conflict, match="once a person has accepted"):
        engine.books.ask("novel", "What of note 1-2?", by="ada")
    seen = engine.books.view("novel").digest
    made(engine, a=text(1), b=text(2))
    with pytest.raises(StaleVersion):
        engine.books.accept("novel", by="ada", digest=seen)
    assert engine.books.accept("novel", by="ada", digest=engine.books.view("novel").digest).state == "accepted"
    said = result_of(engine, engine.books.ask("novel", "What of note 1-2?", by="ben"))
    assert said["addressable_tokens"] == engine.books.view("novel").addressable_tokens
    assert 0 < said["attended_tokens"] < said["addressable_tokens"]


def test_packing_and_dropping_are_jobs_and_cost_no_answer(engine: Engine) -> None:
    made(engine, a=text(1))
    view = engine.books.view("novel")
    engine.books.accept("novel", by="ada", digest=view.digest)
    before = result_of(engine, engine.books.ask("novel", "What of note 1-2?", by="ben"))
    assert result_of(engine, engine.books.pack("novel", by="ada"))["saved_bytes"] > 0
    assert engine.books.view("novel").stored_bytes < view.stored_bytes
    assert result_of(engine, engine.books.drop("novel", by="ada"))["dropped"] == view.segments
    assert engine.books.view("novel").stored_bytes == 0
    after = result_of(engine, engine.books.ask("novel", "What of note 1-2?", by="ben"))
    assert [said["text"] for said in after["answers"]] == [said["text"] for said in before["answers"]]


def test_a_revoked_book_leaves_no_file_behind(engine: Engine) -> None:
    made(engine, a=text(1))
    assert uploads.kept(engine.library, "novel") is not None
    with pytest.raises(UsageError, match="reason"):
        engine.books.revoke("novel", reason=" ", by="ada")
    assert engine.books.revoke("novel", reason="not ours", by="ada")
    assert uploads.kept(engine.library, "novel") is None
    assert engine.books.view("novel").state == "revoked"


@pytest.mark.parametrize(
    ("files", "name", "says"),
    [
        ([], "novel", "choose a text"),
        ([("a.png", b"x")], "novel", "made of"),
        ([("a.md", b"x")] * 51, "novel", "at most 50"),
        ([("a.md", b"x")], "  ", "needs a name"),
        ([("a.md", b"x")], "x" * 101, "at most 100"),
        ([("a.md", b"x")], "a\u202eb", "printed"),
    ],
)
def test_what_cannot_become_a_book_is_refused_at_once(
    engine: Engine, files: list[tuple[str, bytes]], name: str, says: str
) -> None:
    with pytest.raises(UsageError, match=says):
        engine.books.build_from(files, name, by="ada")
    assert engine.jobs() == []
    assert uploads.kept(engine.library, name) is None


def test_a_source_that_cannot_be_a_book_is_refused_before_a_job_loads_the_model(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    for source, error in (("a.png", UsageError), ("empty", NotFound), ("absent.txt", NotFound)):
        with pytest.raises(error):
            engine.books.build(str(tmp_path / source), "novel", by="ada")
    assert engine.jobs() == []


def test_what_was_never_sent_cannot_be_resumed(engine: Engine) -> None:
    with pytest.raises(NotFound, match="context ingest"):
        engine.books.resume("novel", by="ada")


def test_an_empty_question_is_refused(engine: Engine) -> None:
    with pytest.raises(UsageError, match="the question is empty"):
        engine.books.ask("novel", " ", by="ada")
