"""Is what was asked for usable? Texts, figures and policies from people, checked before anything is queued.

Knows settings and limits, not what a job does. Raises `UsageError` that says what to change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from core.gate import Calibration, Policy
from core.settings import Settings
from library.errors import UsageError

if TYPE_CHECKING:
    from core.solve import Plan


def text_of(settings: Settings, text: str, what: str = "problem") -> str:
    """The text without blanks around it, if it is one that can be used; `what` it is, for the message."""
    text = text.strip()
    if not text:
        raise UsageError(f"the {what} is empty: write it out")
    if len(text) > settings.max_problem_chars:
        raise UsageError(
            f"the {what} has {len(text)} characters, the limit is {settings.max_problem_chars} "
            "(SCION_MAX_PROBLEM_CHARS)"
        )
    if "\x00" in text:
        raise UsageError(f"the {what} holds a NUL character: remove it")
    return text


def policy_of(settings: Settings, policy: Policy | str | None, calibrated: Callable[[], Calibration | None]) -> Policy:
    """The gate's policy by name, else the settings' own; `calibrated` is asked only where it matters."""
    try:
        chosen = Policy(policy or settings.gate)
    except ValueError as error:
        raise UsageError(f"unknown gate policy {policy!r}: one of {', '.join(Policy)}") from error
    calibration = calibrated() if chosen is Policy.CALIBRATED else None
    if chosen is Policy.CALIBRATED and (calibration is None or not calibration.usable):
        why = calibration.explain() if calibration else "no calibration file is set (SCION_CALIBRATION)"
        raise UsageError(f"the calibrated policy cannot be switched on: {why}")
    return chosen


def figures(
    settings: Settings,
    attempts: int | None,
    max_tokens: int | None,
    temperature: float | None,
    top_p: float | None,
    seed: int,
) -> dict[str, Any]:
    """A solve's figures within their limits, the settings' where none is given."""
    s = settings
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


def plan(settings: Settings, payload: Mapping[str, Any]) -> Plan:
    """How a queued solve is to be run."""
    from core.solve import Plan

    greedy = payload["temperature"] == 0
    return replace(
        Plan(max_tokens=int(payload["max_tokens"])),
        temperature=float(payload["temperature"]),
        top_p=float(payload["top_p"]),
        seed=int(payload["seed"]),
        attempts=1 if greedy else int(payload["attempts"]),
        batch=settings.batch,
    )
