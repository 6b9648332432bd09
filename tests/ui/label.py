"""A label as a row, for tests."""

from __future__ import annotations

from library.tables import PairLabel


def label_of(stored: str, query: str, label: str) -> PairLabel:
    return PairLabel(id="l", stored=stored, query=query, label=label, source="graft-lab", created="", created_by="ada")
