"""The use cases behind the page and the command line: submit, ask, compare, decide, verify, audit.

Composes model, gate, queue and library; holds the one loaded model. Knows no page and no terminal.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from core.calibrations import read_calibration
from core.gate import Calibration, Judgement, Policy, judge
from core.jobs import Context, JobView, Worker
from core.settings import Settings
from library.errors import Conflict, CorruptError, NotFound, ScionError, UsageError
from library.store import Library
from library.tables import Artifact, Decision, PairLabel

if TYPE_CHECKING:  # torch is loaded when a job first needs it
    from core.asking import Offer
    from core.model import FrozenModel
    from core.solve import Plan


_FIRST = "[first approval]"  # how the first of two approvals stands among the decisions


@dataclass(frozen=True)
class Decided:
    """A decision and what followed from it: the published artifact, or a note why there is none yet."""

    decision: Decision
    artifact: Artifact | None
    note: str


@dataclass(frozen=True)
class VerifyRow:
    """One artifact's integrity: `finding` says what is wrong."""

    digest: str
    ok: bool
    finding: str


class Engine:
    """One process's way into a library. Safe to call from any thread; the model runs on the worker's alone."""

    def __init__(self, settings: Settings, library: Library) -> None:
        self.settings, self.library = settings, library
        self._model: FrozenModel | None = None
        self._model_lock = threading.Lock()
        self._publisher: threading.Timer | None = None
        self.worker = Worker(
            library,
            {
                "solve": self._solve,
                "ask": self._ask,
                "compare": self._compare,
                "chat": self._chat,
                "audit": self._audit,
                "certify": self._certify,
                "verify": self._verify_job,
                "ingest": self._ingest,
                "book": self._ask_book,
            },
        )

    # the model

    def model(self, context: Context | None = None) -> FrozenModel:
        """The loaded model, loading it first if need be (seconds)."""
        from core.model import load

        with self._model_lock:
            if self._model is None:
                say = (lambda text: context.report(phase="loading model", note=text)) if context else None
                self._model = load(self.settings, say=say)
            return self._model

    @property
    def loaded(self) -> FrozenModel | None:
        return self._model

    # queueing

    def submit(
        self,
        problem: str,
        *,
        by: str,
        reference: str | None = None,
        attempts: int | None = None,
        max_tokens: int | None = None,
        temperature: float | None = None,
        top_p: float | None = None,
        seed: int = 0,
        source: str = "",
    ) -> str:
        """Queue a solve; the job's id. Raises `UsageError` for a text or figure that cannot be used."""
        payload = {
            "problem": self._text(problem),
            "reference": (reference or "").strip() or None,
            "source": source,
            **self._figures(attempts, max_tokens, temperature, top_p, seed),
        }
        return self.worker.enqueue("solve", payload, by)

    def submit_ask(
        self,
        query: str,
        *,
        by: str,
        policy: Policy | str | None = None,
        fresh_max_tokens: int | None = None,
    ) -> str:
        """Queue an ask. `fresh_max_tokens` of 0: do not solve when nothing applies."""
        if fresh_max_tokens is not None and fresh_max_tokens < 0:
            raise UsageError("--fresh-max-tokens must not be negative")
        budget = self.settings.max_tokens if fresh_max_tokens is None else fresh_max_tokens
        payload = {"query": self._text(query), "policy": str(self._policy(policy)), "fresh_max_tokens": budget}
        return self.worker.enqueue("ask", payload, by)

    def submit_compare(
        self,
        digest: str,
        query: str,
        *,
        by: str,
        policy: Policy | str | None = None,
        max_tokens: int | None = None,
    ) -> str:
        """Queue the graft lab's three runs of `query` against one artifact."""
        row = self.library.artifact(digest)
        if row.state not in ("published", "held"):
            raise Conflict(f"artifact {row.digest[:19]}… is {row.state}: its state cannot be grafted")
        payload = {
            "digest": row.digest,
            "query": self._text(query),
            "policy": str(self._policy(policy)),
            "max_tokens": max_tokens or self.settings.max_tokens,
        }
        return self.worker.enqueue("compare", payload, by)

    def submit_chat(
        self, digest: str, message: str, *, by: str, history: Sequence[str] = (), max_tokens: int | None = None
    ) -> str:
        """Queue an answer to `message` that goes on from a grafted state; `history` alternates message and answer."""
        row = self.library.artifact(digest)
        payload = {
            "digest": row.digest,
            "messages": [*history, self._text(message)],
            "max_tokens": max_tokens or min(256, self.settings.max_tokens),
        }
        return self.worker.enqueue("chat", payload, by)

    def submit_audit(self, digest: str, *, by: str) -> str:
        """Queue a replay audit: rebuild the state from its tokens and compare."""
        return self.worker.enqueue("audit", {"digest": self.library.artifact(digest).digest}, by)

    def submit_certify(self, digest: str, *, by: str) -> str:
        """Queue a measurement of the certificate in this environment."""
        return self.worker.enqueue("certify", {"digest": self.library.artifact(digest).digest}, by)

    def submit_verify(self, digest: str | None, *, by: str) -> str:
        """Queue an integrity check of one artifact or of all."""
        chosen = None if digest is None else self.library.artifact(digest).digest
        return self.worker.enqueue("verify", {"digest": chosen}, by)

    def submit_ingest(self, source: str, book: str, *, by: str, segment_tokens: int | None = None) -> str:
        """Queue making a book of a file or folder, or bringing it up to date (core/books)."""
        if not book.strip():
            raise UsageError("a book needs a name")
        payload = {"source": source, "book": book.strip(), "segment_tokens": segment_tokens}
        return self.worker.enqueue("ingest", payload, by)

    def submit_book_ask(self, book: str, question: str, *, by: str, segments: int | None = None) -> str:
        """Queue a question to an accepted book, put to its `segments` likeliest segments."""
        payload = {"book": self.library.book(book).name, "question": self._text(question), "segments": segments}
        return self.worker.enqueue("book", payload, by)

    def cancel(self, job_id: str, *, by: str) -> bool:
        """Ask a job to stop within two decode steps; False if it is over or another process runs it."""
        del by  # who may cancel what is the caller's to check; the audit log has the job's own entries
        return self.worker.cancel(job_id)

    def job(self, job_id: str) -> JobView:
        return self.worker.view(job_id)

    def jobs(self, owner: str | None = None, limit: int = 20) -> list[JobView]:
        return self.worker.views(owner, limit)

    # at once, without the model

    def offer(self, problem: str, policy: Policy | str | None = None) -> Offer:
        """What the library could do for a text. Without a loaded model, over the artifacts of every model."""
        from core.asking import offer

        identity = self._model.identity.digest if self._model else None
        return offer(self.library, problem, self._policy(policy), identity, self.calibration())

    def judge(self, stored: str, query: str, policy: Policy | str | None = None) -> Judgement:
        return judge(stored, query, self._policy(policy), calibration=self.calibration())

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

    def verify(self, digest: str | None = None) -> tuple[VerifyRow, ...]:
        """Read and check the bytes of one artifact or of all; a damaged one is quarantined."""
        rows = [self.library.artifact(digest)] if digest else self._with_bytes()
        return tuple(self._verify_one(row) for row in rows)

    def label(
        self, stored: str, query: str, label: str, *, note: str = "", by: str, artifact: str | None = None
    ) -> str:
        """Keep a reviewer's judgement on a pair of texts; its id."""
        if label not in ("safe", "unsafe", "unsure"):
            raise UsageError(f"unknown label {label[:20]!r}; one of safe, unsafe, unsure")
        return self.library.add_label(
            PairLabel(
                id="",
                stored=stored,
                query=query,
                label=label,
                note=note,
                source="graft-lab",
                artifact=artifact,
                created="",
                created_by=by,
            )
        )

    def calibration(self) -> Calibration | None:
        """The calibrated policy's threshold from the settings' file, or None."""
        return read_calibration(self.settings)

    def close(self) -> None:
        """Stop the worker; the library stays open."""
        if self._publisher is not None:
            self._publisher.cancel()
        self.worker.close()

    # handlers: these run on the worker's thread

    def _solve(self, context: Context) -> Mapping[str, Any]:
        from core import solving

        payload = context.payload
        model = self.model(context)
        task = solving.fresh_task(
            model,
            payload["problem"],
            self._plan(payload),
            reference=payload["reference"],
            origin=payload["source"] or "solve",
        )
        return solving.run(model, self.library, task, context, job_id=context.job_id).to_json()

    def _ask(self, context: Context) -> Mapping[str, Any]:
        from core.asking import Request, ask
        from core.solve import Plan

        payload = context.payload
        model = self.model(context)
        budget = int(payload["fresh_max_tokens"])
        fresh = Plan(max_tokens=budget, batch=self.settings.batch) if budget else None
        request = Request(
            payload["query"],
            Policy(payload["policy"]),
            fresh,
            context.owner,
            context.job_id,
            calibration=self.calibration(),
        )
        return ask(model, self.library, request, context).to_json()

    def _compare(self, context: Context) -> Mapping[str, Any]:
        from core.comparing import compare
        from core.solve import Plan

        payload = context.payload
        model = self.model(context)
        return compare(
            model,
            self.library,
            self.library.artifact(payload["digest"]),
            payload["query"],
            Plan(max_tokens=int(payload["max_tokens"])),
            context,
            policy=Policy(payload["policy"]),
            by=context.owner,
            calibration=self.calibration(),
        )

    def _chat(self, context: Context) -> Mapping[str, Any]:
        from core.asking import open_artifact
        from core.comparing import chat
        from core.solve import Plan

        payload = context.payload
        model = self.model(context)
        row = self.library.artifact(payload["digest"])
        opened = open_artifact(self.library, model, row)
        plan = Plan(max_tokens=int(payload["max_tokens"]))
        return chat(model, opened, row, tuple(payload["messages"]), plan, context)

    def _audit(self, context: Context) -> Mapping[str, Any]:
        from core.asking import measured, open_artifact
        from core.replay import audit, describe

        model = self.model(context)
        row = self.library.artifact(context.payload["digest"])
        opened = open_artifact(self.library, model, row)

        def progress(done: int, total: int) -> None:
            context.report(phase="replaying", tokens=done, budget=total)

        report = audit(model, opened, on_progress=progress, cancelled=context.cancelled)
        words = describe(report.mismatches)
        detail = {"tensors": report.tensors, "differing": len(report.mismatches), "words": words}
        measured(self.library, model, row, "audit", report.finding, detail, context.owner)
        if report.finding == "differs":
            reason = f"the replay audit does not rebuild this state: {words}"
            self.library.set_artifact_state(row.digest, "quarantined", reason, context.owner)
        return {"artifact": row.digest, "finding": report.finding, **detail}

    def _certify(self, context: Context) -> Mapping[str, Any]:
        from core.asking import measured, open_artifact
        from core.graft import replay

        model = self.model(context)
        row = self.library.artifact(context.payload["digest"])
        opened = open_artifact(self.library, model, row)
        found = replay(model, opened)
        same = opened.manifest.environment.digest == model.environment.digest
        detail = {"answer": found.continuation.answer, "tokens": len(found.continuation.ids), "deposit_here": same}
        measured(self.library, model, row, "certificate", str(found.measured), detail, context.owner)
        return {"artifact": row.digest, "finding": str(found.measured), **detail}

    def _verify_job(self, context: Context) -> Mapping[str, Any]:
        digest = context.payload["digest"]
        rows = [self.library.artifact(digest)] if digest else self._with_bytes()
        found = []
        for number, row in enumerate(rows):
            context.check()
            context.report(phase="reading", tokens=number, budget=len(rows))
            found.append(self._verify_one(row))
        return {"checked": len(found), "bad": [asdict(row) for row in found if not row.ok]}

    def _ingest(self, context: Context) -> Mapping[str, Any]:
        from pathlib import Path

        from core.books.ingest import ingest

        wanted = context.payload
        model = self.model(context)
        source = Path(wanted["source"]).expanduser()
        return ingest(model, self.library, source, wanted["book"], context, wanted["segment_tokens"]).to_json()

    def _ask_book(self, context: Context) -> Mapping[str, Any]:
        from core.books.ask import SEGMENTS, Question, ask_book

        wanted = context.payload
        model = self.model(context)
        question = Question(wanted["book"], wanted["question"], context.owner, segments=wanted["segments"] or SEGMENTS)
        return ask_book(model, self.library, question, context).to_json()

    # small things

    def _with_bytes(self) -> list[Artifact]:
        from library.artifacts import as_row

        states = ("published", "held", "imported")
        records = self.library.index.artifacts(states=states, limit=1_000_000)
        return [as_row(record) for record in records]

    def _verify_one(self, row: Artifact) -> VerifyRow:
        from library.artifact import decode
        from library.digest import Digest

        if row.state in ("evicted", "quarantined", "revoked"):
            return VerifyRow(row.digest, row.state == "evicted", f"{row.state}: {row.state_reason}")
        try:
            decode(self.library.read_blob(row.digest), Digest.parse(row.digest))
        except (CorruptError, NotFound) as fault:
            return VerifyRow(row.digest, False, f"{type(fault).__name__}: {fault}")
        return VerifyRow(row.digest, True, "")

    def _check_approvable(self, staged: str | None, attempt_id: str, review: str) -> None:
        from core.deposit import unreplayable

        if staged is None:
            if review in ("pending", "flagged"):
                raise Conflict(f"attempt {attempt_id} has no state to deposit; solve the problem again")
            return  # the store says what state it is in
        if (why := unreplayable(self.library, staged)) is not None:
            raise Conflict(f"attempt {attempt_id} cannot be replayed: {why}; reject it and solve again")

    def _awaits_second(self, attempt_id: str, reviewer: str) -> bool:
        if not self.settings.second_approver:
            return False
        earlier = {
            d.reviewer for d in self.library.decisions(attempt_id) if d.action == "note" and d.reason.startswith(_FIRST)
        }
        return not (earlier - {reviewer})

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

    def _text(self, text: str) -> str:
        text = text.strip()
        if not text:
            raise UsageError("the problem is empty: write it out")
        if len(text) > self.settings.max_problem_chars:
            raise UsageError(
                f"the problem has {len(text)} characters, the limit is {self.settings.max_problem_chars} "
                "(SCION_MAX_PROBLEM_CHARS)"
            )
        if "\x00" in text:
            raise UsageError("the problem holds a NUL character: remove it")
        return text

    def _policy(self, policy: Policy | str | None) -> Policy:
        try:
            chosen = Policy(policy or self.settings.gate)
        except ValueError as error:
            raise UsageError(f"unknown gate policy {policy!r}: one of {', '.join(Policy)}") from error
        calibration = self.calibration() if chosen is Policy.CALIBRATED else None
        if chosen is Policy.CALIBRATED and (calibration is None or not calibration.usable):
            why = calibration.explain() if calibration else "no calibration file is set (SCION_CALIBRATION)"
            raise UsageError(f"the calibrated policy cannot be switched on: {why}")
        return chosen

    def _figures(
        self,
        attempts: int | None,
        max_tokens: int | None,
        temperature: float | None,
        top_p: float | None,
        seed: int,
    ) -> dict[str, Any]:
        s = self.settings
        chosen = {
            "attempts": s.attempts if attempts is None else attempts,
            "max_tokens": s.max_tokens if max_tokens is None else max_tokens,
            "temperature": s.temperature if temperature is None else temperature,
            "top_p": s.top_p if top_p is None else top_p,
            "seed": seed,
        }
        limits = {"attempts": (1, 256), "max_tokens": (1, 1_000_000), "temperature": (0, 5), "top_p": (1e-6, 1)}
        for name, (low, high) in limits.items():
            if not low <= chosen[name] <= high:
                raise UsageError(f"{name.replace('_', '-')} is {chosen[name]}: it must be between {low} and {high}")
        return chosen

    def _plan(self, payload: Mapping[str, Any]) -> Plan:
        from core.solve import Plan

        greedy = payload["temperature"] == 0
        return replace(
            Plan(max_tokens=int(payload["max_tokens"])),
            temperature=float(payload["temperature"]),
            top_p=float(payload["top_p"]),
            seed=int(payload["seed"]),
            attempts=1 if greedy else int(payload["attempts"]),
            batch=self.settings.batch,
        )
