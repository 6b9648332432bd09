from __future__ import annotations

import pytest

from library.errors import UsageError
from ui.batch import MAX_BYTES, MAX_ROWS, Row, read_rows


@pytest.mark.parametrize(
    ("name", "data", "rows"),
    [
        (
            "a.jsonl",
            b'{"problem": "1+1?", "answer": 2}\n\n{"question": " x ", "id": "q"}\n',
            (("1+1?", "2"), ("x", None)),
        ),
        ("a.csv", b'question,answer\r\n"a, ""b""",9\r\nc,\r\n', (('a, "b"', "9"), ("c", None))),
        ("A.CSV", "\ufeffproblem\nüber 3?\n".encode(), (("über 3?", None),)),
        ("a.json", b'{"problem": "p", "reference": "r"}', (("p", "r"),)),
    ],
)
def test_problems_are_read(name: str, data: bytes, rows: tuple[tuple[str, str | None], ...]) -> None:
    assert read_rows(data, name) == tuple(Row(*row) for row in rows)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.jsonl", b'{"problem": "p"}\n{', "line 2 is not JSON"),
        ("a.jsonl", b"[1]", "line 1 is not an object"),
        ("a.jsonl", b'{"problem": ""}', "line 1 has no text"),
        ("a.jsonl", b'{"problem": ["x"]}', "line 1 has no text"),
        ("a.jsonl", b'{"problem": "p", "answer": {"x": 1}}', "neither text nor a number"),
        ("a.jsonl", b"\n \n", "holds no problem"),
        ("a.jsonl", b"[" * 100_000, "not JSON"),
        ("a.csv", b"name\nx\n", "line 2 has no text"),
        ("a.csv", b'problem\n"open', "cannot be read"),
        ("a.csv", b"\xff\xfe", "not UTF-8"),
        ("a.jsonl", b'{"problem": "p"}\n' * (MAX_ROWS + 1), f"at most {MAX_ROWS}"),
        ("a.jsonl", b" " * (MAX_BYTES + 1), "split it"),
    ],
)
def test_a_bad_file_is_refused_by_its_line(name: str, data: bytes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        read_rows(data, name)
