from __future__ import annotations

import time

import pytest

from core.answer import METHODS, extract, normalise, split_thinking


@pytest.mark.parametrize(
    ("text", "answer", "method"),
    [
        (r"so \boxed{42}.", "42", "boxed"),
        (r"so $\boxed{\frac{1}{2}}$", r"\frac{1}{2}", "boxed"),
        (r"\boxed{1}, no: \boxed{\text{a}_{b_{c}}}", r"\text{a}_{b_{c}}", "boxed"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}", "boxed"),
        (r"\boxed{3} and then \boxed{4", "3", "boxed"),
        (r"\boxed{7} \boxed{}", "7", "boxed"),
        (r"\fbox{9}", "9", "boxed"),
        (r"\boxed 5", "5", "boxed"),
        ("work\n#### 1,234", "1,234", "hashes"),
        ("#### 3\n#### 4", "4", "hashes"),
        ("The final answer is: **42**.", "42", "answer_is"),
        ("The answer is 3.14. I hope it is correct.", "3.14", "answer_is"),
        ("the answer is (B) 12 cm", "B", "answer_is"),
        ("The answer to the problem is $5$ dollars.", "5", "answer_is"),
        ("the answer is 1. Wait, the answer is 2.", "2", "answer_is"),
        (r"answer is \( x=2 \).", "x=2", "answer_is"),
        ("Answer: 7 apples", "7 apples", "answer_label"),
        ("**Answer:** 12", "12", "answer_label"),
        ("Final Answer:\n 5", "5", "answer_label"),
        ("we choose option D", "D", "choice"),
        ("B", "B", "choice"),
        ("(C) because of 4", "C", "choice"),
        ("A train has 5 wagons", "5", "last_number"),
        ("first 3, then -1,000.5 dollars", "-1,000.5", "last_number"),
        ("10 - 3", "3", "last_number"),
        (r"gives \frac{3}{4}", r"\frac{3}{4}", "last_number"),
        ("about 5%", "5%", "last_number"),
        ("so 3/4 of it", "3/4", "last_number"),
    ],
)
def test_extract(text: str, answer: str, method: str) -> None:
    found = extract(text)
    assert found is not None
    assert (found.answer, found.method) == (answer, method)
    assert answer in text[found.span[0] : found.span[1]]
    assert method in METHODS


@pytest.mark.parametrize("text", ["", "   ", "I do not know.", "...", r"\boxed{", "####", "The answer is"])
def test_nothing_to_extract(text: str) -> None:
    assert extract(text) is None


@pytest.mark.parametrize(
    "text",
    [
        r"\boxed{" * 50_000,
        "{" * 200_000,
        "the answer is " * 30_000,
        "1," * 100_000,
        "#### " * 40_000,
        "answer:" * 40_000,
    ],
)
def test_long_text_ends(text: str) -> None:
    begun = time.monotonic()
    extract(text)
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        ("<t>hm</t>4", "hm", "4"),
        ("hm</t>4", "hm", "4"),
        ("<t>hm", "hm", ""),
        ("4", "", "4"),
        ("a <t>b</t> c", "b", "a  c"),
        ("<t>a</t><t>b</t>c", "a\nb", "c"),
        ("<t>a</t>c </t>", "a", "c </t>"),
        ("", "", ""),
    ],
)
def test_split_thinking(text: str, thinking: str, answer: str) -> None:
    assert split_thinking(text, "<t>", "</t>") == (thinking, answer)


@pytest.mark.parametrize("markers", [(None, None), ("", ""), ("<t>", None)])
def test_without_markers_all_is_answer(markers: tuple[str | None, str | None]) -> None:
    assert split_thinking(" <t>x</t> y ", *markers) == ("", "<t>x</t> y")


@pytest.mark.parametrize(
    ("answer", "form"),
    [
        (r"$10\text{ units}$", "10"),
        (r"\$1,234.50", "1234.5"),
        ("$18", "18"),
        (r"\dfrac12", r"\frac{1}{2}"),
        (r"\left( 3, \frac{\pi}{2} \right)", r"( 3, \frac{\pi}{2} )"),
        ("(B)", "B"),
        (r"\text{(C)}", "C"),
        (r"11,\! 111,\! 100", "11111100"),
        ("14{,}916", "14916"),
        ("5.00", "5"),
        (".50", "0.5"),
        ("-0.0", "0"),
        ("007", "7"),
        ("**42**.", "42"),
        (r"\boxed{4}.", "4"),
        (r"10 \%", "10%"),
        ("−3", "-3"),
        # not to be touched: another meaning
        ("32, 349", "32, 349"),
        ("1,22", "1,22"),
        ("5 apples", "5 apples"),
        ("10%", "10%"),
        ("$1$ and $2$", "$1$ and $2$"),
        (r"3\mathrm{e}", "3e"),
        ("-5", "-5"),
    ],
)
def test_normalise(answer: str, form: str) -> None:
    assert normalise(answer) == form
    assert normalise(form) == form
