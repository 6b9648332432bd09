"""Commands that run the model: solve, ask; and one that does not: gate."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ui.terminal.common import actor, finish, session, short


def solve(
    context: typer.Context,
    problem: Annotated[str, typer.Argument(help="the problem's text")],
    answer: Annotated[str | None, typer.Option(help="reference answer that attempts are checked against")] = None,
    attempts: Annotated[int | None, typer.Option(help="attempts at most")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="token budget of one attempt")] = None,
    temperature: Annotated[float | None, typer.Option(help="0: greedy")] = None,
    top_p: Annotated[float | None, typer.Option(help="nucleus sampling mass")] = None,
    seed: Annotated[int, typer.Option(help="seed of the attempts' random streams")] = 0,
) -> None:
    """Solve a problem and put the best attempt up for review. Exit code 1 if it was not solved."""
    state = session(context)
    with state.engine(create=True) as engine:
        job = engine.submit(
            problem,
            by=actor(),
            reference=answer,
            attempts=attempts,
            max_tokens=max_tokens,
            temperature=temperature,
            top_p=top_p,
            seed=seed,
        )
        result = dict(state.follow(engine, job).result)
        chosen = result.get("chosen")
        evidence = engine.library.evidence(chosen) if chosen else []
    shown = {
        "attempt_id": chosen or next(iter(result.get("attempts", ())), None),
        "answer": result.get("answer"),
        "evidence": [{"check": e.check_name, "outcome": e.outcome, "summary": e.summary} for e in evidence],
        "decode_tokens": result.get("decode_tokens", 0),
        "tokens_per_second": result.get("tokens_per_second", 0.0),
        "status": result.get("status", "cancelled"),
        "attempts": len(result.get("attempts", ())),
        "for_review": chosen is not None,
        "prefill_tokens": result.get("prefill_tokens", 0),
        "seconds": result.get("seconds", 0.0),
        "joules": result.get("joules"),
        "flops": result.get("flops", 0),
        "job_id": job,
        "text": result.get("text", ""),
    }
    state.show(shown, lambda: _solved(shown))
    finish(0 if shown["status"] == "solved" else 1)


def _solved(shown: dict[str, Any]) -> str:
    lines = [shown["text"].strip(), "", f"{shown['status']}: {shown['answer']}"]
    for item in shown["evidence"]:
        lines.append(f"  {item['outcome']:<14} {item['check']:<12} {item['summary']}")
    cost = f"{shown['decode_tokens']} tokens in {shown['attempts']} attempts, {shown['tokens_per_second']:.1f} tokens/s"
    lines.append(cost)
    if shown["for_review"]:
        lines.append(f"review it: python app.py review show {shown['attempt_id']}")
    return "\n".join(lines)


def ask(
    context: typer.Context,
    problem: Annotated[str, typer.Argument(help="the query's text")],
    gate: Annotated[str | None, typer.Option(help="strict, edits, calibrated or off (unsafe)")] = None,
    fresh_max_tokens: Annotated[int | None, typer.Option(help="budget if nothing applies; 0: do not solve")] = None,
) -> None:
    """Answer from the library where the gate allows it, else solve fresh. Exit code 1 if there is no answer."""
    state = session(context)
    with state.engine(create=True) as engine:
        job = engine.submit_ask(problem, by=actor(), policy=gate, fresh_max_tokens=fresh_max_tokens)
        result = dict(state.follow(engine, job).result)
    state.show(result, lambda: _asked(result))
    finish(0 if result.get("answer") is not None else 1)


def _asked(result: dict[str, Any]) -> str:
    lines = [f"{result['verdict']}: {result['answer']}"]
    if result["policy"] == "off":
        lines.append("  UNSAFE: no gate was asked")
    lines += [f"  {reason['code']}: {reason['text']}" for reason in result["reasons"]]
    lines += [f"  ! {warning}" for warning in result["warnings"]]
    cost = f"{result['decode_tokens']} tokens decoded, {result['prefill_tokens']} prefilled, {result['seconds']:.2f} s"
    lines.append(cost)
    if result["exactness"]:
        lines.append(f"{result['exactness']}, {result['tokens_saved']} tokens saved, artifact {result['artifact']}")
    if result["attempt_id"]:
        lines.append(f"attempt {result['attempt_id']}: {short(result['text'], 200)}")
    return "\n".join(lines)


def gate(
    context: typer.Context,
    stored: Annotated[str, typer.Argument(help="the stored problem's text")],
    query: Annotated[str, typer.Argument(help="the query's text")],
    policy: Annotated[str, typer.Option(help="strict, edits, calibrated or off")] = "strict",
) -> None:
    """The gate's verdict on one pair of texts. Exit code 0 for GRAFT, 1 otherwise."""
    from core.gate import Policy, Verdict, judge
    from library.errors import UsageError

    state = session(context)
    try:
        chosen = Policy(policy)
    except ValueError as error:
        raise UsageError(f"unknown policy {policy!r}: one of {', '.join(Policy)}") from error
    calibration = None
    if chosen is Policy.CALIBRATED:
        from core.calibrations import read_calibration

        calibration = read_calibration(state.settings())
    judgement = judge(stored, query, chosen, calibration=calibration)
    words = [str(judgement.verdict), *(f"  {r.code}: {r.text}" for r in judgement.reasons)]
    for edit in judgement.edits:
        mark = "explained" if edit.explained else "NOT EXPLAINED"
        words.append(f"  [{edit.kind}] {edit.stored!r} -> {edit.query!r}: {edit.reason} ({mark})")
    state.show(judgement, "\n".join(words))
    finish(0 if judgement.verdict is Verdict.GRAFT else 1)
