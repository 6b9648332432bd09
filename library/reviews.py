"""Attempts, what checks found about them, and what people decided. Knows the rules of review, not how to solve."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

from sqlmodel import Session, col, func, select

from library.audit import now
from library.blobs import staged_path
from library.campaigns import Campaigns
from library.database import Change, new_id
from library.digest import Digest
from library.errors import Conflict, StaleVersion, UsageError
from library.problems import found
from library.tables import Artifact, Attempt, Decision, Evidence, Lease, Problem
from library.votes import Standing, standing

OPEN_FOR_REVIEW = ("pending", "flagged")
ACTIONS = ("approve", "reject", "flag", "skip", "undo", "note")


class Encodable(Protocol):
    """Bytes with their digest, as `library.artifact.Encoded` has them; `parts` may be walked more than once."""

    @property
    def digest(self) -> Digest: ...

    @property
    def size(self) -> int: ...

    def parts(self) -> Any: ...


@dataclass(frozen=True)
class ReviewCounts:
    """How many attempts stand where, each counted once; `leased` are open ones that a reviewer has before them now.

    `seconds` have one approval and need another person's, `disputed` have an approval and a rejection.
    """

    pending: int
    flagged: int
    approved: int
    rejected: int
    leased: int
    seconds: int = 0
    disputed: int = 0

    @property
    def open(self) -> int:
        """All that wait for somebody."""
        return self.pending + self.flagged + self.seconds + self.disputed


class Reviews(Campaigns):
    # staging

    def stage(self, encoded: Encodable) -> str:
        """Keeps a state on disk, durably, until its attempt is decided. Returns its digest as text."""
        with self._locked(exclusive=False):
            self.blobs.stage(encoded.digest, encoded.parts())
        return str(encoded.digest)

    def read_staged(self, digest: str) -> memoryview:
        """The staged bytes, verified in memory. `MissingBlob`, `DigestMismatch`."""
        return self.blobs.get_staged(Digest.parse(digest))

    def discard_staged(self, digest: str, *, actor: str | None = None) -> None:
        """Lets go of a staged state: attempts first forget it, then the file goes. Nothing if it is not there."""
        parsed = Digest.parse(digest)
        with self._locked(exclusive=False):
            with self._write(actor) as change:
                for attempt in change.session.exec(select(Attempt).where(Attempt.staged == digest)):
                    attempt.staged = None
                    change.session.add(attempt)
                    change.log("attempt.discard_state", attempt.id, staged=digest)
            if self.fs.stat(staged_path(parsed)) is not None:
                self.blobs.unstage(parsed)

    # attempts and evidence

    def add_attempt(self, attempt: Attempt, evidence: Sequence[Evidence] = ()) -> str:
        """Stores an attempt with its evidence in one commit. An empty `id` or `created` is filled in."""
        attempt.id = attempt.id or new_id("a")
        attempt.created = attempt.created or now()
        if attempt.staged is not None:
            Digest.parse(attempt.staged)
        with self._write(attempt.created_by) as change:
            change.session.add(attempt)
            change.session.flush()
            self._add_evidence(change, attempt.id, evidence)
            detail = {"problem": attempt.problem_id, "status": attempt.status, "staged": attempt.staged}
            change.log("attempt.add", attempt.id, **detail)
        return attempt.id

    def add_evidence(self, attempt_id: str, evidence: Sequence[Evidence], *, actor: str | None = None) -> None:
        """Adds findings to an attempt. Its version grows: a reviewer must have seen them."""
        with self._write(actor) as change:
            attempt = found(change.session.get(Attempt, attempt_id), "attempt", attempt_id)
            self._add_evidence(change, attempt_id, evidence)
            attempt.version += 1
            change.session.add(attempt)
            change.log("evidence.add", attempt_id, checks=[item.check_name for item in evidence])

    def _add_evidence(self, change: Change, attempt_id: str, evidence: Sequence[Evidence]) -> None:
        for item in evidence:
            item.attempt_id = attempt_id
            item.created = item.created or now()
            change.session.add(item)

    def attempt(self, identifier: str) -> Attempt:
        with self._read() as session:
            return found(session.get(Attempt, identifier), "attempt", identifier)

    def attempts(
        self,
        review: str | Sequence[str] | None = None,
        limit: int = 50,
        offset: int = 0,
        text: str | None = None,
        problem_id: str | None = None,
        only: Collection[str] | None = None,
        without: Collection[str] = (),
    ) -> list[Attempt]:
        """Newest first; `text` is looked for in the problem and the answer, `only` and `without` are ids."""
        query = select(Attempt).order_by(col(Attempt.created).desc(), col(Attempt.id)).limit(limit).offset(offset)
        if review is not None:
            query = query.where(col(Attempt.review).in_([review] if isinstance(review, str) else review))
        if only is not None:
            query = query.where(col(Attempt.id).in_(only))
        if without:
            query = query.where(col(Attempt.id).not_in(without))
        if problem_id is not None:
            query = query.where(Attempt.problem_id == problem_id)
        if text:
            query = query.join(Problem).where(
                col(Problem.text).contains(text, autoescape=True) | col(Attempt.answer).contains(text, autoescape=True)
            )
        with self._read() as session:
            return list(session.exec(query))

    def unpublished(self) -> list[Attempt]:
        """Approved attempts whose artifact was not published yet: a deposit that stopped half-way."""
        return self.still_staged("approved")

    def still_staged(self, review: str) -> list[Attempt]:
        """Attempts in this state of review whose staged state is still kept, however many attempts there are."""
        query = select(Attempt).where(Attempt.review == review, col(Attempt.staged).is_not(None))
        with self._read() as session:
            return list(session.exec(query))

    def evidence(self, attempt_id: str) -> list[Evidence]:
        with self._read() as session:
            query = select(Evidence).where(Evidence.attempt_id == attempt_id).order_by(col(Evidence.id))
            return list(session.exec(query))

    def findings(self, check: str, attempt_ids: Sequence[str]) -> dict[str, str]:
        """The latest outcome of one check, for those of the attempts that it looked at."""
        query = select(Evidence).where(Evidence.check_name == check, col(Evidence.attempt_id).in_(attempt_ids))
        with self._read() as session:
            return {row.attempt_id: row.outcome for row in session.exec(query.order_by(col(Evidence.id)))}

    def decisions(self, attempt_id: str) -> list[Decision]:
        """Oldest first."""
        with self._read() as session:
            query = select(Decision).where(Decision.attempt_id == attempt_id)
            return list(session.exec(query.order_by(col(Decision.created), col(Decision.id))))

    def review_counts(self) -> ReviewCounts:
        with self._read() as session:
            rows = dict(session.exec(select(Attempt.review, func.count()).group_by(Attempt.review)).all())
            leased = session.exec(
                select(func.count())
                .select_from(Lease)
                .join(Attempt)
                .where(Lease.expires > now(), col(Attempt.review).in_(OPEN_FOR_REVIEW))
            ).one()
        wanted = ("pending", "flagged", "approved", "rejected")
        numbers = {name: rows.get(name, 0) for name in wanted}
        seconds = disputed = 0
        for review, seen in self.open_votes().values():
            numbers[review] -= 1
            disputed += seen.disputed
            seconds += not seen.disputed
        return ReviewCounts(**numbers, leased=leased, seconds=seconds, disputed=disputed)

    def standing(self, attempt_id: str) -> Standing:
        """The reviewers' words on one attempt that stand."""
        return standing(self.decisions(attempt_id))

    def open_votes(self) -> dict[str, tuple[str, Standing]]:
        """The open attempts on which somebody's word stands already: their state of review, and the words."""
        rows = self.index.query(
            """SELECT attempt.id, attempt.review, decision.reviewer, decision.action FROM attempt
               JOIN decision ON decision.attempt_id = attempt.id WHERE attempt.review IN ('pending', 'flagged')
               AND decision.action IN ('approve', 'reject', 'undo', 'flag') ORDER BY decision.created, decision.id"""
        )
        seen: dict[str, tuple[str, Standing]] = {}
        for attempt, review, reviewer, action in rows:
            before = seen[attempt][1] if attempt in seen else Standing()
            seen[attempt] = (review, before.after(reviewer, action))
        return {attempt: item for attempt, item in seen.items() if item[1].words}

    # decisions

    def decide(
        self, attempt_id: str, *, version: int, reviewer: str, action: str, reason: str = "", settles: bool = True
    ) -> Decision:
        """Records a person's word on the attempt as they saw it (`version`), in one commit with its audit entry.

        An approval or rejection that does not settle leaves the attempt open for another person.

        `StaleVersion` if the attempt changed since; `Conflict` if it is not open for this action; `UsageError` for
        an unknown action, a missing reviewer, or a rejection without a reason. An approval does not publish yet.
        """
        if action not in ACTIONS:
            raise UsageError(f"unknown action {action[:40]!r}; one of {', '.join(ACTIONS)}")
        if not reviewer.strip():
            raise UsageError("a decision needs its reviewer's name")
        if action == "reject" and not reason.strip():
            raise UsageError("a rejection needs a reason")
        with self._write(reviewer) as change:
            attempt = found(change.session.get(Attempt, attempt_id), "attempt", attempt_id)
            if attempt.version != version:
                raise StaleVersion(
                    f"attempt {attempt_id} changed (version {attempt.version}, you saw {version}); look at it again"
                )
            attempt.review = _after(change.session, attempt, action, reviewer, settles)
            decision = Decision(
                id=new_id("d"),
                attempt_id=attempt_id,
                attempt_version=version,
                reviewer=reviewer,
                action=action,
                reason=reason,
                created=now(),
            )
            attempt.version += 1
            change.session.add(attempt)
            change.session.add(decision)
            change.log(f"review.{action}", attempt_id, decision=decision.id, version=version, reason=reason)
        return decision

    # leases

    def lease(self, attempt_id: str, reviewer: str, seconds: float) -> Lease:
        """Puts an attempt before one reviewer for a while; `Conflict` if another has it. Renews one's own."""
        expires = (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        with self._write(reviewer) as change:
            found(change.session.get(Attempt, attempt_id), "attempt", attempt_id)
            row = change.session.get(Lease, attempt_id)
            if row is not None and row.reviewer != reviewer and row.expires > now():
                raise Conflict(f"attempt {attempt_id} is before {row.reviewer} until {row.expires}")
            row = row or Lease(attempt_id=attempt_id, reviewer=reviewer, expires=expires)
            row.reviewer, row.expires = reviewer, expires
            change.session.add(row)
        return row

    def release(self, attempt_id: str, reviewer: str) -> None:
        """Gives a lease back; nothing if it is not this reviewer's."""
        with self._write(reviewer) as change:
            row = change.session.get(Lease, attempt_id)
            if row is not None and row.reviewer == reviewer:
                change.session.delete(row)

    def leases(self) -> list[Lease]:
        """The leases that have not expired."""
        with self._read() as session:
            return list(session.exec(select(Lease).where(Lease.expires > now())))

    def leased_by_others(self, reviewer: str) -> int:
        """How many open attempts are before other reviewers: an empty queue is not the same as a finished one."""
        with self._read() as session:
            query = select(func.count()).select_from(Lease).join(Attempt)
            query = query.where(Lease.expires > now(), Lease.reviewer != reviewer)
            return session.exec(query.where(col(Attempt.review).in_(OPEN_FOR_REVIEW))).one()


def _after(session: Session, attempt: Attempt, action: str, reviewer: str, settles: bool) -> str:
    """The review state after `action`, or `Conflict` if the attempt is not open for it."""
    if action == "note":
        return attempt.review
    if action == "undo":
        return _undone(session, attempt, reviewer)
    if attempt.review not in OPEN_FOR_REVIEW:
        raise Conflict(f"attempt {attempt.id} is not open for review: it is {attempt.review}")
    if not settles:
        return attempt.review
    return {"approve": "approved", "reject": "rejected", "flag": "flagged", "skip": attempt.review}[action]


def _undone(session: Session, attempt: Attempt, reviewer: str) -> str:
    if attempt.review in OPEN_FOR_REVIEW:
        query = select(Decision).where(Decision.attempt_id == attempt.id)
        made = list(session.exec(query.order_by(col(Decision.created), col(Decision.id))))
        if standing(made).word(reviewer) is not None:
            return attempt.review  # an open attempt stays open without this person's word
    if attempt.review == "flagged":
        return "pending"
    if attempt.review not in ("approved", "rejected"):
        raise Conflict(f"attempt {attempt.id} has no decision to undo: it is {attempt.review}")
    published = session.exec(select(Artifact.digest).where(Artifact.attempt_id == attempt.id)).first()
    if published is not None:
        raise Conflict(f"attempt {attempt.id} is published as {published}; revoke the artifact instead")
    if attempt.staged is None:
        raise Conflict(f"the state of attempt {attempt.id} was discarded; solve the problem again")
    return "pending"
