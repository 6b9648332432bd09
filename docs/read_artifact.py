"""An independent reader of Scion artifacts: the standard library, blake3 and numpy, and nothing of Scion.

    python docs/read_artifact.py FILE [blake3:<64 hex>]

It follows docs/format.md section by section and refuses (`ValueError`) whatever the format does not allow. BF16 and
the F8 types have no numpy dtype: their bits are returned as uint16 and uint8.
"""

from __future__ import annotations

import json
import re
import sys
from math import prod
from typing import Any

import numpy as np
from blake3 import blake3

SCHEMA_VERSION = 1
DTYPES = {"BOOL": "?", "U8": "u1", "I8": "i1", "F8_E4M3": "u1", "F8_E5M2": "u1", "F8_E8M0": "u1", "U16": "<u2"}
DTYPES |= {"I16": "<i2", "F16": "<f2", "BF16": "<u2", "U32": "<u4", "I32": "<i4", "F32": "<f4"}
DTYPES |= {"U64": "<u8", "I64": "<i8", "F64": "<f8"}
FIELDS = set(
    re.findall(
        r"\w+",
        "answer attempt_ids certificate cost created decisions environment evidence graft_point identity kind layers "
        "parent problem prompt_ids reference sampling schedule schema_version solution source tensors thinking",
    )
)


def need(condition: bool, what: str) -> None:
    if not condition:
        raise ValueError(what)


def digest(data: bytes | memoryview) -> str:
    return "blake3:" + blake3(data).hexdigest()


def dump(value: Any) -> bytes:
    """Canonical JSON (docs/format.md, section 2)."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode("utf-8")


def load(raw: bytes) -> Any:
    """The value of canonical JSON; a duplicate key or any other spelling does not re-encode to the same bytes."""

    def refuse(text: str) -> None:
        raise ValueError(f"not an integer: {text}")

    value = json.loads(raw.decode("utf-8"), parse_float=refuse, parse_constant=refuse)
    need(dump(value) == raw, "JSON is not canonical")
    return value


def read_header(file: bytes) -> tuple[dict[str, Any], dict[str, Any], int]:
    """Sections 1, 3 and 4: the tensor table in the order of the file, the manifest, where the tensors start."""
    length = int.from_bytes(file[:8], "little")
    need(len(file) >= 8 and length <= 16 << 20 and 8 + length <= len(file), "no header of a possible length")
    need((8 + length) % 64 == 0, "the tensors are not aligned to 64 bytes")
    raw = file[8 : 8 + length]
    text = raw.rstrip(b" ")
    need(length - len(text) < 64, "too much padding")
    header = load(text)
    need(isinstance(header, dict) and set(header.get("__metadata__", {})) == {"scion"}, "no manifest")
    manifest = load(header.pop("__metadata__")["scion"].encode("utf-8"))
    end = 0
    sizes = {name: np.dtype(DTYPES[item["dtype"]]).itemsize for name, item in header.items()}
    table = dict(sorted(header.items(), key=lambda pair: (-sizes[pair[0]], pair[0])))
    for name, item in table.items():
        need(re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.\-]{0,127}", name, re.ASCII) is not None, f"name {name!r}")
        need(set(item) == {"dtype", "shape", "data_offsets"} and len(item["shape"]) <= 8, f"fields of {name}")
        need(all(type(number) is int and number >= 0 for number in item["shape"] + item["data_offsets"]), name)
        begin, end = end, end + prod(item["shape"]) * sizes[name]
        need(item["data_offsets"] == [begin, end], f"{name} does not follow the tensor before it")
    need(8 + length + end == len(file), "bytes are missing or too many")
    return table, manifest, 8 + length


def check_manifest(manifest: dict[str, Any], names: set[str]) -> None:
    """Section 5, without the types of the fields."""
    version = manifest["schema_version"]
    need(version == SCHEMA_VERSION, f"schema version {version}; this reader knows {SCHEMA_VERSION}")
    need(set(manifest) == FIELDS, "unknown or missing fields")
    point = manifest["graft_point"]
    need(len(manifest["prompt_ids"]) + len(manifest["attempt_ids"]) == point, "token counts")
    need(sum(run["length"] * run["count"] for run in manifest["schedule"]) == point, "schedule")
    roles = [name for layer in manifest["layers"] for name in layer["tensors"].values()]
    need(len(roles) == len(set(roles)) and set(roles) == names == set(manifest["tensors"]), "layers and tensors")
    for fingerprint in (manifest["identity"], manifest["environment"]):
        need(fingerprint["digest"] == digest(dump(fingerprint["fields"])), "fingerprint")


def read(file: bytes, expected: str | None = None) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """(content digest, manifest, arrays by name). `file` is the whole file, read once; the arrays are views of it."""
    content = digest(file)
    need(expected is None or content == expected, f"content is {content}, expected {expected}")
    table, manifest, start = read_header(file)
    check_manifest(manifest, set(table))
    arrays = {}
    for name, item in table.items():
        data = memoryview(file)[start + item["data_offsets"][0] : start + item["data_offsets"][1]]
        need(digest(data) == manifest["tensors"][name], f"tensor {name} is not what the manifest says")
        arrays[name] = np.frombuffer(data, DTYPES[item["dtype"]]).reshape(item["shape"])
        need(item["dtype"] != "BOOL" or max(data, default=0) <= 1, f"truth values of {name}")
    return content, manifest, arrays


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as stream:
        content, manifest, arrays = read(stream.read(), *sys.argv[2:3])
    print(content, manifest["kind"], manifest["graft_point"], "tokens", repr(manifest["answer"]), sep="  ")
    for name, array in arrays.items():
        print(f"{name}  {array.dtype}  {list(array.shape)}")
