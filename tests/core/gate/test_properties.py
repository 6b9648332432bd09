"""Property tests: a mutated problem is never a GRAFT, a reprinted one always is. Texts are made here."""

from __future__ import annotations

import os
import random
from collections import Counter

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.evaluate.pairs import KINDS, mutate
from core.evaluate.templates import TEMPLATES
from core.gate import Policy, Verdict, canonical, judge

#: 10,000 with SCION_PROPERTY_CASES=10000; the default keeps CI short
MUTATIONS = int(os.environ.get("SCION_PROPERTY_CASES", "1500"))
DIFFERENT = [kind for kind, same in KINDS.items() if not same]

COMPETITION = (
    r"Let $f(x) = <a>x^2 - <b>x + <c>$ with $x \le <d>$. Find the maximum value of $f(x)$ over all real numbers $x$.",
    r"How many positive integers $n \leq <d>$ are divisible by $<a>$ but not by $<b>$?",
    r"Let $a_1 = <a>$ and $a_{n+1} = <b>a_n + <c>$. Find the remainder when $a_{<d>}$ is divided by $1000$.",
    r"In triangle $ABC$, $AB = <a>$ cm, $BC = <b>$ cm and $\angle ABC = <c>^\circ$. Find the area of triangle $ABC$.",
    r"Find the sum of all distinct prime factors of $\binom{<d>}{<a>} + <b>!$.",
    r"Let $A = \{x : |x - <a>| < <b>\}$ and $B = [<c>, <d>)$. How many even integers are in $A \cup B$?",
    r"Compute $\lfloor \sqrt{<d>} \rfloor + \frac{<a>}{<b>} - \log_2 <c>$.",
    r"Two dice are rolled <a> times with replacement. The chance of at least <b> sixes is $\tfrac{m}{n}$. Find $m$.",
    "Tom has <a> more marbles than Ann. Ann gives <b> marbles to Ben and keeps <c>. How many marbles does Tom have?",
    "A shop sold <a> boxes of tea at $<b> each before noon and <c> after noon. How many dollars did it earn in all?",
    "A train leaves and travels <d> miles in <a> hours. It stops twice for <b> minutes. What is its mean speed?",
)


def problem(rng: random.Random) -> str:
    """One made problem: a template of the package or of competition kind, with drawn numbers."""
    if rng.random() < 0.4:
        template = TEMPLATES[rng.randrange(len(TEMPLATES))]
        return template.text(template.draw(rng))
    text = COMPETITION[rng.randrange(len(COMPETITION))]
    for name, high in (("a", 30), ("b", 40), ("c", 90), ("d", 900)):
        text = text.replace(f"<{name}>", str(rng.randint(2, high)))
    return text


def test_mutated_problems_are_never_a_graft() -> None:
    rng = random.Random(20240)
    seen: Counter[str] = Counter()
    wrong: list[tuple[str, str, str]] = []
    while sum(seen.values()) < MUTATIONS:
        text = problem(rng)
        kind = DIFFERENT[rng.randrange(len(DIFFERENT))]
        changed = mutate(text, kind, rng.randrange(1 << 30))
        if changed is None or (
            canonical(changed) == canonical(text) and " ".join(text.split()) == " ".join(changed.split())
        ):
            continue
        seen[kind] += 1
        for policy in (Policy.STRICT, Policy.EDITS):
            if judge(text, changed, policy).verdict is Verdict.GRAFT:
                wrong.append((kind, text, changed))
    assert not wrong, wrong[:5]
    assert len(seen) >= 8
    print(f"{sum(seen.values())} mutated texts, 0 GRAFT: {dict(seen)}")


def test_mutated_restatements_are_never_a_graft() -> None:
    """The stored problem against a restatement that was then changed: the harmless edit must not hide the other."""
    rng = random.Random(7)
    tried = 0
    while tried < MUTATIONS // 5:
        text = problem(rng)
        restated = mutate(text, "rephrase" if rng.random() < 0.6 else "format", rng.randrange(1 << 30))
        changed = (
            mutate(restated, DIFFERENT[rng.randrange(len(DIFFERENT))], rng.randrange(1 << 30)) if restated else None
        )
        if changed is None:
            continue
        tried += 1
        assert judge(text, changed, Policy.EDITS).verdict is not Verdict.GRAFT, (text, changed)


def test_reprinted_problems_are_a_graft() -> None:
    rng = random.Random(3)
    tried = 0
    while tried < 300:
        text = problem(rng)
        changed = mutate(text, "format", rng.randrange(1 << 30))
        if changed is None:
            continue
        tried += 1
        assert judge(text, changed, Policy.STRICT).verdict is Verdict.GRAFT, (text, changed)


def test_rephrased_problems_are_mostly_a_graft() -> None:
    rng = random.Random(4)
    tried = accepted = 0
    while tried < 200:
        changed = mutate(text := problem(rng), "rephrase", rng.randrange(1 << 30))
        if changed is not None:
            tried += 1
            accepted += judge(text, changed, Policy.EDITS).verdict is Verdict.GRAFT
    assert accepted >= 180


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(max_size=300))
def test_any_text_is_its_own_problem_or_refused(text: str) -> None:
    judgement = judge(text, text, Policy.EDITS)
    assert judgement.verdict is Verdict.GRAFT or judgement.reasons[0].code in ("empty", "hidden_characters")


_PIECES = st.sampled_from(
    [
        *r"$ \( \) { } ^ _ \frac \left( \right) x 12 , . - \text{a} \\ \begin{cases} \end{cases} & % \$ ! '".split(),  # noqa: SIM905
        *r"Tom each \sqrt [asy] [/asy] ½ ≤ \item \quad".split(),  # noqa: SIM905
        " ",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(_PIECES, max_size=40), st.lists(_PIECES, max_size=40))
def test_broken_latex_never_breaks_the_gate(left: list[str], right: list[str]) -> None:
    a, b = "".join(left), "".join(right)
    for policy in (Policy.STRICT, Policy.EDITS):
        judgement = judge(a, b, policy)
        assert judgement.reasons
        assert not any(reason.code == "gate_error" for reason in judgement.reasons), judgement.reasons
    assert canonical(a) == canonical(a)


@settings(max_examples=300, deadline=None)
@given(
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.sampled_from(["It is {} long.", "Find $x$ with $x={}$.", "Let $a_{{{}}}$ be it."]),
)
def test_numbers_merge_only_when_equal(a: int, b: int, frame: str) -> None:
    one, other = frame.format(a), frame.format(b)
    assert (canonical(one) == canonical(other)) == (a == b)
    assert (judge(one, other, Policy.EDITS).verdict is Verdict.GRAFT) == (a == b)


@settings(max_examples=200, deadline=None)
@given(st.integers(1000, 10**9))
def test_grouped_digits_are_one_number(value: int) -> None:
    grouped = f"{value:,}"
    plain = canonical(f"It is {value} long.")
    for text in (
        grouped,
        f"${grouped}$",
        "$" + grouped.replace(",", "{,}") + "$",
        "$" + grouped.replace(",", r"\,") + "$",
    ):
        assert canonical(f"It is {text} long.") == plain


@pytest.mark.parametrize("value", range(1, 31))
def test_numbers_in_words_are_the_same_number(value: int) -> None:
    words = """one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen
        seventeen eighteen nineteen twenty""".split()  # noqa: SIM905
    word = words[value - 1] if value <= 20 else f"twenty-{words[value - 21]}" if value < 30 else "thirty"
    assert judge(f"Tom has {value} cats.", f"Tom has {word} cats.", Policy.EDITS).verdict is Verdict.GRAFT
    assert judge(f"Tom has {value + 1} cats.", f"Tom has {word} cats.", Policy.EDITS).verdict is not Verdict.GRAFT
