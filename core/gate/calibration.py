"""A threshold from labelled pairs, with a bound that holds, or a refusal that says how many labels are missing."""

from __future__ import annotations
