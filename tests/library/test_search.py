from __future__ import annotations

import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from library.candidates import tokens
from library.errors import CorruptError, LibraryTooNew, NotFound, UsageError
from library.search import COLUMNS, Index, list_artifacts
from library.sqlite import DATABASE, connect
from library.store import Library
from library.tables import Artifact
from tests.library.many import fill, texts
from tests.library.stores import IDENTITY, deposit, key_of

PROBLEMS = {
    "train": "A train travels 120 km in 2 hours. What is its speed?",
    "rope": "A rope of 24 m is cut into 6 equal pieces. How long is each piece?",
    "prime": "How many primes are there below 100?",
}


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        for number, text in enumerate(PROBLEMS.values()):
            deposit(opened, text, solve_tokens=100 - number, model=f"model-{number % 2}")
        yield opened


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("large")
    Library.open(root).close()
    fill(root, 6000)
    return root


def _texts(rows: list) -> list[str]:
    return [next(name for name, text in PROBLEMS.items() if text == row.problem_text) for row in rows]


def test_columns_are_those_of_the_table() -> None:
    assert set(COLUMNS) == set(Artifact.model_fields)


def test_listing_needs_neither_sqlmodel_nor_torch(library: Library) -> None:
    code = (
        "import sys, pathlib; from library.search import list_artifacts;"
        f"print(len(list_artifacts(pathlib.Path({str(library.root)!r}))));"
        "print([name for name in ('sqlmodel', 'sqlalchemy', 'pydantic', 'torch', 'numpy') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["3", "[]"]


@pytest.mark.parametrize(
    ("conditions", "found"),
    [
        ({}, ["prime", "rope", "train"]),
        ({"descending": False}, ["train", "rope", "prime"]),
        ({"limit": 1, "offset": 1}, ["rope"]),
        ({"order": "solve_tokens"}, ["train", "rope", "prime"]),
        ({"text": "how"}, ["prime", "rope"]),
        ({"text": "TRAVELS tr"}, ["train"]),
        ({"text": "how train"}, []),
        ({"text": 'x" OR "rope'}, []),
        ({"text": "%"}, []),
        ({"model": "model-1"}, ["rope"]),
        ({"states": ["held"]}, []),
        ({"states": []}, []),
        ({"states": ["held", "published"], "kind": "solution", "model": "model-0"}, ["prime", "train"]),
    ],
)
def test_pages_of_the_table(library: Library, conditions: dict, found: list[str]) -> None:
    assert _texts(library.artifacts(**conditions)) == found
    wanted = {name: value for name, value in conditions.items() if name in ("text", "states", "model", "kind")}
    if "limit" not in conditions:
        assert library.count_artifacts(**wanted) == len(found)
    assert _texts(list_artifacts(library.root, **conditions)) == found


def test_text_is_found_whatever_the_state(library: Library) -> None:
    digest = library.find_exact(key_of(PROBLEMS["rope"]))[0].digest
    library.revoke(digest, reason="wrong", actor="ada")
    assert _texts(library.artifacts(text="how", states=["published"])) == ["prime"]
    assert _texts(library.artifacts(text="cut into")) == ["rope"]
    assert _texts(library.artifacts(text="6 equal", states=["revoked"])) == ["rope"]


@pytest.mark.parametrize(
    "conditions", [{"order": "digest; DROP TABLE artifact"}, {"answer": "42"}, {"1=1 OR kind": "x"}]
)
def test_conditions_are_names_that_we_know(library: Library, conditions: dict) -> None:
    with pytest.raises(UsageError):
        library.artifacts(**conditions)


def test_ambiguous_beginning_is_refused(large: Path) -> None:
    fill(large, 1, seed=99)
    with closing(connect(large / DATABASE)) as connection:
        (digest,) = connection.execute("SELECT digest FROM artifact LIMIT 1").fetchone()
        twin = digest[:30] + ("0" if digest[30] != "0" else "1") + digest[31:]
        columns = ", ".join(name for name in COLUMNS if name != "digest")
        select = f"SELECT ?, {columns} FROM artifact WHERE digest = ?"
        connection.execute(f"INSERT INTO artifact (digest, {columns}) {select}", (twin, digest))
    index = Index(large)
    with pytest.raises(UsageError, match="more than one"):
        index.resolve(digest[7:20])
    assert index.resolve(twin).digest == twin
    index.close()


# candidates


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("A train travels 120 km in 2 hours. What is its speed?", "train"),
        ("What is the speed of a train that goes 150 km in 3 hours", "train"),
        ("number of primes below 1000", "prime"),
        ("PIECES of a rope", "rope"),
    ],
)
def test_candidates_resemble_the_query(library: Library, query: str, best: str) -> None:
    found = library.candidates(query, 2)
    assert _texts([candidate.record for candidate in found])[0] == best
    assert 0 < found[0].score <= 1
    assert [candidate.score for candidate in found] == sorted((c.score for c in found), reverse=True)


def test_same_words_score_one(library: Library) -> None:
    assert library.candidates(PROBLEMS["rope"], 1)[0].score == pytest.approx(1.0)
    assert library.candidates("a " + PROBLEMS["rope"], 1)[0].score < 1.0


@pytest.mark.parametrize("state", ["revoked", "held", "quarantined"])
def test_only_published_ones_are_candidates(library: Library, state: str) -> None:
    digest = library.find_exact(key_of(PROBLEMS["rope"]))[0].digest
    if state == "revoked":
        library.revoke(digest, reason="test", actor="ada")
    else:
        library.set_artifact_state(digest, state, "test", "ada")
    assert [c.record.digest for c in library.candidates("rope pieces cut")] == []
    if state == "held":
        library.release_hold(digest, "fine", "ada")
        assert [c.record.digest for c in library.candidates("rope pieces cut")] == [digest]


def test_imported_and_foreign_ones_are_no_candidates(library: Library) -> None:
    from tests.library.stores import record_of, state_of

    row = library.land_import(state_of("x"), record_of("a zebra"), origin="bundle", actor="bob")
    assert library.candidates("zebra") == []
    library.accept_import([row.digest], "bob")
    assert [c.record.digest for c in library.candidates("zebra", identity=IDENTITY)] == [row.digest]
    assert library.candidates("zebra", identity="blake3:" + "9" * 64) == []


@given(st.text(max_size=300))
def test_any_text_is_a_safe_query(text: str) -> None:
    for word in tokens(text):
        assert word.isalnum()
        assert '"' not in word


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        '"',
        "NEAR(a b)",
        "rope AND",
        "-rope",
        "rope*",
        "text:rope",
        "^rope",
        "(((",
        "a\0b",
        "𝟙𝟚",
        "ﬀ" * 999,
        "x " * 9999,
    ],
)
def test_hostile_queries_do_no_harm(library: Library, text: str) -> None:
    assert isinstance(library.candidates(text), list)
    assert isinstance(library.artifacts(text=text), list)


def test_half_a_surrogate_pair_is_refused_by_name(library: Library) -> None:
    assert library.candidates("rope \ud800") == library.candidates("rope")
    for call in (
        lambda: library.artifacts(text="\ud800"),
        lambda: library.add_problem("a \ud800", canonical_key=key_of("a"), canonical_version=1, by="ada"),
    ):
        with pytest.raises(UsageError, match="not valid Unicode"):
            call()


def test_changed_texts_lead_back_to_their_problem(large: Path) -> None:
    index = Index(large)
    missed = []
    for text in list(texts(6000))[::150]:
        changed = "Please solve: " + " ".join(word for number, word in enumerate(text.split()) if number != 4)
        if text not in [candidate.record.problem_text for candidate in index.candidates(changed, 5)]:
            missed.append(text)
    index.close()
    assert missed == []


def test_lookup_does_not_grow_with_the_library(large: Path) -> None:
    """Bounds that hold on a slow machine too; the figures at a million records are in docs/performance.md."""
    index = Index(large)
    sample = list(texts(6000))[::100]
    exact, similar = [], []
    for text in sample:
        start = time.perf_counter()
        assert index.exact(key_of(text), IDENTITY)[0].problem_text == text
        exact.append(time.perf_counter() - start)
        start = time.perf_counter()
        index.candidates(text)
        similar.append(time.perf_counter() - start)
    plan = index.query(
        "EXPLAIN QUERY PLAN SELECT * FROM artifact WHERE canonical_key = ? AND +state = 'published'", ("x",)
    )
    index.close()
    assert "artifact_key" in plan[0][3]
    assert sorted(exact)[len(exact) // 2] < 0.01
    assert sorted(similar)[len(similar) // 2] < 0.2


def test_index_serves_many_threads(large: Path) -> None:
    index, failures = Index(large), []
    sample = list(texts(6000))[:40]

    def look() -> None:
        try:
            for text in sample:
                assert index.exact(key_of(text))[0].problem_text == text
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    index.close()
    assert failures == []


def test_what_is_no_library_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no library at"):
        list_artifacts(tmp_path)
    Library.open(tmp_path).close()
    for version, error in ((99, LibraryTooNew), (0, CorruptError)):
        with closing(connect(tmp_path / DATABASE)) as connection:
            connection.execute(f"PRAGMA user_version = {version}")
        with pytest.raises(error):
            list_artifacts(tmp_path)
