"""From a person's word to a published artifact: second approval, undo window, publication. Needs no model.

Knows decisions and staged states; not how an attempt came about nor how it is shown.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from core.loaded import Loaded
from core.settings import Settings
from library.errors import Conflict, CorruptError, ScionError, UsageError
from library.store import Library
from library.tables import Artifact, Decision

_FIRST = "[first approval]"  # how the first of two approvals stands among the decisions
_BACK = "[first approval taken back]"
_VOIDING = ("undo", "reject", "flag")  # what makes an earlier first approval count no more


@dataclass(frozen=True)
class Decided:
    """A decision and what followed from it: the published artifact, or a note why there is none yet."""

    decision: Decision
    artifact: Artifact | None
    note: str


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
        if action == "note" and reason.startswith((_FIRST, _BACK)):
            raise UsageError("a note cannot stand for an approval: approve, or undo")
        attempt = self.library.attempt(attempt_id)
        if action == "undo" and attempt.review == "pending" and reviewer in self._first_approvers(attempt_id):
            reason = f"{_BACK} {reason}".strip()
            taken = self.library.decide(attempt_id, version=version, reviewer=reviewer, action="note", reason=reason)
            return Decided(taken, None, "the first approval is taken back")
        if action == "approve":
            self._check_approvable(attempt.staged, attempt_id, attempt.review)
        awaited = action == "approve" and self._awaits_second(attempt_id, reviewer)
        decision = self.library.decide(
            attempt_id,
            version=version,
            reviewer=reviewer,
            action="note" if awaited else action,
            reason=f"{_FIRST} {reason}".strip() if awaited else reason,
        )
        if awaited:
            return Decided(decision, None, "recorded; a second reviewer must approve before it is published")
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
            if review in ("pending", "flagged"):
                raise Conflict(f"attempt {attempt_id} has no state to deposit; solve the problem again")
            return  # the store says what state it is in
        if (why := unreplayable(self.library, staged)) is not None:
            raise Conflict(f"attempt {attempt_id} cannot be replayed: {why}; reject it and solve again")

    def _awaits_second(self, attempt_id: str, reviewer: str) -> bool:
        return self.settings.second_approver and not (self._first_approvers(attempt_id) - {reviewer})

    def _first_approvers(self, attempt_id: str) -> set[str]:
        """Whose first approval stands: given, and neither taken back nor followed by a word against it."""
        standing: set[str] = set()
        for decision in self.library.decisions(attempt_id):
            if decision.action in _VOIDING:
                standing.clear()
            elif decision.action == "note" and decision.reason.startswith(_FIRST):
                standing.add(decision.reviewer)
            elif decision.action == "note" and decision.reason.startswith(_BACK):
                standing.discard(decision.reviewer)
        return standing

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
