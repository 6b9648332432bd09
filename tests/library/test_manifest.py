"""The manifest: strict, frozen, one encoding, no inner contradictions."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from library import manifest as module
from library.digest import canonical_json
from library.errors import FormatError
from library.manifest import LayerSpec, Manifest, Run, Source, encode_manifest, parse_manifest, strict_json
from tests.library.artifacts import fingerprint, manifest

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


def changed(**changes: Any) -> bytes:
    return canonical_json({**json.loads(encode_manifest(manifest())), **changes})


@given(problem=TEXT, answer=TEXT, reference=st.none() | TEXT, seed=st.integers(-(2**63), 2**64 - 1))
def test_round_trip(problem: str, answer: str, reference: str | None, seed: int) -> None:
    base = manifest()
    sampling = base.sampling.model_copy(update={"seed": seed})
    made = base.model_copy(update={"problem": problem, "answer": answer, "reference": reference, "sampling": sampling})
    raw = encode_manifest(made)
    assert parse_manifest(raw) == made
    assert encode_manifest(parse_manifest(raw)) == raw


def test_a_segment_round_trips() -> None:
    source = Source(book="b", file="f.txt", file_digest="blake3:" + "2" * 64, start=0, end=7, order=0)
    made = manifest(kind="segment", source=source, certificate=None, parent="blake3:" + "3" * 64)
    assert parse_manifest(encode_manifest(made)) == made


def test_nothing_can_be_set() -> None:
    made = manifest()
    with pytest.raises(ValidationError):
        made.answer = "12"  # type: ignore[misc]
    with pytest.raises(ValidationError):
        Run(length=1, count=1, extra=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("field", sorted(Manifest.model_fields))
def test_no_field_may_be_missing(field: str) -> None:
    value = json.loads(encode_manifest(manifest()))
    del value[field]
    with pytest.raises(FormatError, match="schema version" if field == "schema_version" else field):
        parse_manifest(canonical_json(value))


@pytest.mark.parametrize("field", sorted(Manifest.model_fields))
def test_no_field_takes_another_type(field: str) -> None:
    for wrong in ({"a": []}, [{"a": 1}], "text", 3, True, None):
        value = json.loads(encode_manifest(manifest()))
        same_type = type(value[field]) is type(wrong) and wrong != [{"a": 1}] and wrong != {"a": []}
        optional = wrong is None and field in {"reference", "certificate", "parent", "source"}
        text_for_none = field == "reference" and wrong == "text"
        if same_type or optional or text_for_none:
            continue
        with pytest.raises(FormatError):
            parse_manifest(changed(**{field: wrong}))


CONTRADICTIONS: dict[str, tuple[dict[str, Any], str]] = {
    "graft point": ({"graft_point": 6}, "graft_point"),
    "prompt": ({"prompt_ids": (5, 6)}, "graft_point"),
    "schedule": ({"schedule": (Run(length=3, count=1),)}, "schedule"),
    "row": ({"schedule": (Run(length=5, count=1, batch=2, row=2),)}, "batch"),
    "identity": ({"identity": fingerprint().model_copy(update={"fields": {"a": 1}})}, "identity"),
    "environment": ({"environment": fingerprint().model_copy(update={"fields": {"a": 1}})}, "environment"),
    "layers missing": ({"layers": ()}, "no counterpart"),
    "layers twice": ({"layers": (manifest().layers[0],) * 2}, "increasing"),
    "layer of no tensor": (
        {"layers": (*manifest().layers, LayerSpec(index=9, kind="full", tensors={"k": "none"}, attributes={}))},
        "no counterpart",
    ),
    "version": ({"schema_version": 2}, "writes schema version 1"),
}


@pytest.mark.parametrize(("changes", "reason"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_manifest_that_contradicts_itself_is_not_written(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        encode_manifest(manifest(**changes))


@pytest.mark.parametrize("value", [0.5, b"x", {1: 2}, {"a"}, "\ud800"], ids=repr)
def test_attributes_without_canonical_json_are_not_written(value: Any) -> None:
    layers = manifest().layers
    odd = layers[0].model_copy(update={"attributes": {"a": value}})
    with pytest.raises(FormatError):
        encode_manifest(manifest(layers=(odd, *layers[1:])))


def test_migrations_run_in_order_and_only_those_that_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []

    def step(version: int) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def migrate(value: dict[str, Any]) -> dict[str, Any]:
            assert value["schema_version"] == version
            calls.append(version)
            return {**value, "created": f"{value['created']}{version}"}

        return migrate

    raw = {version: changed(schema_version=version, created="") for version in range(1, 5)}
    monkeypatch.setattr(module, "SCHEMA_VERSION", 3)
    monkeypatch.setattr(module, "MIGRATIONS", {1: step(1), 2: step(2)})
    assert (parse_manifest(raw[1]).created, calls) == ("12", [1, 2])
    assert parse_manifest(raw[2]).created == "2"
    assert parse_manifest(raw[3]).created == ""
    assert parse_manifest(raw[1]).schema_version == 3
    with pytest.raises(FormatError, match="schema version 4 is newer than 3"):
        parse_manifest(raw[4])


def test_an_older_manifest_is_as_strict_about_its_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = encode_manifest(manifest())
    monkeypatch.setattr(module, "SCHEMA_VERSION", 2)
    monkeypatch.setattr(module, "MIGRATIONS", {1: lambda value: value})
    assert parse_manifest(raw).schema_version == 2
    for bad in (raw + b" ", raw.replace(b":", b": ", 1), raw[:-1] + b',"z":1}'):
        with pytest.raises(FormatError):
            parse_manifest(bad)


def test_each_version_before_the_current_one_has_a_migration() -> None:
    assert set(module.MIGRATIONS) == set(range(1, module.SCHEMA_VERSION))


OTHER_SPELLINGS = (
    *(b"", b"{", b"nul", b"1 ", b"01", b"-0", b"1e3", b"1.5", b"NaN", b"Infinity", b"[1,]", b"1 2"),
    *(b'{"a":1,"a":1}', b'{"b":1,"a":1}', b'"\\u0061"', b'"\\/"', b'"\\ud800"', b'"\n"', b"\xff", b"\xef\xbb\xbf1"),
    *(b"18446744073709551616", b"-9223372036854775809", b"9" * 5000, b"[" * 100_000 + b"]" * 100_000),
)


@pytest.mark.parametrize("raw", OTHER_SPELLINGS, ids=lambda raw: repr(raw[:20]))
def test_strict_json_takes_one_spelling_only(raw: bytes) -> None:
    with pytest.raises(FormatError):
        strict_json(raw)


def test_strict_json_takes_the_whole_range_of_integers() -> None:
    for value in (2**64 - 1, -(2**63), 0, -1):
        assert strict_json(str(value).encode()) == value


@pytest.mark.parametrize("raw", [b"[]", b"1", b"null", b'"a"'])
def test_a_manifest_is_an_object(raw: bytes) -> None:
    with pytest.raises(FormatError, match="object"):
        parse_manifest(raw)
