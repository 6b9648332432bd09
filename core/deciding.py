"""From a person's word to a published artifact: second approval, undo window, publication. Needs no model.

Knows decisions and staged states; not how an attempt came about nor how it is shown.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.loaded import Loaded
from core.settings import Settings
from library.errors import Conflict, CorruptError, ScionError
from library.reviews import OPEN_FOR_REVIEW
from library.store import Library
from library.tables import Artifact, Decision


@dataclass(frozen=True)
class Decided:
    """A decision and what followed from it: the published artifact, or a note why there is none yet.

    `settled` is False where another person's word is needed before the attempt is approved or rejected.
    """

    decision: Decision
    artifact: Artifact | None
    note: str
    settled: bool = True


class Deciding(Loaded):
    """Decisions and what they lead to. Safe to call from any thread."""

    def __init__(self, settings: Settings, library: Library) -> None:
        super().__init__(settings, library)
        self._publisher: threading.Timer | None = None

    def decide(
        self,
        attempt_id: str,
        *,
        version: int,
        action: str,
        reviewer: str,
        reason: str = "",
        defer: bool = False,
    ) -> Decided:
        """Record a person's word. An approval publishes the artifact, after the undo window if `defer`.

        Raises `StaleVersion`, `Conflict`, `UsageError`, `NotFound`; `StorageFull` leaves the approval recorded and
        the deposit to be finished by `publish_due`.
        """
        attempt = self.library.attempt(attempt_id)
        if action == "approve":
            self._check_approvable(attempt.staged, attempt_id, attempt.review)
        settles, note = self._settles(attempt_id, attempt.review, reviewer, action)
        decision = self.library.decide(
            attempt_id, version=version, reviewer=reviewer, action=action, reason=reason, settles=settles
        )
        if not settles or action == "undo":
            return Decided(decision, None, note, settled=settles)
        if action == "reject" and attempt.staged is not None and not defer:
            self.library.discard_staged(attempt.staged, actor=reviewer)
        if action == "reject" and defer:
            self._publish_later()
        if action != "approve":
            return Decided(decision, None, "")
        if defer and self.settings.undo_seconds:
            self._publish_later()
            return Decided(decision, None, f"published in {self.settings.undo_seconds} s unless undone")
        artifact = self.publish(attempt_id)
        return Decided(decision, artifact, "published")

    def publish(self, attempt_id: str) -> Artifact:
        """Deposit an approved attempt's staged state."""
        from core.deposit import sealed

        encoded, row = sealed(self.library, self.library.attempt(attempt_id))
        return self.library.publish(attempt_id, encoded, row)

    def publish_due(self, *, everything: bool = False) -> list[Artifact]:
        """Publish the approved attempts whose undo window has passed, and discard rejected ones' states."""
        edge = datetime.now(UTC) - timedelta(seconds=0 if everything else self.settings.undo_seconds)
        published = []
        for attempt in self.library.unpublished():
            last = self.library.decisions(attempt.id)[-1]
            if datetime.fromisoformat(last.created) <= edge:
                try:
                    published.append(self.publish(attempt.id))
                except CorruptError as fault:  # one damaged state holds up neither the others nor a server's start
                    print(f"attempt {attempt.id} cannot be published, solve it again: {fault}", flush=True)
        for attempt in self.library.still_staged("rejected"):
            last = self.library.decisions(attempt.id)[-1]
            if attempt.staged is not None and datetime.fromisoformat(last.created) <= edge:
                self.library.discard_staged(attempt.staged)
        return published

    def stop_publishing(self) -> None:
        """Publish nothing more by itself; what is due is published at the next start."""
        if self._publisher is not None:
            self._publisher.cancel()

    def _check_approvable(self, staged: str | None, attempt_id: str, review: str) -> None:
        from core.deposit import unreplayable

        if staged is None:
            if review in OPEN_FOR_REVIEW:
                raise Conflict(f"attempt {attempt_id} has no state to deposit; solve the problem again")
            return  # the store says what state it is in
        if (why := unreplayable(self.library, staged)) is not None:
            raise Conflict(f"attempt {attempt_id} cannot be replayed: {why}; reject it and solve again")

    def _settles(self, attempt_id: str, review: str, reviewer: str, action: str) -> tuple[bool, str]:
        """Whether a word decides the attempt, and what to tell the person. Conflict for a second word in a dispute."""
        before = self.library.standing(attempt_id)
        if action == "undo" and review in OPEN_FOR_REVIEW and before.word(reviewer) is not None:
            return True, f"your word ({before.word(reviewer)}) is taken back"
        if not self.settings.second_approver or action not in ("approve", "reject") or review not in OPEN_FOR_REVIEW:
            return True, ""
        if before.disputed and before.word(reviewer) == action:
            raise Conflict("reviewers disagree on this attempt: a third person decides, or you undo your word")
        after = before.after(reviewer, action)
        if after.settled:
            return True, ""
        if after.disputed:
            return False, "recorded; another reviewer disagrees, a third person decides"
        return False, "recorded; a second reviewer must approve before it is published"

    def _publish_later(self) -> None:
        if self._publisher is not None:
            self._publisher.cancel()
        self._publisher = threading.Timer(self.settings.undo_seconds + 0.5, self._publish_quietly)
        self._publisher.daemon = True
        self._publisher.start()

    def _publish_quietly(self) -> None:
        try:
            self.publish_due()
            if self.library.unpublished():
                self._publish_later()
        except ScionError as fault:  # the approval is recorded; the next start or approval tries again
            print(f"publication waits: {fault}", flush=True)
