"""What the page says about jobs, attempts, artifacts, pairs: with hostile text everywhere, and in its odd states."""

from __future__ import annotations

from typing import Any

import pytest

from core.gate import Judgement, Policy, Verdict
from core.gate.verdict import Edit
from core.jobs import JobView, Progress, Stream
from library.reviews import ReviewCounts
from library.search import Record
from library.statistics import Statistics
from library.tables import Attempt, Decision, Evidence, Measurement, Outcome, PairLabel
from tests.library.artifacts import manifest
from tests.ui.hostile import TEXTS
from tests.ui.test_html import Elements
from ui.render import artifact, diff, figures, jobs, lab, parts, records, words
from ui.render.html import Html

EVIL = " ".join(TEXTS)
DIGEST = "blake3:" + "ab" * 32
ALLOWED = {
    "div", "span", "b", "i", "code", "pre", "ul", "ol", "li", "dl", "dt", "dd", "table", "caption", "thead", "tbody",
    "tr", "th", "td", "button", "details", "summary", "progress", "a", "mark", "strong", "h1", "h2", "svg", "path",
    "rect", "kbd", "form",
}  # fmt: skip


def view(state: str = "running", **changes: Any) -> JobView:
    fields: dict[str, Any] = {
        "id": "j1", "kind": "solve", "state": state, "payload": {"problem": EVIL}, "progress": Progress(), "result": {},
        "error": EVIL, "owner": "ada", "created": "2026-01-01T00:00:00.000000Z", "started": None, "finished": None,
    }  # fmt: skip
    return JobView(**{**fields, **changes})


def attempt(**changes: Any) -> Attempt:
    fields: dict[str, Any] = {
        "id": "a1", "problem_id": "p1", "model": EVIL, "identity": DIGEST, "environment": DIGEST, "solution": EVIL,
        "answer": EVIL, "status": "solved", "review": "pending", "created": "x", "created_by": "ada",
    }  # fmt: skip
    return Attempt(**{**fields, **changes})


def record(**changes: Any) -> Record:
    fields: dict[str, Any] = dict.fromkeys(Record.__dataclass_fields__, EVIL)
    numbers = ("canonical_version", "size_bytes", "stored_bytes", "graft_point", "solve_tokens", "solve_flops", "uses")
    fields |= dict.fromkeys(numbers, 7)
    fields |= {"digest": DIGEST, "state": "published", "solve_seconds": 1.5, "solve_joules": None, "pinned": False}
    return Record(**{**fields, **changes})


STREAM = Stream(EVIL, EVIL, EVIL, 3, "running", EVIL, EVIL, EVIL)
RUN = {
    "answer": EVIL, "text": EVIL, "verdict": EVIL, "exactness": EVIL, "reasons": [{"code": EVIL, "text": EVIL}],
    "copied": True, "decode_tokens": 1, "prefill_tokens": 2, "seconds": 0.1, "joules": 3.0,
}  # fmt: skip
JUDGED = Judgement(Verdict.GRAFT, Policy.STRICT, (), (), 0.5)
LABEL = PairLabel(id="l", stored=EVIL, query=EVIL, label="unsafe", source=EVIL, created="", created_by=EVIL)
EDIT = Edit("number", EVIL, EVIL, (0, 4), (2, 9), False, EVIL)
EVIDENCE = Evidence(
    id=1,
    attempt_id="a1",
    check_name=EVIL,
    outcome="fail",
    summary=EVIL,
    detail='{"k": "<b>"}',
    verifier=EVIL,
    created="",
)
OUTCOME = Outcome(
    id="o", query=EVIL, policy="strict", verdict="REFUSE", answer=EVIL, exactness="", model="m", identity=DIGEST,
    created="x", created_by="ada",
)  # fmt: skip
NOTE = Decision(id="d", attempt_id="a1", attempt_version=1, reviewer=EVIL, action="reject", reason=EVIL, created=EVIL)
MEASURED = Measurement(id="m", artifact=DIGEST, kind=EVIL, environment=DIGEST, finding=EVIL, created=EVIL)

SHOWN = {
    "progress": jobs.progress(view(progress=Progress(streams=(STREAM, STREAM), note=EVIL, budget=9, tokens=3))),
    "failed": jobs.progress(view("failed")),
    "live": jobs.live(view(progress=Progress(streams=(STREAM,)))),
    "listing": jobs.listing([view()], "j1"),
    "ask": jobs.ask({**RUN, "artifact": EVIL, "warnings": [EVIL], "tokens_saved": 4}),
    "queue": records.queue([(attempt(), EVIL, "adjudicate")], "a1", 2, EVIL),
    "head": records.attempt_head(attempt(), EVIL, EVIL),
    "evidence": records.evidence([EVIDENCE]),
    "history": records.history([NOTE]),
    "artifacts": records.artifacts([record()], DIGEST, 1, 0, False),
    "outcomes": records.outcomes([OUTCOME]),
    "detail": artifact.detail(record(), manifest(problem=EVIL, answer=EVIL), "/x"),  # type: ignore[arg-type]
    "measurements": artifact.measurements([MEASURED]),
    "finding": artifact.finding("verify", {"checked": 2, "bad": [{"digest": EVIL, "ok": False, "finding": EVIL}]}),
    "work": artifact.work(view("failed", kind="audit")),
    "chat": artifact.chat_cost(view("failed", result={"text": EVIL})),
    "diff": diff.comparison(EVIL, EVIL, [EDIT]),
    "edits": diff.edit_list([EDIT]),
    "judgement": diff.judgement(EVIL, EVIL, [EVIL], 0.1, unsafe=True),
    "runs": lab.run(view("done", result={"runs": {"fresh": RUN}}), "fresh", 0, blind=False)[0],
    "not run": lab.run(view("failed", result={}), "gated", 2, blind=False)[0],
    "running": lab.run(view(progress=Progress(streams=(STREAM,))), "fresh", 0, blind=True)[0],
    "trouble": lab.trouble(view("failed", result={})),
    "repeated": lab.repeated([(LABEL, JUDGED)]),
    "top": figures.top(EVIL, 1, 2, EVIL, EVIL, root=EVIL, login=True),
    "notice": parts.notice("bad", EVIL, EVIL),
}


@pytest.mark.parametrize("name", SHOWN)
def test_only_our_elements_and_attributes_reach_the_page(name: str) -> None:
    for element, attributes in Elements(SHOWN[name]).seen:
        assert element in ALLOWED, element
        for attribute, value in attributes.items():
            assert not attribute.startswith("on"), attribute
            if attribute in ("href", "action"):
                assert value is not None
                assert not value.lower().startswith(("javascript:", "//", "http"))


def test_verdicts_have_a_word_and_a_shape_besides_their_colour() -> None:
    shapes = {Elements(parts.verdict(name)).words.split()[0] for name in ("GRAFT", "TRANSFER", "REFUSE")}
    assert len(shapes) == 3
    assert "GRAFT" in parts.verdict("GRAFT")
    assert "sc-v-none" in parts.verdict("anything")


def test_a_digest_is_short_whole_on_hover_and_copied_whole() -> None:
    seen = dict(Elements(parts.digest(DIGEST)).seen)
    assert Elements(parts.digest(DIGEST)).words.strip() == "abababab"
    assert seen["code"]["title"] == DIGEST
    assert seen["button"]["data-copy"] == DIGEST
    assert seen["button"]["aria-label"]


@pytest.mark.parametrize(
    ("state", "progress", "said"),
    [
        ("queued", Progress(place=2), "waiting, 2 jobs before it"),
        ("running", Progress(phase="prefill"), "reading the problem"),
        ("running", Progress(tokens=50, budget=150, tokens_per_second=10.0, seconds=5.0), "10.0 s"),
        ("interrupted", Progress(), "Submit it again"),
    ],
)
def test_progress_says_where_a_job_is(state: str, progress: Progress, said: str) -> None:
    assert said in Elements(jobs.progress(view(state, progress=progress, error=""))).words


def test_the_stream_shown_is_the_one_that_runs_else_the_last_written() -> None:
    first = Stream("1", text="a", state="stop")
    second = Stream("2", text="b", state="running")
    assert jobs.focus((first, second, Stream("3"))) is second
    assert jobs.focus((first, Stream("2"))) is first
    assert jobs.focus((Stream("1"),)) is None


def test_blind_runs_hide_what_they_are() -> None:
    done = view("done", result={"runs": {"fresh": {**RUN, "verdict": "GRAFT"}}}, error="")
    shown = Elements(lab.run(done, "fresh", 0, blind=True)[0]).words
    assert "Run A" in shown
    assert "Fresh" not in shown
    assert "GRAFT" not in shown
    assert "copied" not in shown


def test_history_is_hidden_from_a_blind_reviewer() -> None:
    assert "ada" not in records.history([NOTE.model_copy(update={"reviewer": "ada"})], hidden=True)


def test_marks_cover_their_spans_and_never_repeat_text() -> None:
    spans = [((4, 8), False, "r"), ((6, 10), True, ""), ((12, 12), False, "gone"), ((50, 60), False, "")]
    words_shown = Elements(diff.marked("0123456789abcdef", spans, "added")).words
    assert words_shown.replace("‸", "") == "0123456789abcdef"


def test_empty_states_say_what_to_do() -> None:
    numbers = ReviewCounts(pending=0, flagged=0, approved=0, rejected=0, leased=3)
    assert "3 items are with other reviewers" in records.queue([], "", 3)
    assert "Approve an attempt" in records.artifacts([], "", 0, 0, False)
    assert "Nothing matches" in records.artifacts([], "", 0, 0, True)
    assert "pending" in records.counts(numbers)


def test_energy_is_not_invented() -> None:
    numbers = Statistics("", "", (), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.0, None, 5_000_000, (), (), 0, 0, ())
    counts = ReviewCounts(pending=0, flagged=0, approved=0, rejected=0, leased=0)
    shown = Elements(figures.tiles(numbers, counts)).words
    assert "not metered" in shown
    assert "about 5.0 M FLOP" in shown


def test_the_login_escapes_where_to_go() -> None:
    page = Elements(figures.login_page("", Html(""), "/login", '/?tab="><script>x</script>', EVIL))
    scripts = [name for name, _ in page.seen if name == "script"]
    assert len(scripts) == 1  # our own, which only looks at the preferred colours


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (words.count(None), "–"), (words.count(1234), "1,234"), (words.count(2_500_000), "2.5 M"),
        (words.bytes_(0), "0 B"), (words.bytes_(15_623_400), "14.9 MiB"), (words.seconds(0.0834), "83 ms"),
        (words.seconds(250), "4 min 10 s"), (words.seconds(7500), "2 h 5 min"), (words.joules(None), "not metered"),
        (words.when("no time"), "no time"), (words.when(None), "–"), (words.clip("a  b\nc", 9), "a b c"),
        (words.clip("one two three four", 12), "one two…"), (words.plural(1, "job"), "1 job"),
        (words.plural(0, "item is", "items are"), "0 items are"), (words.short_digest(DIGEST), "abababab"),
    ],
)  # fmt: skip
def test_words(call: str, said: str) -> None:
    assert call == said
