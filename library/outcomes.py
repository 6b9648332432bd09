"""What asks led to, what reviewers said about pairs, what was measured. Rows that only grow; knows no gate."""

from __future__ import annotations

from sqlmodel import col, select

from library.audit import now
from library.checkpoints import Checkpoints
from library.database import new_id
from library.problems import found
from library.room import KEPT_MANIFESTS
from library.tables import Artifact, Measurement, Outcome, PairLabel


class Outcomes(Checkpoints):
    def record_outcome(self, outcome: Outcome) -> str:
        """Stores what one ask led to; a graft counts as a use of its artifact. Fills an empty id and time."""
        outcome.id = outcome.id or new_id("o")
        outcome.created = outcome.created or now()
        with self._write(outcome.created_by) as change:
            if outcome.artifact is not None and outcome.verdict in ("GRAFT", "TRANSFER"):
                artifact = found(change.session.get(Artifact, outcome.artifact), "artifact", outcome.artifact)
                artifact.uses += outcome.verdict == "GRAFT"
                artifact.last_used = outcome.created
                change.session.add(artifact)
            change.session.add(outcome)
        return outcome.id

    def outcomes(self, since: str | None = None, artifact: str | None = None, limit: int = 100) -> list[Outcome]:
        """Newest first."""
        query = select(Outcome).order_by(col(Outcome.created).desc(), col(Outcome.id)).limit(limit)
        if since is not None:
            query = query.where(Outcome.created >= since)
        if artifact is not None:
            query = query.where(Outcome.artifact == artifact)
        with self._read() as session:
            return list(session.exec(query))

    def add_label(self, label: PairLabel) -> str:
        """A judgement on (stored problem, query). Fills an empty id and time."""
        label.id = label.id or new_id("l")
        label.created = label.created or now()
        with self._write(label.created_by) as change:
            change.session.add(label)
            change.log("label.add", label.id, label=label.label, source=label.source)
        return label.id

    def labels(self, limit: int = 100_000) -> list[PairLabel]:
        """Oldest first."""
        with self._read() as session:
            query = select(PairLabel).order_by(col(PairLabel.created), col(PairLabel.id))
            return list(session.exec(query.limit(limit)))

    def add_measurement(self, measurement: Measurement, *, actor: str | None = None) -> str:
        """A certificate measured in some environment, or an audit's finding. Fills an empty id and time."""
        measurement.id = measurement.id or new_id("m")
        measurement.created = measurement.created or now()
        with self._write(actor) as change:
            change.session.add(measurement)
            detail = {"kind": measurement.kind, "finding": measurement.finding}
            change.log("measurement.add", measurement.artifact, measurement=measurement.id, **detail)
        return measurement.id

    def measurements(self, artifact: str | None = None, limit: int = 1000) -> list[Measurement]:
        """Newest first. Manifests that are kept for a rebuild are not among them (`kept_manifest`)."""
        query = select(Measurement).where(col(Measurement.kind).not_in(KEPT_MANIFESTS))
        query = query.order_by(col(Measurement.created).desc(), col(Measurement.id)).limit(limit)
        if artifact is not None:
            query = query.where(Measurement.artifact == artifact)
        with self._read() as session:
            return list(session.exec(query))
