"""Solve a problem once and deposit what is right: approved by a rule, for an experiment's own library only.

The rule is not a person: the decision says so, and no user's library ever sees it.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass

from core import solving
from core.deposit import sealed, unreplayable
from core.jobs import Context
from core.model import FrozenModel
from core.solve import Plan
from library.store import Library
from library.tables import Artifact

RULE = "rule:experiment"  # the reviewer's name of every decision made here
REASON = "approved by rule for an experiment, not by a person: the answer equals the reference"
ORIGIN = "experiment"


@dataclass(frozen=True)
class Deposited:
    """What a solve left. `artifact` is None with the reason in `why`; `solved` has the cost either way."""

    artifact: Artifact | None
    why: str
    solved: solving.Solved


def context() -> Context:
    """A job's context for runs outside of the queue."""
    return Context("", {}, RULE, threading.Event())


def solve_once(model: FrozenModel, library: Library, problem: str, reference: str, plan: Plan) -> Deposited:
    """Up to `plan.attempts` attempts, ended by the first that is right and replays; that one is published.

    Writes to `library`. An answer that is right but that the answer cue does not read back is not deposited: no
    reviewer could approve it either.
    """
    task = solving.fresh_task(model, problem, plan, reference=reference, origin=ORIGIN)
    solved = solving.run(model, library, task, context(), job_id=None)
    if solved.status != "solved" or solved.chosen is None:
        return Deposited(None, "no attempt was right", solved)
    attempt = library.attempt(solved.chosen)
    if attempt.staged is None:
        return Deposited(None, "no state was kept", solved)
    if unreplayable(library, attempt.staged) is not None:
        library.decide(attempt.id, version=attempt.version, reviewer=RULE, action="reject", reason="does not replay")
        library.discard_staged(attempt.staged, actor=RULE)
        return Deposited(None, "right, but the answer cue does not read the answer back", solved)
    library.decide(attempt.id, version=attempt.version, reviewer=RULE, action="approve", reason=REASON)
    encoded, row = sealed(library, library.attempt(attempt.id))
    return Deposited(library.publish(attempt.id, encoded, row), "", solved)
