"""Made-up prose of any length with facts hidden in it: the same for the same seed, on every machine.

The filler speaks of vaults, codes and bridges too, and now and then of a needle's name without its fact, so that no
word alone leads to a needle. Knows no model; tokens are counted by the caller's function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random


def _split(words: str) -> tuple[str, ...]:
    return tuple(words.split())


_PEOPLE = _split("Anna Boris Clara David Elena Farid Greta Henrik Irina Jonas Karla Leon Mira Nils Olga Pavel")
_NAMES = _split("""
    Halvorsen Okafor Lindqvist Moreau Tanaka Petrov Alvarez Novak Fischer Costa Adeyemi Brandt Castell Dvorak Egede
    Falk Grimaldi Hoxha Ivanov Jansen Keller Lazar Mbeki Nagy Orsini Pereira Quint Rossi Sorensen Takeda Ulrich Varga
""")
_FOUND = _split("""
    Amundsen Bergman Calloway Delacroix Eriksen Fontaine Gallagher Hoffmann Iversen Jimenez Kowalski Lombardi
""")
_WORDS = _split("marigold thimble cinnamon lantern walnut meridian obsidian saffron juniper cobalt bramble turmeric")
_PLACES = (
    "the harbour", "the old mill", "the northern station", "the market square", "the lighthouse", "the quarry",
    "the botanical garden", "the town archive", "the glass factory", "the railway yard", "the chapel", "the orchard",
)  # fmt: skip
_THINGS = (
    "a crate of oranges", "two barometers", "a bundle of letters", "the broken clock", "a sack of barley",
    "the survey maps", "a copper kettle", "a roll of canvas", "three brass keys", "the tide tables", "a box of slides",
)  # fmt: skip


@dataclass(frozen=True)
class Needle:
    """A fact on `name`: its sentence, the question for it, what an answer must hold, its depth in the text, 0 to 1."""

    name: str
    sentence: str
    question: str
    value: str
    depth: float


def needles(count: int, seed: int = 0) -> list[Needle]:
    """Numbers and names in turn, at even depths; no two about the same name (of 32)."""
    random = Random(f"needles {seed}")
    names = random.sample(_NAMES, min(count, len(_NAMES)))
    made = []
    for number in range(count):
        name = names[number % len(names)] + ("" if number < len(names) else f" {1 + number // len(names)}")
        digits = str(random.randint(10000, 99999))
        who, word, year = random.choice(_FOUND), random.choice(_WORDS), str(random.randint(1500, 1899))
        asked, told, value = (
            ("What is the access code of the {} vault?", "The access code of the {} vault is {}.", digits),
            ("What is the captain of the ship {} called?", "The captain of the ship {} is called {}.", who),
            ("In which year was the {} bridge built?", "The {} bridge was built in the year {}.", year),
            ("What is the password of the {} observatory?", "The password of the {} observatory is {}.", word),
        )[number % 4]
        sentence, question = told.format(name, value), asked.format(name)
        made.append(Needle(name, sentence, question, value, (number + 0.5) / count))
    return made


def write_haystack(path: Path, tokens: int, hidden: list[Needle], count: Callable[[str], int], seed: int = 0) -> int:
    """Write a text of at least `tokens` tokens with the needles at their depths; its tokens. Overwrites."""
    waiting = sorted(hidden, key=lambda needle: needle.depth)
    total = 0
    with path.open("w", encoding="utf-8", newline="\n") as stream:
        for paragraph in _paragraphs(hidden, seed):
            while waiting and total >= waiting[0].depth * tokens:
                paragraph = _with(paragraph, waiting.pop(0).sentence)
            stream.write(paragraph + "\n\n")
            total += count(paragraph + "\n\n")
            if total >= tokens:
                return total
    return total


def _with(paragraph: str, sentence: str) -> str:
    """The sentence as the second one of the paragraph."""
    first, rest = paragraph.split(". ", 1)
    return f"{first}. {sentence} {rest}"


def _paragraphs(hidden: list[Needle], seed: int) -> Iterator[str]:
    random = Random(f"filler {seed}")
    number = 0
    while True:
        number += 1
        said = [_sentence(random) for _ in range(random.randint(4, 7))]
        if hidden and number % 40 == 0:  # a needle's name without its fact
            said.append(f"Somebody at {random.choice(_PLACES)} had heard of {random.choice(hidden).name} again.")
        yield " ".join(said)


def _sentence(random: Random) -> str:
    one, other = random.sample(_PEOPLE, 2)
    here, there = random.sample(_PLACES, 2)
    thing = random.choice(_THINGS)
    return random.choice(
        (
            f"{one} walked from {here} to {there} before the rain began.",
            f"In the afternoon {one} and {other} carried {thing} to {here}.",
            f"Nobody at {here} remembered why {one} had asked about {thing}.",
            f"{one} wrote to {other} that {thing} would arrive at {here} within {random.randint(2, 30)} days.",
            f"The old vault behind {here} had a code that only {one} knew.",
            f"A bridge near {here} was closed for {random.randint(2, 9)} years, said {one}.",
            f"{one} sold {thing} to {other} for {random.randint(11, 990)} crowns at {here}.",
            f"The captain of the ferry waited at {here} until {one} had brought {thing}.",
        )
    )
