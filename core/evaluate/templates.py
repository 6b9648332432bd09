"""Small problem templates with their answers, for experiments of users who have no data. Knows no gate, no model."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Template:
    """A text with named places. `ranges` has each number's inclusive bounds, `names` the number of people."""

    pattern: str
    ranges: dict[str, tuple[int, int]]
    solve: Callable[[dict[str, int]], Fraction | int]
    names: int = 1

    def draw(self, rng: random.Random) -> dict[str, str | int]:
        """Values for one instance; people are drawn from a fixed list, so that only numbers tell instances apart."""
        values: dict[str, str | int] = {k: rng.randint(*bounds) for k, bounds in self.ranges.items()}
        for place in range(self.names):
            values[f"name{place}"] = _PEOPLE[place]
        return values

    def text(self, values: dict[str, str | int]) -> str:
        """The problem with `values` in its places."""
        out = self.pattern
        for key, value in values.items():
            out = out.replace(f"<{key}>", str(value))
        return out

    def answer(self, values: dict[str, str | int]) -> str:
        """The exact answer, an integer or a fraction in lowest terms."""
        return str(Fraction(self.solve({k: v for k, v in values.items() if isinstance(v, int)})))


_PEOPLE = ("Nora", "Felix", "Mina")

TEMPLATES: tuple[Template, ...] = (
    Template(
        "<name0> bought <a> boxes with <b> pencils each. She gave <c> pencils to <name1>. How many pencils does "
        "<name0> have left?",
        {"a": (3, 9), "b": (4, 12), "c": (1, 10)},
        lambda v: v["a"] * v["b"] - v["c"],
        2,
    ),
    Template(
        "<name0> has <a> more stamps than <name1>. <name1> has <b> stamps. How many stamps do they have in total?",
        {"a": (2, 40), "b": (5, 90)},
        lambda v: 2 * v["b"] + v["a"],
        2,
    ),
    Template(
        "A rectangle is <a> cm long and <b> cm wide. What is the perimeter of the rectangle?",
        {"a": (5, 40), "b": (2, 30)},
        lambda v: 2 * (v["a"] + v["b"]),
        0,
    ),
    Template(
        "A ticket costs $<a>. <name0> buys <b> tickets with a discount of <c>%. How many dollars does she pay?",
        {"a": (5, 40), "b": (2, 9), "c": (5, 50)},
        lambda v: Fraction(v["a"] * v["b"] * (100 - v["c"]), 100),
    ),
    Template(
        "A train travels <a> miles in <b> hours at a constant speed. How many miles does it travel in <c> hours?",
        {"a": (60, 400), "b": (2, 6), "c": (3, 12)},
        lambda v: Fraction(v["a"] * v["c"], v["b"]),
        0,
    ),
    Template(
        "<name0> is twice as old as <name1>. In <a> years <name0> will be <b> years old. How old is <name1> now?",
        {"a": (2, 9), "b": (20, 60)},
        lambda v: Fraction(v["b"] - v["a"], 2),
        2,
    ),
    Template(
        r"Find the value of $\frac{<a>}{<b>} + \frac{<c>}{<b>}$.",
        {"a": (1, 30), "b": (2, 12), "c": (1, 30)},
        lambda v: Fraction(v["a"] + v["c"], v["b"]),
        0,
    ),
    Template(
        r"Let $f(x) = <a>x^2 - <b>x + <c>$. Find the minimum value of $f(x)$ over all real numbers $x$.",
        {"a": (1, 6), "b": (2, 20), "c": (1, 30)},
        lambda v: v["c"] - Fraction(v["b"] ** 2, 4 * v["a"]),
        0,
    ),
    Template(
        r"How many positive integers $n \le <a>$ are divisible by $<b>$?",
        {"a": (50, 900), "b": (3, 19)},
        lambda v: v["a"] // v["b"],
        0,
    ),
    Template(
        r"Find the remainder when $<a>^2 + <b>$ is divided by $<c>$.",
        {"a": (5, 60), "b": (1, 99), "c": (3, 23)},
        lambda v: (v["a"] ** 2 + v["b"]) % v["c"],
        0,
    ),
    Template(
        "<name0> fills <a> jars with <b> liters of juice each. How many liters of juice does she use altogether?",
        {"a": (2, 30), "b": (2, 9)},
        lambda v: v["a"] * v["b"],
    ),
    Template(
        "There are <a> students in a class. The teacher divides them into groups of <b>. At most how many full groups "
        "are there?",
        {"a": (20, 60), "b": (3, 9)},
        lambda v: v["a"] // v["b"],
        0,
    ),
)
