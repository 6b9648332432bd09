"""Remembering what was read of a text, within a bound on the texts, not on their number. Knows no gate rule.

What is kept of a text of 20,000 characters takes megabytes; a bound on entries alone would bound nothing.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import update_wrapper
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Memo(Generic[Value]):
    """`function` of a text, with its latest results kept while their texts add up to at most `characters`.

    Safe for several threads; two that ask for the same new text may both compute it. What raises is not kept.
    """

    def __init__(self, function: Callable[[str], Value], characters: int) -> None:
        self._function, self.characters = function, characters
        self._kept: OrderedDict[str, Value] = OrderedDict()
        self._lock = threading.Lock()
        self.held = 0
        update_wrapper(self, function)

    def __call__(self, text: str) -> Value:
        with self._lock:
            if text in self._kept:
                self._kept.move_to_end(text)
                return self._kept[text]
        value = self._function(text)
        with self._lock:
            if text not in self._kept and len(text) <= self.characters:
                self._kept[text] = value
                self.held += len(text)
            while self.held > self.characters:
                self.held -= len(self._kept.popitem(last=False)[0])
        return value


def memo(characters: int) -> Callable[[Callable[[str], Value]], Memo[Value]]:
    """The decorator of `Memo`."""
    return lambda function: Memo(function, characters)
