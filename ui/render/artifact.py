"""One artifact in full, and the jobs that check it. Takes rows and a manifest, asks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ui.render import jobs, parts, words
from ui.render.html import Child, Html, div, join, span, tag

if TYPE_CHECKING:
    from core.jobs import JobView
    from library.manifest import Certificate, Manifest
    from library.tables import Artifact, Measurement


_GOOD = ("reproduced", "byte-exact")


def detail(row: Artifact | None, manifest: Manifest | None, root: str = "") -> Html:
    """What an artifact is: problem, answer, digests, certificate, cost."""
    if row is None:
        return parts.empty("No artifact chosen", "Choose a row to see its manifest, digests and certificate.")
    figures = [
        parts.stat("state", words.count(row.graft_point), "tokens"),
        parts.stat("size", words.bytes_(row.stored_bytes or row.size_bytes), row.compression.replace("none", "raw")),
        parts.stat("to solve", words.count(row.solve_tokens), f"tokens, {words.seconds(row.solve_seconds)}"),
        parts.stat("used", f"{row.uses}×", words.when(row.last_used)[:16] if row.last_used else "never"),
    ]
    digests: list[tuple[str, Child]] = [
        ("Content", parts.digest(row.digest, "content digest")),
        ("Identity", parts.digest(row.identity, "identity digest")),
        ("Environment", parts.digest(row.environment, "environment digest")),
    ]
    if row.parent:
        digests.append(("Parent", parts.digest(row.parent, "parent digest")))
    facts: list[tuple[str, Child]] = [
        ("Model", row.model),
        ("Reviewed by", row.reviewer or "–"),
        ("Verifier", row.verifier or "–"),
        ("Deposited", words.when(row.created)),
    ]
    if row.attempt_id:
        link = tag("a", words.short_digest(row.attempt_id), href=f"{root}/?tab=review&id={row.attempt_id}")
        facts.append(("Attempt", link))
    if manifest is not None and manifest.certificate is not None:
        facts.append(("Certificate", certificate(manifest.certificate)))
    return div(
        "sc-artifact",
        div(
            "sc-line",
            parts.state(row.state, row.state_reason),
            parts.digest(row.digest, "content digest"),
            span("sc-push", download(row, root)),
        ),
        parts.notice("warn", f"{row.state}: {row.state_reason}")
        if row.state_reason and row.state != "published"
        else None,
        div("sc-problem", div("sc-label", "Problem"), div("sc-text", row.problem_text)),
        jobs.answer(row.answer),
        parts.stats(*figures),
        parts.facts(digests),
        parts.facts(facts),
        parts.folded("Manifest", summary(manifest)) if manifest is not None else None,
    )


def download(row: Artifact, root: str) -> Html:
    if row.state in ("evicted", "quarantined", "revoked"):
        return span("sc-muted", "no download")
    return tag("a", "Download", href=f"{root}/artifacts/{row.digest}", download=f"{row.digest[7:23]}.safetensors")


def certificate(item: Certificate) -> Html:
    steps = len(item.answer_ids)
    return span("", f"{words.plural(steps, 'step')} of logits, answer ", parts.code(words.clip(item.answer, 40)))


def summary(manifest: Manifest) -> Html:
    """The manifest's fields a person may want; the whole file can be downloaded."""
    kinds: dict[str, int] = {}
    for layer in manifest.layers:
        kinds[layer.kind] = kinds.get(layer.kind, 0) + 1
    schedule = ", ".join(f"{run.count} × {run.length}" for run in manifest.schedule[:6])
    rows: list[tuple[str, Child]] = [
        ("Schema", f"version {manifest.schema_version}, {manifest.kind}"),
        ("Layers", ", ".join(f"{count} {name}" for name, count in sorted(kinds.items()))),
        ("Tensors", words.count(len(manifest.tensors))),
        ("Tokens", f"{len(manifest.prompt_ids)} prompt + {len(manifest.attempt_ids)} attempt"),
        ("Schedule", f"{schedule}{'…' if len(manifest.schedule) > 6 else ''} (calls × tokens)"),
        ("Sampling", f"temperature {manifest.sampling.temperature}, top-p {manifest.sampling.top_p}, "
                     f"seed {manifest.sampling.seed}, attempt {manifest.sampling.attempt + 1} of "
                     f"{manifest.sampling.attempts}"),
        ("Evidence", join([span("", parts.outcome(e.outcome), f" {e.check} ") for e in manifest.evidence])),
        ("Decisions", "; ".join(f"{d.action} by {d.reviewer}" for d in manifest.decisions) or "–"),
    ]  # fmt: skip
    fields = {**manifest.identity.fields, **{f"env.{k}": v for k, v in manifest.environment.fields.items()}}
    more = [(name, parts.code(words.clip(str(value), 120))) for name, value in sorted(fields.items())]
    return join([parts.facts(rows), parts.folded("Identity and environment, field by field", parts.facts(more))])


def measurements(rows: Sequence[Measurement]) -> Html:
    """Audits and certificates measured since the deposit."""
    if not rows:
        return Html("")
    tones = {"byte-exact": "byte-exact", "argmax-equal": "argmax-equal", "divergent": "divergent"}
    lines = [
        (
            row.kind.replace("_", " "),
            join([parts.state(tones.get(row.finding, row.finding)), f" {words.when(row.created)}"]),
        )
        for row in rows
    ]
    return join([div("sc-label", "Measured since"), parts.facts(lines)])


def work(view: JobView) -> Html:
    """A check's progress and, once it is over, what it found."""
    if not view.over:
        return div(
            "sc-sheet",
            div(
                "sc-line",
                parts.state(view.state),
                span("sc-strong", jobs.kind(view.kind)),
                span("sc-muted", view.progress.note or view.progress.phase),
            ),
            parts.bar(view.progress.tokens, view.progress.budget, "progress"),
        )
    if view.state != "done":
        return parts.notice(
            "bad" if view.state == "failed" else "warn", f"{jobs.kind(view.kind)}: {view.state}", view.error
        )
    return finding(view.kind, view.result)


def finding(kind: str, result: Any) -> Html:
    """The result of an integrity check (how many, and the bad ones) or of an audit (one finding)."""
    if "bad" in result:
        bad, checked = result["bad"], words.plural(int(result.get("checked") or 0), "artifact")
        if not bad:
            return parts.notice("good", f"{checked} checked; every byte is as deposited.")
        lines = [tag("li", parts.digest(str(row.get("digest"))), f" {row.get('finding')}") for row in bad]
        return parts.notice("bad", f"{len(bad)} of {checked} damaged", tag("ul", *lines))
    said = str(result.get("finding") or "done")
    tone = "bad" if said in ("differs", "divergent") else "good" if said in _GOOD else "warn"
    return parts.notice(tone, f"{jobs.kind(kind)}: {said}", str(result.get("words") or "") or None)


def chat_cost(view: JobView) -> Html:
    """Time to the first token from the state beside what a re-prefill would take, where the engine measured it."""
    result = view.result
    if not view.over or not result:
        return Html("")
    if view.state == "failed":
        return parts.notice("bad", "The model could not answer", view.error)
    first, again = result.get("first_token_seconds"), result.get("reprefill_seconds")
    if first is None:
        return Html("")
    said = f"First token after {words.seconds(first)} from the stored state"
    if again is not None:
        said += f"; reading the text again takes {words.seconds(again)}"
    return parts.notice("info", said + ".")
