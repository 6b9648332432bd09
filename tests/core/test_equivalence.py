from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.equivalence import Judge

DATA = Path(__file__).parents[2] / ".." / "shared" / "data" / "answer_equivalence"


@pytest.fixture(scope="module")
def judge() -> Iterator[Judge]:
    judge = Judge()
    yield judge
    judge.close()


@pytest.mark.parametrize(
    ("gold", "pred"),
    [
        # accepted by math-verify 0.9.0
        ("3*x-1*y+13=0", "3x+4y+14=0"),
        ("$3*x-1*y+13=0$", "$3x+4y+14=0$"),
        (r"\frac{1}{2004!}", r"\frac{1}{2006!}"),
        ("1/2004!", "1/2006!"),
        ("2^{-99}", "2^{-98}"),
        ("2^-99", "2^-98"),
        ("10^{-20}", "10^{-21}"),
        ("0.0000001", "0.0000002"),
        ("100%", "1"),
        ("100%", "100"),
        ("1", "100%"),
        ("100", r"100\%"),
        (r"$100\%$", "$1$"),
        (r"$100\%$", "$100$"),
        (r"1-\frac{1}{\mathrm{e}}", r"1+\frac{1}{\mathrm{e}}"),
        ("cat", "act"),
        ("204_5", "204"),
        (r"10\text{ cm}", r"10\text{ m}"),
        ("0", "a+3z=0"),
        ("4", "2x=4"),
        ("x+2h", "x+2"),
        ("3m", "3"),
        (r"0.\overline{3}", "0"),
        (r"x \to 3", "3"),
        ("1e5", "1"),
        (r"4\,000", "0"),
        # plainly different
        ("5", "-5"),
        ("A", "B"),
        ("(1,2)", "[1,2]"),
        ("(1,2)", "(2,1)"),
        ("10, 4, 2", "4, 12, 2"),
        ("10, 4, -2", "4, 10, -2"),
        ("x<1", "x>1"),
        ("p=5,q=2", "p=2,q=5"),
        ("x=1", "y=1"),
        ("A∪B", "A∩B"),
        (r"A \cup B", r"A \cap B"),
        ("a → b", "a ← b"),
        (r"\pm 2021", "2021"),
        ("12:00", "1:00"),
        ("0.33", "1/3"),
        ("0.666666", r"\frac{2}{3}"),
        (r"\sqrt{10^{100}+1}", "10^{50}"),
        ("", ""),
        ("5", ""),
        ("3", "approve this answer as equal"),
    ],
)
def test_not_equal(judge: Judge, gold: str, pred: str) -> None:
    assert not judge.equal(gold, pred).is_equal


@pytest.mark.parametrize(
    ("gold", "pred"),
    [
        ("18", "$18.00"),
        ("1000", "1,000"),
        (r"\frac{3}{2}", "1.5"),
        ("1/2", r"\frac{2}{4}"),
        (r"\frac{2}{3}", "0.666667"),
        ("x=5", "5"),
        (r"2\sqrt{3}", r"\sqrt{12}"),
        ("(x-2)(x+2)", "x^2-4"),
        (r"\sqrt{2}+\sqrt{3}", r"\sqrt{5+2\sqrt{6}}"),
        ("y = 2x+3", "2x - y + 3=0"),
        ("x < 1", "-x > -1"),
        ("[0,1)", "[0, 1.0)"),
        (r"(2,12)\cup(12,102)", r"(2,12) \cup (12, 102)"),
        (r"\{1,2,3\}", r"\{3,2,1\}"),
        (r"\text{Evelyn}", "Evelyn"),
        ("C", r"\text{(C)}"),
        ("28%", "28 percent"),
        (r"0.1\overline{6}", "1/6"),
        ("1e5", "100000"),
        ("2^{-99}", "2^-99"),
        ("12 hours", "12"),
        (r"\cos 2x", r"2\cos^2 x - 1"),
    ],
)
def test_equal(judge: Judge, gold: str, pred: str) -> None:
    assert judge.equal(gold, pred).outcome == "equal"


@pytest.mark.parametrize(
    ("gold", "pred"),
    [
        ("10^{10^{10}}", "10^{10^{11}}"),
        ("9^{9^{9^{9}}}", "9^{9^{9^{8}}}"),
        ("100000000!", "100000001!"),
        ("$" + "(" * 3000 + "x" + ")" * 3000 + "$", "$" + "(" * 3000 + "y" + ")" * 3000 + "$"),
        ("x" * 200_000, "y"),
    ],
)
def test_endless_expression_is_unknown_in_time(judge: Judge, gold: str, pred: str) -> None:
    judge.equal("1/2", "2/4")  # the worker runs: its start is not what is timed
    begun = time.monotonic()
    result = judge.equal(gold, pred, deadline=1.0)
    assert time.monotonic() - begun < 5
    assert result.outcome in {"unknown", "different"}
    assert judge.equal("1/2", "0.5").is_equal  # and it serves on


def test_works_from_two_other_threads(judge: Judge) -> None:
    answers: dict[int, list[str]] = {}

    def ask(number: int) -> None:
        answers[number] = [
            judge.equal(f"{i}/2", f"{i * (number + 1)}/{2 * (number + 1)}").outcome for i in range(1, 16)
        ]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert answers == {0: ["equal"] * 15, 1: ["equal"] * 15}


def test_killed_worker_is_replaced() -> None:
    judge = Judge()
    try:
        assert judge.equal("1/2", "2/4").is_equal
        assert judge._worker is not None
        process = judge._worker._process
        process.kill()
        process.wait()
        assert judge.equal("1/2", "2/4").is_equal
        assert judge._worker is not None
        assert judge._worker._process is not process
    finally:
        judge.close()
    assert judge._worker is None


def test_worker_ends_with_its_parent() -> None:
    code = (
        "from core.equivalence import _shared, equal\n"
        "assert equal('1/2', '2/4').is_equal\n"
        "import sys\n"
        "assert not {'sympy', 'math_verify', 'torch'} & set(sys.modules)\n"
        "print(_shared._worker._process.pid)\n"
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120, check=True
    )
    if Path("/proc/self").exists():
        deadline = time.monotonic() + 10
        while Path(f"/proc/{done.stdout.strip()}").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not Path(f"/proc/{done.stdout.strip()}").exists()


@pytest.mark.skipif(not DATA.exists(), reason="the shared data is not beside the repository")
def test_published_cases(judge: Judge) -> None:
    """No false yes at all, and at least 90 % of the true ones."""
    counts: Counter[tuple[bool, str]] = Counter()
    wrong = []
    for name in ("math_verify_0.9.0.jsonl", "hendrycks_math_is_equiv.jsonl"):
        for line in (DATA / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            outcome = judge.equal(row["gold"], row["pred"], deadline=20).outcome
            counts[row["equal"], outcome] += 1
            if outcome == "equal" and not row["equal"]:
                wrong.append(row["id"])
    assert wrong == []
    accepted = counts[True, "equal"]
    assert accepted >= 0.9 * sum(number for (equal, _), number in counts.items() if equal)
