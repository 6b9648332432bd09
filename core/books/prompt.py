"""How a segment stands before the model, and how a question comes after it.

A chat model gets the text inside a user's turn that stays open: the question ends the turn and opens the answer. A
base model gets plain text. Knows tokenizers and templates; no weights, no library.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from core.profiles import encode_plain

SYSTEM = "You answer questions about a text. If the text does not say it, you answer: not in the text."
_OPENING = "Text:\n"
_QUESTION = "\n\nQuestion: {question}"
_BASE_ANSWER = "\nAnswer: According to the text,"
_PROBE = "What is the text about?"  # the certificate's question: any will do, it only has to be the same one
_MARK = "\u2063scion\u2063"
_LEAD = re.compile(r"(?i)\A(?:the answer is:?|answer:)\s+(?=\S)")  # words that no text need hold
_UNKNOWN = re.compile(
    r"\bnot (?:in|found in|mentioned in|stated in|given in|contained in) the (?:text|passage|excerpt)\b"
    r"|\b(?:text|passage) does(?: not|n't|n’t) (?:say|mention|state|contain|give|provide|specify)\b"
    r"|\b(?:I|we) (?:do not|don't|don’t|cannot|can't) (?:know|tell|find|answer)\b"
    r"|\bno (?:information|mention|answer)\b|^\s*(?:unknown|none|not (?:mentioned|stated|specified|given))\b",
    re.IGNORECASE,
)


def segment_ids(tokenizer: Any, text: str) -> list[int]:
    """Token ids of a segment's prompt: all that its state holds. Control tokens spelt out in it are plain text."""
    before, _ = _around(tokenizer)
    body = encode_plain(tokenizer, _OPENING + text)
    if before is None:
        return [*_beginning(tokenizer), *body]
    return [*tokenizer.encode(before, add_special_tokens=False), *body]


def question_ids(tokenizer: Any, question: str) -> list[int]:
    """Token ids that follow a segment's: the question and the opening of the answer."""
    _, after = _around(tokenizer)
    asked = _QUESTION.format(question=question)
    if after is None:
        return encode_plain(tokenizer, asked + _BASE_ANSWER)
    return [*encode_plain(tokenizer, asked), *tokenizer.encode(after, add_special_tokens=False)]


def probe_ids(tokenizer: Any) -> list[int]:
    """The question that every segment's certificate asks."""
    return question_ids(tokenizer, _PROBE)


def framing_tokens(tokenizer: Any) -> int:
    """Positions that a segment's state holds besides its text."""
    return len(segment_ids(tokenizer, ""))


def says_unknown(answer: str) -> bool:
    """Does an answer say that the text does not hold it?"""
    return not answer.strip() or _UNKNOWN.search(answer) is not None


def tidy(tokenizer: Any, ids: Sequence[int], *, base: bool) -> str:
    """The answer's text without "The answer is", up to where it says a line again. A base model goes on with questions
    of its own: only its first line counts."""
    text = str(tokenizer.decode(list(ids), skip_special_tokens=True)).strip()
    text = text.split("\n", 1)[0].strip() if base else _once(text)
    return _LEAD.sub("", text)


def _once(text: str) -> str:
    """The lines before the first one that was there already, or a last one that breaks off in saying it again."""
    kept: list[str] = []
    lines = [line.strip() for line in text.splitlines()]
    for number, line in enumerate(lines, start=1):
        if line and (line in kept or (number == len(lines) and any(said.startswith(line) for said in kept))):
            break
        kept.append(line)
    return "\n".join(kept).strip()


def _around(tokenizer: Any) -> tuple[str | None, str | None]:
    """What a chat template puts before and after a user's text; (None, None) for a base model."""
    if not getattr(tokenizer, "chat_template", None):
        return None, None
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": _MARK}]
    try:
        rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    except Exception:  # some templates refuse a system turn, each with an error of its own
        messages = [{"role": "user", "content": f"{SYSTEM}\n\n{_MARK}"}]
        rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    before, after = rendered.split(_MARK, 1)
    return before, after


def _beginning(tokenizer: Any) -> list[int]:
    bos = tokenizer.bos_token_id
    starts = bos is not None and tokenizer.encode("a", add_special_tokens=True)[:1] == [bos]
    return [bos] if starts else []
