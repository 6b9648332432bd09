"""A tiny random model with a byte tokenizer, as a folder that `core.model.load` opens like any other.

For measuring books at lengths that a real model takes hours for: its cache kinds (sliding and full attention), its
window and its rounding are real, what it says means nothing. One byte of text is one token.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from core.evaluate.tiny_models import tiny_model

SPECIAL = ("<pad>", "<bos>", "<eos>")
SLIDING_WINDOW = 512  # that of Gemma 3


def write_tiny_reader(folder: Path, *, window: int, architecture: str = "gemma3_text") -> Path:
    """Write the model and its tokenizer into `folder`; the same bytes every time. `window`: its positions."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import logging

    letters = [*SPECIAL, *sorted(pre_tokenizers.ByteLevel.alphabet())]
    inner = Tokenizer(models.BPE(vocab={letter: number for number, letter in enumerate(letters)}, merges=[]))
    # Word by word: the tokens are the same bytes, but the tokenizer keeps every piece that it has seen.
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2]
    )
    changes: dict[str, Any] = {"vocab_size": 264, "max_position_embeddings": window}
    if architecture.startswith("gemma"):
        changes["sliding_window"] = SLIDING_WINDOW
    folder.mkdir(parents=True, exist_ok=True)
    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        tiny_model(architecture, **changes).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
    finally:
        if shown:
            logging.enable_progress_bar()
    return folder
