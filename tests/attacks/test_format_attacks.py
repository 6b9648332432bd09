"""Files that must not be opened: flipped bits, other spellings, bombs, colliding names, pickles.

Every attack is generated from an honest artifact, and most have all their digests computed anew: only the rule under
attack can refuse them. The independent reader under docs/ faces the same files.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import pickle
import random
import runpy
import struct
import subprocess
import sys
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from library.artifact import (
    ALIGNMENT,
    ITEM_SIZES,
    MAX_BRACKETS,
    MAX_HEADER_BYTES,
    MAX_TENSORS,
    decode,
    decode_header,
    header_size,
)
from library.digest import canonical_json, digest_bytes, digest_json
from library.errors import CorruptError, DigestMismatch, FormatError
from library.manifest import Manifest
from tests.library.artifacts import artifact_bytes

ROOT = Path(__file__).resolve().parents[2]
READER = ROOT / "docs" / "read_artifact.py"


@pytest.fixture(scope="module")
def honest() -> bytes:
    return artifact_bytes()


@pytest.fixture(scope="module")
def their_read() -> Callable[[bytes], Any]:
    """`read` of the independent reader."""
    return runpy.run_path(str(READER))["read"]


def build(header: bytes, data: bytes) -> bytes:
    """A file with this header text, padded as the format wants."""
    header += b" " * (-(8 + len(header)) % 64)
    return struct.pack("<Q", len(header)) + header + data


def parts(file: bytes) -> tuple[dict[str, Any], dict[str, Any], bytes]:
    """Header without its metadata, manifest, tensor bytes."""
    header = json.loads(file[8 : header_size(file)])
    manifest = json.loads(header.pop("__metadata__")["scion"])
    return header, manifest, file[header_size(file) :]


def rebuild(file: bytes, change: Callable[[dict[str, Any], dict[str, Any]], object]) -> bytes:
    """The file with header and manifest changed in place and everything around them canonical."""
    header, manifest, data = parts(file)
    change(header, manifest)
    text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    header["__metadata__"] = {"scion": text}
    return build(json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode(), data)


def test_the_tools_of_this_file_are_honest(honest: bytes, their_read: Callable[[bytes], Any]) -> None:
    """Without a change the attacks' building blocks give the honest file: refusals below have no other cause."""
    header, _, data = parts(honest)
    assert rebuild(honest, lambda header, manifest: None) == honest
    raw = honest[8 : header_size(honest)].rstrip(b" ")
    assert build(raw, data) == honest
    assert len(header) == 5
    assert their_read(honest)[0] == str(decode(honest).digest)


def test_every_single_bit_flip_is_refused(honest: bytes) -> None:
    """All 8 bits of every byte, against the content digest; parsing never starts."""
    expected, damaged, refused = digest_bytes(honest), bytearray(honest), 0
    for position in range(len(honest)):
        for bit in range(8):
            damaged[position] ^= 1 << bit
            try:
                decode(damaged, expected)
            except DigestMismatch:
                refused += 1
            damaged[position] ^= 1 << bit
    assert refused == 8 * len(honest)
    assert decode(damaged, expected).digest == expected


def test_bit_flips_with_no_digest_to_compare_raise_typed_errors_only(honest: bytes) -> None:
    """Every byte position without an expected digest: a flip in a free text passes and is another artifact; in
    everything else it is a `CorruptError`, and no other exception ever escapes."""
    passed, damaged = 0, bytearray(honest)
    start = header_size(honest)
    for position in range(len(honest)):
        bit = 1 << random.Random(position).randrange(8)
        damaged[position] ^= bit
        try:
            found = decode(damaged)
        except CorruptError:
            pass
        else:
            passed += 1
            assert position < start, "a flip in a tensor must not pass"
            assert found.digest != digest_bytes(honest)
        damaged[position] ^= bit
    assert passed < start // 4


def test_random_damage_raises_typed_errors_only(honest: bytes) -> None:
    dice = random.Random(11)
    for _ in range(1500):
        damaged = bytearray(honest)
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(damaged))
            match dice.randrange(4):
                case 0:
                    damaged[at] = dice.randrange(256)
                case 1:
                    del damaged[at : at + dice.randrange(1, 40)]
                case 2:
                    damaged[at:at] = dice.randbytes(dice.randrange(1, 9))
                case _:
                    damaged[at:at] = damaged[at : at + dice.randrange(1, 40)]
        for reading in (lambda d=damaged: decode(d), lambda d=damaged: decode_header(d)):
            with contextlib.suppress(CorruptError):
                reading()


# Row 11: canonical only


def reorder(raw: bytes) -> bytes:
    value = json.loads(raw)
    return json.dumps(dict(reversed(value.items())), separators=(",", ":"), ensure_ascii=False).encode()


def reorder_manifest(raw: bytes) -> bytes:
    value = json.loads(raw)
    manifest = json.loads(value["__metadata__"]["scion"])
    value["__metadata__"]["scion"] = json.dumps(dict(reversed(manifest.items())), separators=(",", ":"))
    return canonical_json(value)


SPELLINGS: dict[str, Callable[[bytes], bytes]] = {
    "keys reordered": reorder,
    "manifest keys reordered": reorder_manifest,
    "duplicate tensor": lambda raw: (
        raw[:-1] + b"," + raw[raw.index(b'"layer.0.key"') : raw.index(b',"layer.0.value"')] + b"}"
    ),
    "duplicate metadata": lambda raw: b'{"__metadata__":{"scion":"{}"},' + raw[1:],
    "duplicate dtype": lambda raw: raw.replace(b'"dtype":"F32"', b'"dtype":"BF16","dtype":"F32"', 1),
    "duplicate manifest key": lambda raw: raw.replace(b'"{\\"answer\\":', b'"{\\"answer\\":\\"12\\",\\"answer\\":', 1),
    "space after a colon": lambda raw: raw.replace(b'"dtype":', b'"dtype": ', 1),
    "space in the manifest": lambda raw: raw.replace(b'\\"answer\\":', b'\\"answer\\": ', 1),
    "space in front": lambda raw: b" " + raw,
    "newline behind": lambda raw: raw + b"\n",
    "tab as padding": lambda raw: raw + b"\t",
    "a whole line of padding": lambda raw: raw + b" " * 64,
    "byte order mark": lambda raw: b"\xef\xbb\xbf" + raw,
    "escaped letter": lambda raw: raw.replace(b'"layer.0.key"', b'"l\\u0061yer.0.key"', 1),
    "escaped manifest letter": lambda raw: raw.replace(b'\\"answer\\":', b'\\"\\u0061nswer\\":', 1),
    "upper-case escape": lambda raw: raw.replace(b"\\\\u0001", b"\\\\U0001", 1),
    "ascii only": lambda raw: json.dumps(json.loads(raw), sort_keys=True, separators=(",", ":")).encode(),
    "float": lambda raw: raw.replace(b'"shape":[3]', b'"shape":[3.0]', 1),
    "exponent": lambda raw: raw.replace(b'"shape":[3]', b'"shape":[3e0]', 1),
    "float in the manifest": lambda raw: raw.replace(b'\\"graft_point\\":5', b'\\"graft_point\\":5.0', 1),
    "minus zero": lambda raw: raw.replace(b'"shape":[0,4]', b'"shape":[-0,4]', 1),
    "leading zero": lambda raw: raw.replace(b'"shape":[3]', b'"shape":[03]', 1),
    "NaN": lambda raw: raw.replace(b'\\"graft_point\\":5', b'\\"graft_point\\":NaN', 1),
    "huge integer": lambda raw: raw.replace(b'\\"cumulative_length\\":5', b'\\"cumulative_length\\":' + b"9" * 5000, 1),
    "lone surrogate": lambda raw: raw.replace(b'\\"answer\\":\\"11', b'\\"answer\\":\\"\\\\ud800', 1),
    "invalid utf-8": lambda raw: raw.replace(b'\\"answer\\":\\"11', b'\\"answer\\":\\"\xff\xfe', 1),
}


@pytest.mark.parametrize("attack", SPELLINGS.values(), ids=SPELLINGS)
def test_no_other_spelling_opens(honest: bytes, their_read: Callable[[bytes], Any], attack: Any) -> None:
    raw, data = honest[8 : header_size(honest)].rstrip(b" "), honest[header_size(honest) :]
    file = build(attack(raw), data)
    assert file != honest, "the attack changed nothing"
    with pytest.raises(FormatError):
        decode(file)
    with pytest.raises(FormatError):
        decode_header(file)
    with pytest.raises((ValueError, TypeError, KeyError, AttributeError)):
        their_read(file)


def put(key: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda header, manifest: manifest.__setitem__(key, value)


def drop(key: str) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda header, manifest: manifest.pop(key)


def tensor(name: str, key: str, value: Any) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    return lambda header, manifest: header[name].__setitem__(key, value)


def shift(begin: int) -> Callable[[dict[str, Any], dict[str, Any]], object]:
    """Moves the second-to-last tensor of the file by `begin` bytes: a hole or an overlap."""

    def change(header: dict[str, Any], manifest: dict[str, Any]) -> None:
        offsets = header["layer.0.value"]["data_offsets"]
        header["layer.0.value"]["data_offsets"] = [offsets[0] + begin, offsets[1] + begin]

    return change


CONTENTS: dict[str, tuple[Callable[[dict[str, Any], dict[str, Any]], object], str]] = {
    "unknown field": (put("extra", 1), "extra"),
    "missing field": (drop("thinking"), "thinking"),
    "missing default": (lambda h, m: m["schedule"][0].pop("row"), "canonical"),
    "unknown inner field": (lambda h, m: m["cost"].__setitem__("pickle", ""), "pickle"),
    "second metadata key": (lambda h, m: h.__setitem__("__metadata_", {}), "described"),
    "unknown tensor field": (tensor("layer.0.key", "strides", [1]), "described"),
    "unknown dtype": (tensor("layer.0.key", "dtype", "OBJECT"), "unknown dtype"),
    "true for one": (lambda h, m: m["schedule"][0].__setitem__("batch", True), "batch"),
    "text for a number": (put("graft_point", "5"), "graft_point"),
    "number for a text": (put("answer", 11), "answer"),
    "newer version": (put("schema_version", 7), "schema version 7 is newer than 1"),
    "version zero": (put("schema_version", 0), "schema version"),
    "version true": (put("schema_version", True), "schema version"),
    "no version": (drop("schema_version"), "schema version"),
    "counts": (put("graft_point", 6), "graft_point"),
    "schedule": (lambda h, m: m["schedule"][0].__setitem__("count", 2), "schedule"),
    "row outside its batch": (lambda h, m: m["schedule"][1].__setitem__("row", 2), "batch"),
    "certificate": (lambda h, m: m["certificate"]["answer_ids"].append(4), "digest a step"),
    "layers out of order": (lambda h, m: m["layers"].reverse(), "increasing"),
    "tensor named twice": (lambda h, m: m["layers"][0]["tensors"].__setitem__("x", "layer.0.key"), "same tensor"),
    "tensor in no layer": (lambda h, m: m["layers"][0]["tensors"].pop("key"), "no counterpart"),
    "identity of other fields": (lambda h, m: m["identity"]["fields"].__setitem__("dtype", "f16"), "identity"),
    "digest in upper case": (lambda h, m: m.__setitem__("parent", "blake3:" + "A" * 64), "parent"),
    "digest as path": (lambda h, m: m.__setitem__("parent", "../../etc/passwd"), "parent"),
    "digest and newline": (lambda h, m: m.__setitem__("parent", "blake3:" + "a" * 64 + "\n"), "parent"),
    "hole": (shift(1), "hole"),
    "overlap": (shift(-1), "hole, overlap"),
    "aliased tensors": (tensor("layer.0.value", "data_offsets", [8, 20]), "overlap"),
    "negative offsets": (tensor("layer.1.seen", "data_offsets", [-8, 0]), "hole"),
    "offset true": (tensor("layer.1.seen", "data_offsets", [False, 8]), "offsets"),
    "shape product of overflow": (tensor("layer.1.mask", "shape", [2**32, 2**32, 3]), "do not fit"),
    "negative shape": (tensor("layer.0.key", "shape", [-1, -2, 3]), "shape"),
    "path as a name": (lambda h, m: h.__setitem__("../x", h.pop("layer.1.mask")), "tensor name"),
}


@pytest.mark.parametrize(("attack", "reason"), CONTENTS.values(), ids=CONTENTS)
def test_no_other_content_opens(honest: bytes, attack: Any, reason: str) -> None:
    file = rebuild(honest, attack)
    assert file != honest
    with pytest.raises(FormatError, match=reason):
        decode(file)


def test_a_float_or_deep_nesting_in_a_free_field_is_refused(honest: bytes) -> None:
    fields = {"a": 0.5}
    with pytest.raises(FormatError, match="integer"):
        decode(rebuild(honest, lambda h, m: m["layers"][0]["attributes"].update(fields)))
    marker = b'\\"cumulative_length\\":5'
    raw, data = honest[8 : header_size(honest)].rstrip(b" "), honest[header_size(honest) :]
    for depth in (5_000, 200_000):
        nested = raw.replace(marker, b'\\"cumulative_length\\":' + b"[" * depth + b"]" * depth, 1)
        with pytest.raises(FormatError):
            decode(build(nested, data))


@pytest.mark.parametrize(
    "extra", [b"\0", b" ", b"PK\x05\x06" + bytes(18), b"x" * 64], ids=["nul", "space", "zip", "block"]
)
def test_nothing_may_follow_or_be_missing(honest: bytes, extra: bytes) -> None:
    with pytest.raises(FormatError, match="describes"):
        decode(honest + extra)
    for cut in (
        1,
        8,
        len(honest) - header_size(honest),
        len(honest) - 20,
        len(honest) - 8,
        len(honest) - 3,
        len(honest),
    ):
        with pytest.raises(FormatError):
            decode(honest[: len(honest) - cut])


# Row 12: header bombs


def many_tensors(count: int) -> bytes:
    named = ",".join(f'"t{n:06}":{{"data_offsets":[0,0],"dtype":"U8","shape":[0]}}' for n in range(count))
    return ('{"__metadata__":{"scion":"{}"},' + named + "}").encode()


BOMBS: dict[str, Callable[[], bytes]] = {
    "length 2^63": lambda: struct.pack("<Q", 1 << 63) + b"{}",
    "length 2^64 - 1": lambda: b"\xff" * 16,
    "length beyond the file": lambda: struct.pack("<Q", MAX_HEADER_BYTES) + b"{}",
    "length above the limit": lambda: struct.pack("<Q", MAX_HEADER_BYTES + 1) + bytes(MAX_HEADER_BYTES + 1),
    "300,000 tensors, 20 MB": lambda: build(many_tensors(300_000), b""),
    "8,193 tensors": lambda: build(many_tensors(MAX_TENSORS + 1), b""),
    "220,000 tensors in less than 16 MiB": lambda: build(many_tensors(220_000), b""),
    "1,500,000 keys": lambda: build(
        b'{"__metadata__":{"scion":"{}"},' + ",".join(f'"{n}":0' for n in range(1_500_000)).encode() + b"}", b""
    ),
    "empty lists": lambda: build(b'{"__metadata__":{"scion":"{}"},"a":[' + b"[]," * 5_000_000 + b"0]}", b""),
    "a line of brackets": lambda: build(b"[" * 16_000_000, b""),
    "spaces": lambda: build(b" " * 16_000_000, b""),
    "claimed exabytes": lambda: build(
        b'{"__metadata__":{"scion":"{}"},"a":{"data_offsets":[0,1152921504606846976],"dtype":"U8",'
        b'"shape":[1152921504606846976]}}',
        b"",
    ),
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_header_bombs_are_refused_fast_and_in_bounded_memory(bomb: Callable[[], bytes]) -> None:
    file = bomb()
    started = time.perf_counter()
    with pytest.raises(FormatError):
        decode(file)
    seconds = time.perf_counter() - started
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            decode_header(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert seconds < 2.5
    assert peak < 20 * MAX_HEADER_BYTES


def test_the_limit_on_tensors_is_the_one_that_refuses_them() -> None:
    with pytest.raises(FormatError, match="more than 8192 tensors"):
        decode(build(many_tensors(MAX_TENSORS + 1), b""))
    with pytest.raises(FormatError, match="schema version"):
        decode(build(many_tensors(MAX_TENSORS), b""))


# Row 10: the digest says equal, the bytes are others


def test_where_the_digest_collides_the_manifest_still_says_which_tokens(
    honest: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If BLAKE3 were broken, decoding could not tell; but what it returns are the tokens of the bytes it was given,
    never those that somebody looked up by the digest. The gate compares these."""
    other = artifact_bytes(prompt_ids=(5, 6, 70))
    expected = digest_bytes(honest)
    with pytest.raises(DigestMismatch):
        decode(other, expected)
    monkeypatch.setattr("library.artifact.digest_bytes", lambda data: expected)
    found = decode(other, expected, verify_tensors=False)
    assert found.digest == expected
    assert found.manifest.prompt_ids == (5, 6, 70)
    with pytest.raises(DigestMismatch, match="tensor"):
        decode(other, expected)


def test_the_buffer_that_was_hashed_is_the_one_that_is_parsed(honest: bytes, tmp_path: Path) -> None:
    """Row 9: what happens to the file afterwards does not reach the artifact."""
    path = tmp_path / "artifact"
    path.write_bytes(honest)
    found = decode(path.read_bytes(), digest_bytes(honest))
    before = {name: bytes(t.data) for name, t in found.tensors.items()}
    path.write_bytes(b"x")
    path.unlink()
    assert {name: bytes(t.data) for name, t in found.tensors.items()} == before


# Row 21: pickles


class Bang:
    """Unpickling this would be noticed: it ends the process."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (sys.exit, (99,))


def zipped(payload: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("archive/data.pkl", payload)
    return target.getvalue()


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickle_is_never_unpickled(honest: bytes, protocol: int) -> None:
    payload = pickle.dumps(Bang(), protocol)
    start = header_size(honest)
    for file in (payload, zipped(payload), payload + honest, honest + payload, honest[:start] + payload):
        with pytest.raises(CorruptError):
            decode(file)
    in_text = artifact_bytes(solution=payload.hex())
    assert decode(in_text).manifest.solution == payload.hex()


FORBIDDEN_IMPORTS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve"}


@pytest.mark.parametrize("folder", ["library", "core", "ui"])
def test_no_source_unpickles(folder: str) -> None:
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("torch.load", "numpy.load", "np.load"):
                found.append(f"{path.name}:{node.lineno} {ast.unparse(node.func)}")
            found += [f"{path.name}: {name}" for name in names if name.split(".")[0] in FORBIDDEN_IMPORTS]
    assert not found


# The independent reader


def test_the_independent_reader_reads_the_same(
    honest: bytes, tmp_path: Path, their_read: Callable[[bytes], Any]
) -> None:
    ours = decode(honest)
    content, manifest, arrays = their_read(honest)
    assert content == str(ours.digest)
    assert manifest == ours.manifest.model_dump(mode="json")
    assert list(arrays) == list(ours.tensors)
    for name, array in arrays.items():
        assert array.tobytes() == bytes(ours.tensors[name].data)
        assert array.shape == ours.tensors[name].shape
        assert array.flags.aligned
    path = tmp_path / "artifact"
    path.write_bytes(honest)
    command = [sys.executable, "-I", "-W", "error", str(READER), str(path)]
    done = subprocess.run([*command, content], capture_output=True, text=True, check=True, encoding="utf-8")
    assert done.stdout.splitlines()[0].startswith(content)
    assert len(done.stdout.splitlines()) == 6
    refused = subprocess.run([*command, str(digest_json(1))], capture_output=True, text=True, check=False)
    assert refused.returncode != 0
    assert "expected" in refused.stderr


def test_the_independent_reader_is_independent() -> None:
    tree = ast.parse(READER.read_text(encoding="utf-8"))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    modules |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in modules} - set(sys.stdlib_module_names) == {"blake3", "numpy"}
    assert len(READER.read_text(encoding="utf-8").splitlines()) < 130


def test_the_independent_reader_refuses_every_flipped_byte(honest: bytes, their_read: Callable[[bytes], Any]) -> None:
    """With its errors being plain ones; the tensors' bytes by their digests alone, without the content digest."""
    damaged = bytearray(honest)
    for position in range(header_size(honest), len(honest)):
        damaged[position] ^= 0x40
        with pytest.raises(ValueError, match="tensor"):
            their_read(bytes(damaged))
        damaged[position] ^= 0x40


def test_the_specification_names_the_limits_that_are_enforced() -> None:
    text = (ROOT / "docs" / "format.md").read_text(encoding="utf-8")
    assert f"at most {MAX_TENSORS:,} tensors" in text
    assert f"at most {MAX_HEADER_BYTES >> 20} MiB" in text
    assert f"at most {MAX_BRACKETS:,} bytes" in text
    assert f"multiple of {ALIGNMENT}" in text
    sizes = {
        dtype: int(row.split("|")[1])
        for row in text.splitlines()
        if row.count("|") == 3 and row.split("|")[1].strip().isdigit()
        for dtype in row.split("|")[2].replace("`", "").split()
        if dtype in ITEM_SIZES
    }
    assert sizes == dict(ITEM_SIZES)
    for field in Manifest.model_fields:
        assert f"`{field}`" in text
