"""The use cases behind the page and the command line: submit, ask, compare, decide, verify, audit, and (`books`) books.

Composes model, gate, queue and library; holds the one loaded model. Knows no page and no terminal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from core.books.desk import Desk
from core.campaigns import Campaigns
from core.deciding import Decided, Deciding
from core.gate import CANONICAL_VERSION, Judgement, Policy, canonical_key, judge
from core.handlers import Handlers
from core.integrity import VerifyRow, check_usable, verify_one, with_bytes
from core.jobs import JobView, Worker
from core.requests import figures, policy_of, text_of
from core.settings import Settings
from library.errors import UsageError
from library.rekeying import rekey
from library.store import Library
from library.tables import PairLabel

if TYPE_CHECKING:  # torch is loaded when a job first needs it
    from core.asking import Offer

__all__ = ["Decided", "Engine", "VerifyRow"]

REKEYED_AT_START = 1000  # records of an older canonical version: a second or two; `library rekey` does all


class Engine(Handlers, Deciding):
    """One process's way into a library. Safe to call from any thread; the model runs on the worker's alone."""

    def __init__(self, settings: Settings, library: Library) -> None:
        super().__init__(settings, library)
        rekey(library, canonical_key, CANONICAL_VERSION, limit=REKEYED_AT_START)
        self.books = Desk(self)
        self.worker = Worker(library, {**self._handlers(), **self.books.handlers})

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
            "problem": text_of(self.settings, problem),
            "reference": (reference or "").strip() or None,
            "source": source,
            **figures(self.settings, attempts, max_tokens, temperature, top_p, seed),
        }
        return self.worker.enqueue("solve", payload, by)

    def submit_many(
        self, problems: Sequence[tuple[str, str | None]], *, by: str, name: str, source: str = "batch", **given: Any
    ) -> str:
        """Queue a campaign of solves, (problem, reference) each, all or none; its id. `given` as for `submit`."""
        if not problems:
            raise UsageError("the list holds no problem")
        get = given.get
        heat, top_p = get("temperature"), get("top_p")
        chosen = figures(self.settings, get("attempts"), get("max_tokens"), heat, top_p, get("seed", 0))
        payloads = [
            {
                "problem": text_of(self.settings, text),
                "reference": (reference or "").strip() or None,
                "source": source,
                **chosen,
            }
            for text, reference in problems
        ]
        return self.campaigns.start("solve", payloads, name=name, by=by)

    @property
    def campaigns(self) -> Campaigns:
        """Lists of problems that were queued together."""
        return Campaigns(self.worker, self.library)

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
        payload = {
            "query": text_of(self.settings, query),
            "policy": str(policy_of(self.settings, policy, self.calibration)),
            "fresh_max_tokens": budget,
        }
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
        row = check_usable(self.library, digest)
        payload = {
            "digest": row.digest,
            "query": text_of(self.settings, query),
            "policy": str(policy_of(self.settings, policy, self.calibration)),
            "max_tokens": max_tokens or self.settings.max_tokens,
        }
        return self.worker.enqueue("compare", payload, by)

    def submit_chat(
        self, digest: str, message: str, *, by: str, history: Sequence[str] = (), max_tokens: int | None = None
    ) -> str:
        """Queue an answer to `message` that goes on from a grafted state; `history` alternates message and answer."""
        row = check_usable(self.library, digest)
        payload = {
            "digest": row.digest,
            "messages": [*history, text_of(self.settings, message)],
            "max_tokens": max_tokens or min(256, self.settings.max_tokens),
        }
        return self.worker.enqueue("chat", payload, by)

    def submit_audit(self, digest: str, *, by: str) -> str:
        """Queue a replay audit: rebuild the state from its tokens and compare. Goes on after an interruption."""
        return self.worker.enqueue("audit", {"digest": self.library.artifact(digest).digest}, by)

    def submit_rebuild(self, digest: str, *, by: str) -> str:
        """Queue giving an evicted artifact its bytes again, by replay."""
        return self.worker.enqueue("rebuild", {"digest": self.library.artifact(digest).digest}, by)

    def submit_certify(self, digest: str, *, by: str) -> str:
        """Queue a measurement of the certificate in this environment."""
        return self.worker.enqueue("certify", {"digest": self.library.artifact(digest).digest}, by)

    def submit_verify(self, digest: str | None, *, by: str) -> str:
        """Queue an integrity check of one artifact or of all."""
        chosen = None if digest is None else self.library.artifact(digest).digest
        return self.worker.enqueue("verify", {"digest": chosen}, by)

    def cancel(self, job_id: str, *, by: str) -> bool:
        """Ask a job to stop within two decode steps; False if it is over or another process runs it."""
        del by  # who may cancel what is the caller's to check; the audit log has the job's own entries
        return self.worker.cancel(job_id)

    def job(self, job_id: str) -> JobView:
        return self.worker.view(job_id)

    def jobs(self, owner: str | None = None, limit: int = 20, *, single: bool = False) -> list[JobView]:
        """Newest first; `single`: without those of campaigns."""
        return self.worker.views(owner, limit, single=single)

    # at once, without the model

    def offer(self, problem: str, policy: Policy | str | None = None) -> Offer:
        """What the library could do for a text. Without a loaded model, over the artifacts of every model."""
        from core.asking import offer

        identity = self._model.identity.digest if self._model else None
        return offer(
            self.library, problem, policy_of(self.settings, policy, self.calibration), identity, self.calibration()
        )

    def judge(self, stored: str, query: str, policy: Policy | str | None = None) -> Judgement:
        return judge(stored, query, policy_of(self.settings, policy, self.calibration), calibration=self.calibration())

    def verify(self, digest: str | None = None) -> tuple[VerifyRow, ...]:
        """Read and check the bytes of one artifact or of all; a damaged one is quarantined."""
        rows = [self.library.artifact(digest)] if digest else with_bytes(self.library)
        return tuple(verify_one(self.library, row) for row in rows)

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

    def close(self) -> None:
        """Stop the worker; the library stays open."""
        self.stop_publishing()
        self.worker.close()
