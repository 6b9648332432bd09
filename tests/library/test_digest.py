"""Digests and canonical JSON: one spelling each."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from blake3 import blake3
from hypothesis import given
from hypothesis import strategies as st

from library.digest import Digest, Following, canonical_json, digest_bytes, digest_chunks, digest_json
from library.errors import FormatError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def test_the_empty_digest_is_that_of_the_blake3_paper() -> None:
    assert digest_bytes(b"").hex == "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_chunks_digest_like_the_whole(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    views = [bytearray(chunk) if number % 2 else memoryview(chunk) for number, chunk in enumerate(chunks)]
    assert digest_chunks(views) == digest_bytes(whole) == Digest(blake3(whole).hexdigest())


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_a_digest_that_follows_is_that_of_the_whole(chunks: list[bytes]) -> None:
    with Following() as following:
        for chunk in chunks:
            following(memoryview(chunk))
        assert following.digest() == digest_bytes(b"".join(chunks))


def test_a_thread_that_hashes_ends_with_its_block() -> None:
    def read() -> None:
        with Following() as following:
            following(memoryview(b"a"))
            following(memoryview(b"b"))
            raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        read()
    assert "hashing" not in {thread.name for thread in threading.enumerate()}


def test_large_buffers_digest_the_same_with_threads() -> None:
    data = bytes(range(256)) * 20_000
    assert digest_bytes(data).hex == blake3(data).hexdigest()


def test_text_form() -> None:
    digest = digest_bytes(b"x")
    assert Digest.parse(str(digest)) == digest
    assert str(digest) == f"blake3:{digest.hex}"


HEX = "a" * 64
NOT_DIGESTS: list[Any] = [
    "",
    HEX,
    f"blake3:{HEX}\n",
    f" blake3:{HEX}",
    f"blake3:{HEX}a",
    f"blake3:{HEX[1:]}",
    f"BLAKE3:{HEX}",
    f"blake3:{HEX.upper()}",
    f"sha256:{HEX}",
    f"blake3:{HEX[:-1]}\0",
    f"blake3:{HEX[:-1]}٣",
    "blake3:" + "../" * 21 + "a",
    "blake3:" + "a" * 10_000,
    "../../etc/passwd",
    None,
    7,
    b"blake3:" + HEX.encode(),
]


@pytest.mark.parametrize("text", NOT_DIGESTS, ids=lambda text: repr(text)[:24])
def test_anything_else_is_not_a_digest(text: Any) -> None:
    with pytest.raises(FormatError):
        Digest.parse(text)


@pytest.mark.parametrize("text", ["", HEX[1:], HEX + "a", HEX.upper(), HEX[:-1] + "\n", HEX[:-1] + "/"])
def test_nor_can_one_be_made_of_it(text: str) -> None:
    with pytest.raises(FormatError):
        Digest(text)


@given(VALUES)
def test_canonical_json_comes_back_and_is_stable(value: Any) -> None:
    raw = canonical_json(value)
    assert json.loads(raw) == value
    assert canonical_json(json.loads(raw)) == raw


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(), max_size=6))
def test_the_order_of_keys_does_not_matter(value: dict[str, int]) -> None:
    assert digest_json(value) == digest_json(dict(reversed(value.items())))


def test_keys_are_ordered_by_code_point_and_escapes_are_the_shortest() -> None:
    """The two rules of docs/format.md that a writer in another language is likeliest to miss."""
    assert canonical_json({"\U0001f600": 1, "\uffee": 2, "a": 3}) == '{"a":3,"\uffee":2,"\U0001f600":1}'.encode()
    escaped = '"\\"\\\\/\\b\\t\\n\\f\\r\\u0001\\u001f\x7f\u2028é"'
    assert canonical_json('"\\/\b\t\n\f\r\x01\x1f\x7f\u2028é') == escaped.encode()


NOT_JSON: list[Any] = [1.0, float("nan"), [0.5], {"a": {"b": [1e9]}}, {1: 2}, {None: 1}, b"x", {1, 2}, "\ud800"]


@pytest.mark.parametrize("value", NOT_JSON, ids=lambda value: repr(value)[:24])
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    with pytest.raises(FormatError):
        canonical_json(value)
