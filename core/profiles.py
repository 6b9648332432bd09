"""How to talk to a model: prompt, next turn, thinking markers, answer cue, stop texts.

A profile is chosen by the model's name, with a default for chat models and one for base models without a chat
template. It knows text and tokenizers, not weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

_MARK = "\u2063scion\u2063"  # stands for the text while a template is rendered; no tokenizer or template touches it

# Doubled braces: what `str.format` makes of them is one pair.
BOXED = "Please reason step by step, and put your final answer within \\boxed{{}}."


@dataclass(frozen=True)
class Profile:
    """`instruction` and `base` are format texts that hold `{problem}`.

    `cues` are tried in order until one replays the answer. A cue ends inside a brace that the model
    closes: decoding stops there. `shots` are worked examples, given as earlier turns: weak models need them.
    """

    name: str
    instruction: str = "{problem}\n\n" + BOXED
    system: str | None = None
    shots: tuple[tuple[str, str], ...] = ()
    base: str = "Problem: {problem}\nSolution:"
    stops: tuple[str, ...] = ()
    thinking: tuple[str, str] | None = ("<think>", "</think>")
    cues: tuple[str, ...] = (
        "\n\nThe final answer is \\boxed{",
        "\n\n**Final answer:** \\boxed{",
        " So the answer is \\boxed{",
    )
    stop_tokens: tuple[str, ...] = field(
        default=("<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<turn|>", "<|endoftext|>", "<|end|>", "<|return|>")
    )


CHAT = Profile("chat")
BASE = Profile("base", instruction="{problem}", stops=("\n\nProblem:", "\nProblem:"), thinking=None)
SMOLLM2 = Profile(
    "smollm2",
    instruction="{problem}",
    system="You solve arithmetic word problems.",
    shots=(
        (
            "A baker had 12 rolls. She sold 5 of them. How many rolls are left?",
            "She had 12 and sold 5, so we subtract: 12 - 5 = 7. The final answer is \\boxed{7}.",
        ),
        (
            "There are 8 rows with 6 chairs each. How many chairs are there?",
            "There are 8 rows of 6, so we multiply: 8 * 6 = 48. The final answer is \\boxed{48}.",
        ),
        (
            "Ana has 9 stamps and finds 14 more. How many stamps does she have now?",
            "She has 9 and gets 14 more, so we add: 9 + 14 = 23. The final answer is \\boxed{23}.",
        ),
        (
            "20 apples are shared equally by 4 children. How many apples does each child get?",
            "20 apples are shared by 4, so we divide: 20 / 4 = 5. The final answer is \\boxed{5}.",
        ),
    ),
)
PROFILES = {profile.name: profile for profile in (CHAT, BASE, SMOLLM2)}


def choose(name: str, tokenizer: Any) -> Profile:
    """The profile for the model called `name`; base when the tokenizer has no chat template."""
    if not getattr(tokenizer, "chat_template", None):
        return BASE
    return SMOLLM2 if "smollm2-135m" in name.lower() else CHAT


def prompt_ids(profile: Profile, tokenizer: Any, problem: str) -> list[int]:
    """Token ids of the prompt that asks for `problem`; control tokens spelt out in it stay plain text."""
    if not getattr(tokenizer, "chat_template", None):
        ids = encode_plain(tokenizer, profile.base.format(problem=problem))
        return _with_bos(tokenizer, ids)
    messages = [{"role": "system", "content": profile.system}] if profile.system else []
    for question, answer in profile.shots:
        messages.append({"role": "user", "content": profile.instruction.format(problem=question)})
        messages.append({"role": "assistant", "content": answer})
    messages.append({"role": "user", "content": _MARK})
    rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return _fill(tokenizer, rendered, profile.instruction.format(problem=problem))


def next_turn_ids(profile: Profile, tokenizer: Any, text: str) -> list[int]:
    """Token ids that end the assistant's turn, put `text` as the user's next one and open the answer.

    They come after a graft point, so they start where the assistant's text ended, without its end-of-turn.
    """
    if not getattr(tokenizer, "chat_template", None):
        return encode_plain(tokenizer, "\n\n" + profile.base.format(problem=text))
    answered = _MARK + "a"
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": answered},
        {"role": "user", "content": _MARK},
    ]
    rendered = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    return _fill(tokenizer, rendered.split(answered, 1)[1], text)


def cue_ids(tokenizer: Any, cue: str) -> list[int]:
    """Token ids of an answer cue, without special tokens."""
    return encode_plain(tokenizer, cue)


def encode_plain(tokenizer: Any, text: str) -> list[int]:
    """Token ids of `text` in which spelt-out control tokens are plain text."""
    return list(tokenizer.encode(text, add_special_tokens=False, split_special_tokens=_spells_control(tokenizer, text)))


def stop_ids(profile: Profile, tokenizer: Any, configured: Sequence[int]) -> frozenset[int]:
    """Ids that end a generation: the model's own and the profile's end-of-turn tokens that the tokenizer knows."""
    ids = set(configured)
    if tokenizer.eos_token_id is not None:
        ids.add(tokenizer.eos_token_id)
    vocabulary = tokenizer.get_vocab()
    ids.update(vocabulary[token] for token in profile.stop_tokens if token in vocabulary)
    return frozenset(ids)


def _fill(tokenizer: Any, rendered: str, text: str) -> list[int]:
    before, after = rendered.split(_MARK, 1)
    if not _spells_control(tokenizer, text):
        return list(tokenizer.encode(before + text + after, add_special_tokens=False))
    # Encoded in three parts, so that a control token typed by a user cannot end the user's turn.
    ids = list(tokenizer.encode(before, add_special_tokens=False))
    ids += tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
    return ids + list(tokenizer.encode(after, add_special_tokens=False))


def _spells_control(tokenizer: Any, text: str) -> bool:
    added = getattr(tokenizer, "added_tokens_decoder", {})
    return any(str(token.content) in text for token in added.values() if getattr(token, "special", False))


def _with_bos(tokenizer: Any, ids: list[int]) -> list[int]:
    bos = tokenizer.bos_token_id
    wants = tokenizer.encode("a", add_special_tokens=True)[:1] == [bos] if bos is not None else False
    return [bos, *ids] if wants else ids
