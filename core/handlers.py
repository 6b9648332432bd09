"""What each kind of job does; these run on the worker's thread and are the only callers of the model
besides those of books (core/books/desk.py).

Knows the use cases and how their results are told to whoever queued them; not the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from core.gate import Policy
from core.integrity import check_usable, verify_one, with_bytes
from core.jobs import Context, Handler
from core.loaded import Loaded
from core.requests import plan


class Handlers(Loaded):
    """One method a kind of job. Imports of what needs torch wait until a job needs them."""

    def _handlers(self) -> dict[str, Handler]:
        return {
            "solve": self._solve,
            "ask": self._ask,
            "compare": self._compare,
            "chat": self._chat,
            "audit": self._audit,
            "rebuild": self._rebuild,
            "certify": self._certify,
            "verify": self._verify_job,
        }

    def _solve(self, context: Context) -> Mapping[str, Any]:
        from core import solving

        payload = context.payload
        model = self.model(context)
        task = solving.fresh_task(
            model,
            payload["problem"],
            plan(self.settings, payload),
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
        check_usable(self.library, payload["digest"])
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
        from core.comparing import chat
        from core.opening import open_artifact
        from core.solve import Plan

        payload = context.payload
        model = self.model(context)
        row = self.library.artifact(payload["digest"])
        opened = open_artifact(self.library, model, row)
        check_usable(self.library, row.digest)  # the job may have waited, and the artifact been revoked
        plan = Plan(max_tokens=int(payload["max_tokens"]))
        return chat(model, opened, row, tuple(payload["messages"]), plan, context)

    def _audit(self, context: Context) -> Mapping[str, Any]:
        from core.asking import measured
        from core.opening import open_artifact
        from core.replay import audit, describe
        from core.resuming import Kept

        model = self.model(context)
        row = self.library.artifact(context.payload["digest"])
        opened = open_artifact(self.library, model, row)
        report = audit(
            model,
            opened,
            on_progress=_replaying(context),
            cancelled=context.cancelled,
            checkpoints=Kept(self.library, model, row.digest, opened.manifest),
        )
        words = describe(report.mismatches)
        detail = {"tensors": report.tensors, "differing": len(report.mismatches), "words": words}
        detail["resumed"] = report.resumed
        measured(self.library, model, row, "audit", report.finding, detail, context.owner)
        if report.finding == "differs":
            reason = f"the replay audit does not rebuild this state: {words}"
            self.library.set_artifact_state(row.digest, "quarantined", reason, context.owner)
        return {"artifact": row.digest, "finding": report.finding, **detail}

    def _rebuild(self, context: Context) -> Mapping[str, Any]:
        from core.rebuilding import rebuild_artifact

        row = rebuild_artifact(
            self.model(context),
            self.library,
            context.payload["digest"],
            by=context.owner,
            on_progress=_replaying(context),
            cancelled=context.cancelled,
        )
        return {"artifact": row.digest, "state": row.state, "bytes": row.stored_bytes}

    def _certify(self, context: Context) -> Mapping[str, Any]:
        from core.asking import measured
        from core.graft import replay
        from core.opening import open_artifact

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
        rows = [self.library.artifact(digest)] if digest else with_bytes(self.library)
        found = []
        for number, row in enumerate(rows):
            context.check()
            context.report(phase="reading", tokens=number, budget=len(rows))
            found.append(verify_one(self.library, row))
        return {"checked": len(found), "bad": [asdict(row) for row in found if not row.ok]}


def _replaying(context: Context) -> Callable[[int, int], None]:
    def progress(done: int, total: int) -> None:
        context.report(phase="replaying", tokens=done, budget=total)

    return progress
