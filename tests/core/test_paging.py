"""Books: splitting, ingest, curation, questions; and ten kills at random that leave the same book."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.books import prompt
from core.books.ask import Question, ask_book
from core.books.curate import accept, describe, drop, pack, revoke
from core.books.deposit import exactness, largest_segment, open_segment
from core.books.ingest import ingest
from core.books.quoting import SegmentAnswer, judged, locate, names_missing, reconcile
from core.books.record import rows
from core.books.split import SMALLEST, split
from core.books.texts import names, read
from core.graft import Exactness
from core.model import FrozenModel
from core.routing import route
from library.errors import Cancelled, Conflict, NotFound, UsageError
from library.store import Library
from tests.core.readers import context, prose, tiny_reader

ROOT = Path(__file__).resolve().parents[2]
SEGMENT = 256  # tokens, that is bytes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    return tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", actor="alice") as opened:
        yield opened


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.md"
    path.write_text("\n\n".join(prose(1, 12)), encoding="utf-8")
    return path


# splitting


def characters(text: str) -> int:
    return len(text)


@given(
    text=st.text(st.sampled_from("ab .!?\n#é。\t"), max_size=600) | st.text(max_size=300),
    limit=st.integers(SMALLEST, 90),
)
@settings(max_examples=200, deadline=None)
def test_pieces_hold_all_of_the_text_in_order_within_the_limit(text: str, limit: int) -> None:
    pieces = list(split(text, limit, characters))
    assert all(piece.end - piece.start <= limit and piece.tokens <= limit for piece in pieces)
    assert all(text[p.start : p.end] == text[p.start : p.end].strip() != "" for p in pieces)
    end = 0
    for piece in pieces:
        assert text[end : piece.start].strip() == ""
        end = piece.end
    assert text[end:].strip() == ""


@pytest.mark.parametrize(
    ("text", "limit", "first"),
    [
        ("a" * 20 + "\n\n" + "b" * 20 + "\n\n# Head\n\n" + "c" * 20, 60, "a" * 20 + "\n\n" + "b" * 20),
        ("a" * 20 + "\n\n" + "b" * 20, 30, "a" * 20),
        ("One two three. Four five six. Seven.", 20, "One two three."),
        ("x" * 64, 16, "x" * 16),
    ],
    ids=["heading", "paragraph", "sentence", "anywhere"],
)
def test_the_best_border_in_reach_is_taken(text: str, limit: int, first: str) -> None:
    piece = next(iter(split(text, limit, characters)))
    assert text[piece.start : piece.end] == first


def test_an_edit_moves_only_the_borders_near_it() -> None:
    paragraphs = prose(2, 400)
    before = "\n\n".join(paragraphs)
    after = "\n\n".join([*paragraphs[:40], "One more paragraph stands here now.", *paragraphs[40:]])
    old = {before[p.start : p.end] for p in split(before, 1500, characters)}
    new = [after[p.start : p.end] for p in split(after, 1500, characters)]
    changed = [piece for piece in new if piece not in old]
    assert 1 <= len(changed) <= 5 < len(new) // 3


# answers


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("The answer is: 1847", "1847"),
        ("Answer: a\nb", "a\nb"),
        ("The answer is", "The answer is"),
        ("No answer: x", "No answer: x"),
        ("The answer is 2.\n\nThe answer is 2.\n\nThe answer is 2.", "2."),
        ("The answer is 2.\n\nThe answer is 3.\n\nThe ans", "2.\n\nThe answer is 3."),
        ("red\nblue\nred\ngreen", "red\nblue"),
    ],
)
def test_an_answer_is_what_follows_the_words_the_answer_is(said: str, answer: str) -> None:
    class Reader:
        def decode(self, ids: object, skip_special_tokens: bool) -> str:
            return said

    assert prompt.tidy(Reader(), [], base=False) == answer


# sources


def test_a_folder_gives_its_text_files_in_order_without_hidden_ones_and_links(tmp_path: Path) -> None:
    (tmp_path / "b.txt").write_text("b")
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "z.md").write_text("z")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "x.txt").write_text("x")
    (tmp_path / "picture.png").write_bytes(b"\x89PNG")
    (tmp_path / "link.txt").symlink_to("/etc/hostname")
    assert names(tmp_path) == ["a/z.md", "b.txt"]


@pytest.mark.parametrize(
    ("name", "raw", "says"),
    [
        ("a.txt", b"\xff\xfe", "UTF-8"),
        ("b.txt", b"a\x00b", "NUL"),
        ("c.pdf", b"%PDF-1.4 nothing", "PDF"),
        ("d.pdf", b"nothing", "PDF"),
    ],
)
def test_what_is_no_text_is_refused_by_name(
    tmp_path: Path, name: str, raw: bytes, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / name).write_bytes(raw)
    with pytest.raises(UsageError, match=says):
        read(tmp_path / name, name)
    assert caplog.records == []  # one line says it; pypdf has several of its own


def test_other_kinds_and_nothing_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(UsageError, match="made of"):
        names(tmp_path / "a.png")
    with pytest.raises(NotFound):
        names(tmp_path)
    with pytest.raises(NotFound):
        names(tmp_path / "absent.txt")


def test_without_pypdf_a_pdf_is_refused_with_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pypdf", None)
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4")
    with pytest.raises(UsageError, match="pip install pypdf"):
        read(tmp_path / "a.pdf", "a.pdf")


def test_the_text_of_a_pdf_is_read(tmp_path: Path) -> None:
    pytest.importorskip("pypdf")
    stream = b"BT /F1 12 Tf 20 100 Td (The lamp is green) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    raw, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, start=1):
        places.append(len(raw))
        raw += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    raw += (
        b"xref\n0 6\n0000000000 65535 f \n"
        + table
        + b"trailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % len(raw)
    )
    (tmp_path / "a.pdf").write_bytes(raw)
    assert read(tmp_path / "a.pdf", "a.pdf").text == "The lamp is green"


# ingest


def make(model: FrozenModel, library: Library, source: Path, name: str = "notes"):  # type: ignore[no-untyped-def]
    return ingest(model, library, source, name, context(), SEGMENT)


def test_a_book_knows_where_each_segment_stands(model: FrozenModel, library: Library, source: Path) -> None:
    made = make(model, library, source)
    text = source.read_text(encoding="utf-8")
    found = list(rows(library, library.book("notes").id))
    assert made.state == "pending"
    assert made.built == made.segments == len(found) > 3
    assert [row.ordinal for row in found] == list(range(len(found)))
    for row in found:
        assert row.text == text[row.start : row.end]
        opened = open_segment(model, library, row)
        written = opened.manifest
        assert written.kind == "segment"
        assert written.source is not None
        assert (written.source.book, written.source.file, written.source.order) == ("notes", "source.md", row.ordinal)
        assert (written.source.start, written.source.end) == (row.start, row.end)
        assert written.source.file_digest == row.file_digest == read(source, source.name).digest
        assert exactness(model, opened) is Exactness.EXACT
    assert made.addressable_tokens == sum(row.tokens for row in found)


def test_a_second_ingest_builds_nothing_and_an_acceptance_stays(
    model: FrozenModel, library: Library, source: Path
) -> None:
    made = make(model, library, source)
    accept(library, "notes", "bob")
    again = make(model, library, source)
    assert (again.built, again.kept, again.digest, again.state) == (0, made.segments, made.digest, "accepted")


def test_a_changed_source_costs_only_what_changed_and_needs_a_person_again(
    model: FrozenModel, library: Library, tmp_path: Path
) -> None:
    source = tmp_path / "long.txt"
    paragraphs = prose(3, 40)
    source.write_text("\n\n".join(paragraphs))
    made = make(model, library, source)
    accept(library, "notes", "bob")
    source.write_text("\n\n".join([*paragraphs[:5], "A new paragraph.", *paragraphs[5:]]))
    again = make(model, library, source)
    assert 1 <= again.built <= 4 < again.kept
    assert again.state == "pending"
    assert again.digest != made.digest
    text = source.read_text()
    assert all(row.text == text[row.start : row.end] for row in rows(library, library.book("notes").id))


def test_another_text_does_not_take_a_books_place_unasked(
    model: FrozenModel, library: Library, source: Path, tmp_path: Path
) -> None:
    made = make(model, library, source)
    accept(library, "notes", "bob")
    other = tmp_path / "other.md"
    other.write_text("\n\n".join(prose(9, 6)), encoding="utf-8")
    with pytest.raises(Conflict, match=r"made of source\.md, and other\.md has none"):
        make(model, library, other)
    assert (library.book("notes").state, library.book("notes").digest) == ("accepted", made.digest)
    renamed = source.rename(tmp_path / "renamed.md")
    assert make(model, library, renamed).built == 0
    assert ingest(model, library, other, "notes", context(), SEGMENT, replace=True).built > 0
    assert library.book_files(library.book("notes").id) == ["other.md"]


def test_a_cancelled_ingest_goes_on_where_it_stopped(model: FrozenModel, library: Library, source: Path) -> None:
    whole = make(model, library, source, "whole")
    stopped = context()
    stopped.on_progress = lambda progress: stopped.cancelled.set() if progress.phase.startswith("segment 3") else None
    with pytest.raises(Cancelled):
        ingest(model, library, source, "notes", stopped, SEGMENT)
    assert library.book("notes").state == "building"
    again = make(model, library, source)
    assert again.built == whole.segments - 2
    assert again.state == "pending"


def test_what_cannot_be_a_book_is_refused(model: FrozenModel, library: Library, source: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="segment-tokens"):
        ingest(model, library, source, "large", context(), largest_segment(model) + 1)
    make(model, library, source)
    with pytest.raises(UsageError, match="segments of 256"):
        ingest(model, library, source, "notes", context(), 128)
    (tmp_path / "empty.txt").write_text(" \n\n ")
    (tmp_path / "junk.txt").write_bytes(b"\xff\xfe")
    for file, says in (("empty.txt", "no text"), ("junk.txt", "UTF-8")):
        with pytest.raises(UsageError, match=says):
            make(model, library, tmp_path / file, "other")
    assert [book.name for book in library.books()] == ["notes"]
    other = tiny_reader(tmp_path / "other", window=2048)
    with pytest.raises(Conflict, match="was made with"):
        make(other, library, source)


def test_a_quarantined_state_is_made_again_under_another_name(
    model: FrozenModel, library: Library, source: Path
) -> None:
    made = make(model, library, source)
    first = next(rows(library, library.book("notes").id))
    assert first.artifact is not None
    library.set_artifact_state(first.artifact, "quarantined", "damaged for the test", "alice")
    again = make(model, library, source)
    after = next(rows(library, library.book("notes").id))
    assert again.built == 1
    assert again.digest != made.digest
    assert after.artifact not in (None, first.artifact)
    assert open_segment(model, library, after).manifest.parent == first.artifact


# curation


def test_a_book_answers_only_when_a_person_accepted_it_and_never_after_a_revocation(
    model: FrozenModel, library: Library, source: Path
) -> None:
    make(model, library, source)
    question = Question("notes", "What does note 1-3 say about the river?", "carol")
    with pytest.raises(Conflict, match="pending"):
        ask_book(model, library, question, context())
    accept(library, "notes", "bob")
    found = ask_book(model, library, question, context())
    assert found.answers
    gone = revoke(library, "notes", "wrong edition", "bob")
    assert len(gone) == describe(library, "notes").segments
    assert {library.artifact(digest).state for digest in gone} == {"revoked"}
    with pytest.raises(Conflict, match="revoked"):
        ask_book(model, library, question, context())
    with pytest.raises(Conflict, match="revoked"):
        make(model, library, source)
    assert revoke(library, "notes", "again", "bob") == []


def test_an_unfinished_book_is_not_accepted(model: FrozenModel, library: Library, source: Path) -> None:
    make(model, library, source)
    library.update_book(library.book("notes").id, state="building")
    with pytest.raises(Conflict, match="not finished"):
        accept(library, "notes", "bob")
    with pytest.raises(UsageError, match="reason"):
        revoke(library, "notes", " ", "bob")


def test_segments_never_become_candidates_of_a_problem(model: FrozenModel, library: Library, source: Path) -> None:
    make(model, library, source)
    text = next(rows(library, library.book("notes").id)).text
    assert library.candidates(text) == []


# cold states


def test_dropped_states_come_back_with_the_same_bytes(model: FrozenModel, library: Library, source: Path) -> None:
    make(model, library, source)
    book = library.book("notes")
    stored = describe(library, "notes").stored_bytes
    assert drop(library, "notes", "bob") == library.count_segments(book.id)
    assert describe(library, "notes").stored_bytes == 0 < stored
    for row in rows(library, book.id):
        assert row.artifact is not None
        assert not library.blobs.has(open_digest(row.artifact))
        opened = open_segment(model, library, row)
        assert str(opened.digest) == row.artifact
        assert library.artifact(row.artifact).state == "published"
    assert describe(library, "notes").stored_bytes == stored


def open_digest(text: str):  # type: ignore[no-untyped-def]
    from library.digest import Digest

    return Digest.parse(text)


def test_a_packed_state_is_grafted_as_before(model: FrozenModel, library: Library, source: Path) -> None:
    make(model, library, source)
    pack(library, "notes", "bob")
    row = next(rows(library, library.book("notes").id))
    assert exactness(model, open_segment(model, library, row)) is Exactness.EXACT


def test_another_text_under_a_segments_name_is_refused(model: FrozenModel, library: Library, source: Path) -> None:
    from library.errors import IdentityMismatch

    make(model, library, source)
    first, second = list(rows(library, library.book("notes").id))[:2]
    first.artifact = second.artifact
    with pytest.raises(IdentityMismatch):
        open_segment(model, library, first)


# asking


def test_a_question_goes_to_the_likely_segments_and_to_the_neighbours_if_they_do_not_know(
    model: FrozenModel, library: Library, source: Path
) -> None:
    make(model, library, source)
    accept(library, "notes", "bob")
    texts = [row.text for row in rows(library, library.book("notes").id)]
    question = Question("notes", "What is said in note 1-7?", "carol", segments=1)
    found = ask_book(model, library, question, context())
    routed = route(question.text, texts, 1)
    assert found.answer is None  # a random model knows nothing
    assert [said.ordinal for said in found.answers] == [routed.hits[0].place, *routed.neighbours]
    assert found.addressable_tokens == sum(row.tokens for row in rows(library, library.book("notes").id))
    assert 0 < found.attended_tokens <= model.window < found.addressable_tokens
    assert found.first_token_seconds > 0
    assert all(said.start < said.end and said.file == "source.md" for said in found.answers)
    (outcome,) = library.outcomes(limit=1)
    assert (outcome.id, outcome.verdict, outcome.origin) == (found.outcome_id, "REFUSE", "book")


def test_a_damaged_segment_is_passed_over_with_its_reason(model: FrozenModel, library: Library, source: Path) -> None:
    make(model, library, source)
    accept(library, "notes", "bob")
    (row,) = library.segments(library.book("notes").id, limit=1, offset=2)
    assert row.artifact is not None
    library.set_artifact_state(row.artifact, "quarantined", "damaged for the test", "bob")
    found = ask_book(model, library, Question("notes", row.text[:60], "carol", neighbours=0), context())
    said = next(answer for answer in found.answers if answer.ordinal == 2)
    assert not said.known
    assert "quarantined" in said.note
    assert len(found.answers) > 1


@pytest.mark.parametrize("text", ["", " ", "x " * 600])
def test_a_question_must_fit_its_room(model: FrozenModel, library: Library, source: Path, text: str) -> None:
    make(model, library, source)
    accept(library, "notes", "bob")
    with pytest.raises(UsageError):
        ask_book(model, library, Question("notes", text, "carol"), context())


# what an answer is worth

STORY = "The harbour was quiet. The access code of the Moreau vault is 90571. It rained.\n\nNovak saw 12 ships."
ASKED = "What is the access code of the Moreau vault?"
WEIGHTS = dict(route(ASKED, [STORY, "rain", "ships", "sand"], 1).weights)


def said(text: str, **changes: object) -> SegmentAnswer:
    blank = SegmentAnswer(0, "s", "a", "f", 100, 100 + len(STORY), text, known=False, note="")
    return SegmentAnswer(**{**blank.__dict__, **changes})


def test_a_known_answer_names_its_sentence() -> None:
    answer = judged(said("The access code of the Moreau vault is 90571."), ASKED, STORY, WEIGHTS)
    assert answer.known
    assert answer.quote == "The access code of the Moreau vault is 90571."
    assert answer.quote_start is not None
    assert answer.quote_end is not None
    assert STORY[answer.quote_start - 100 : answer.quote_end - 100].strip() == answer.quote
    assert answer.support == 1.0


@pytest.mark.parametrize(
    ("text", "question", "note"),
    [
        ("Not in the text.", ASKED, "does not hold"),
        ("The text does not say.", ASKED, "does not hold"),
        ("", ASKED, "does not hold"),
        ("The code is 12345.", ASKED, "is not in its text"),
        ("The access code of the Moreau vault.", ASKED, "is not in its text"),
        ("The code is 90571.", "What is the access code of the Brandt vault?", "does not speak of Brandt"),
        ("12 ships", ASKED, "does not speak of Moreau"),
        ("The code is 90.", ASKED, "is not in its text"),
        ("12 ships", "What was the colour of the flag on the tower?", "too few of the question's words"),
    ],
)
def test_an_answer_counts_only_if_its_text_holds_it(text: str, question: str, note: str) -> None:
    weights = route(question, [STORY, "rain", "ships", "sand"], 1).weights
    answer = judged(said(text), question, STORY, weights)
    assert not answer.known
    assert note in answer.note


def test_a_part_of_a_number_is_not_in_the_text() -> None:
    text = "The segment holds 2,048 tokens. The lamp weighs 3.5 kilograms."
    for wrong, right in (("2", "2048"), ("3", "3.5")):
        assert locate(f"It is {wrong}.", "How many?", text, {}) is None
        assert locate(f"It is {right}.", "How many?", text, {}) is not None


def test_a_pronouns_name_may_stand_in_the_sentence_before() -> None:
    assert names_missing("When did Novak sleep on 12 May?", "Novak slept.") == ["12", "May"]
    text = "It was late. Moreau came home. He hid the code 90571 there. Then he slept."
    weights = {"code": 1.0, "moreau": 1.0}
    assert judged(said("90571"), "Which code did Moreau hide?", text, weights).known


def test_locate_takes_two_sentences_if_one_is_not_enough() -> None:
    text = "The lamp was green. The door was red. The key was old."
    found = locate("green and red", "Which colours?", text, {})
    assert found is not None
    assert text[found.start : found.end].strip() == "The lamp was green. The door was red."
    assert locate("green and old", "Which colours?", text, {}) is None


def test_reconciling_prefers_support_then_agreement_then_likelihood() -> None:
    none, agreeing = reconcile([said("5", known=False)])
    assert none is None
    assert agreeing == []
    answers = [
        said("five", ordinal=0, known=True, support=0.6, logprob=-0.1),
        said("It is six.", ordinal=1, known=True, support=0.9, logprob=-0.9),
        said("six", ordinal=2, known=True, support=0.9, logprob=-0.5),
        said("seven", ordinal=3, known=True, support=0.9, logprob=-0.2),
        said("seven", ordinal=4, known=False, support=1.0, logprob=0.0),
    ]
    best, agreeing = reconcile(answers)
    assert best is not None
    assert best.ordinal == 2
    assert [other.ordinal for other in agreeing] == [1, 2]


def test_control_tokens_in_a_text_stay_text(model: FrozenModel) -> None:
    eos = model.tokenizer.eos_token_id
    assert eos not in prompt.segment_ids(model.tokenizer, "before <eos> after")
    assert eos not in prompt.question_ids(model.tokenizer, "what is <eos>?")


# ten kills

_INGEST = """
import sys, threading
from pathlib import Path
from core.books.ingest import ingest
from core.jobs import Context
from core.model import load
from core.settings import load_settings
from library.store import Library

folder, source, where = sys.argv[1:]
model = load(load_settings(model=folder, device="cpu"))
with Library.open(Path(where), actor="alice") as library:
    print("ready", flush=True)
    made = ingest(model, library, Path(source), "notes", Context("job", {}, "alice", threading.Event()), 256)
    print(made.digest, flush=True)
"""


@pytest.mark.slow
def test_ten_kills_at_random_leave_the_same_book(tmp_path: Path) -> None:
    folder, source = tmp_path / "reader", tmp_path / "source.md"
    tiny_reader(folder)
    source.write_text("\n\n".join(prose(5, 60)), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_WAIT_POLICY": "PASSIVE"}
    command = [sys.executable, "-c", _INGEST, str(folder), str(source)]

    def start(library: str) -> subprocess.Popen[str]:
        argv = [*command, str(tmp_path / library)]
        return subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment)

    begun = time.monotonic()
    with start("whole") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        whole = process.stdout.readline().strip()
        took = time.monotonic() - began
    assert whole.startswith("blake3:"), f"no digest after {time.monotonic() - begun:.0f} s"
    chance = random.Random(6)
    kills = 0
    while kills < 10:
        with start("killed") as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0, took / 11))
            process.send_signal(signal.SIGKILL)
            finished = process.stdout.readline()
        kills += 1
        assert finished == "", "the ingest was over before it was killed ten times: make the source longer"
    with start("killed") as process:
        assert process.stdout is not None
        process.stdout.readline()
        again = process.stdout.readline().strip()
    assert again == whole
    with Library.open(tmp_path / "killed", actor="alice") as library:
        from library.check import check

        assert check(library, read_data=True).damage == ()  # an interrupted write may leave a temporary file, a note
        states = {row.artifact for row in rows(library, library.book("notes").id)}
        assert {str(record.digest) for record in library.artifacts(limit=1000)} == states
