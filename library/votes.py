"""Two reviewers' words on one attempt: whose stands, whether they disagree, and what the next word would settle.

Holds where publication needs a second person. Pure: replays decisions in order, knows no database.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Protocol


class DecisionLike(Protocol):
    @property
    def reviewer(self) -> str: ...
    @property
    def action(self) -> str: ...


@dataclass(frozen=True)
class Standing:
    """Each reviewer's word that stands: `approve` or `reject`. `settled`: these words decided the attempt."""

    words: Mapping[str, str] = field(default_factory=dict)
    settled: bool = False

    @property
    def disputed(self) -> bool:
        """One approves, another rejects, and no third person has decided yet."""
        return not self.settled and len(set(self.words.values())) > 1

    def word(self, reviewer: str) -> str | None:
        return self.words.get(reviewer)

    def after(self, reviewer: str, action: str) -> Standing:
        """What stands after one more decision.

        An approval needs another person's; a rejection settles unless somebody approved. In a dispute the word of a
        third person decides. `undo` takes back one's own word, or all of them once they are settled; `flag` voids
        them: the attempt is to be looked at anew.
        """
        if action == "flag" or (action == "undo" and self.settled):
            return Standing()
        words = dict(self.words)
        if action == "undo":
            words.pop(reviewer, None)
            return Standing(words)
        if action not in ("approve", "reject"):
            return self
        if self.disputed and reviewer not in words:
            return Standing({**words, reviewer: action}, True)
        words[reviewer] = action
        same = set(words.values()) == {action}
        return Standing(words, same and (action == "reject" or len(words) > 1))


def standing(decisions: Iterable[DecisionLike]) -> Standing:
    """The decisions on one attempt, oldest first, replayed."""
    found = Standing()
    for decision in decisions:
        found = found.after(decision.reviewer, decision.action)
    return found
