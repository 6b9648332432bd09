"""Confirms, in exact arithmetic, that two parsed answers are the same; the second opinion on math-verify's yes.

math-verify compares with rounded floats and pairs solutions loosely, so that it accepts 2^-99 for 2^-98 or one
line for another. Here a yes needs a proof: rational arithmetic, a simplified difference of zero, equations as
proportional polynomials. No proof is UNSURE. Runs only in the worker process: sympy may hang or eat memory
on hostile input. It must not know texts, models or files.
"""

from __future__ import annotations

import itertools
from typing import Any

import sympy as sp
from latex2sympy2_extended.logic import And
from sympy.core.function import AppliedUndef
from sympy.core.relational import Relational

CONFIRMED, REFUTED, UNSURE = "confirmed", "refuted", "unsure"

_PERCENT = sp.UnevaluatedExpr(sp.Rational(1, 100))
_ROUNDED_DIGITS = 6  # a decimal stands for an exact value only with so many digits, all of them right
_WORKING_DIGITS = 60
_MIRROR = {sp.Gt: sp.Lt, sp.Ge: sp.Le, sp.Lt: sp.Lt, sp.Le: sp.Le}


def confirm(gold: Any, pred: Any) -> str:
    """CONFIRMED, REFUTED or UNSURE for two sympy objects. Mutates nothing; may raise, hang or use much memory."""
    if _has_percent(gold) != _has_percent(pred):
        return UNSURE  # 100 % is read as 1 by some and as 100 by others: a person decides
    gold, pred = _membership(_one_relation(gold)), _membership(_one_relation(pred))
    if isinstance(pred, sp.Eq) and not isinstance(gold, Relational | And):
        return confirm(gold, pred.rhs) if _is_name(pred.lhs) else UNSURE
    if isinstance(gold, sp.Eq) and not isinstance(pred, Relational | And):
        return confirm(gold.rhs, pred) if _is_name(gold.lhs) else UNSURE
    if isinstance(gold, Relational | And) and isinstance(pred, Relational | And):
        return _relations(gold, pred)
    if isinstance(gold, Relational | And):
        return _sets(_as_set(gold), pred)
    if isinstance(pred, Relational | And):
        return _sets(gold, _as_set(pred))
    if isinstance(gold, sp.Set | sp.Tuple) or isinstance(pred, sp.Set | sp.Tuple):
        return _sets(gold, pred)
    if isinstance(gold, sp.MatrixBase | sp.MatrixExpr) or isinstance(pred, sp.MatrixBase | sp.MatrixExpr):
        return _matrices(gold, pred)
    return _scalars(gold, pred)


def _all(verdicts: Any) -> str:
    worst = CONFIRMED
    for verdict in verdicts:
        if verdict == REFUTED:
            return REFUTED
        if verdict == UNSURE:
            worst = UNSURE
    return worst


def _has_percent(value: Any) -> bool:
    if isinstance(value, sp.MatrixBase):
        return any(_has_percent(item) for item in value.flat())
    return isinstance(value, sp.Basic) and any(node == _PERCENT for node in sp.preorder_traversal(value))


def _is_name(side: Any) -> bool:
    """Whether a left side only names the value: x, f(x), |AB|, p/q, but not 2x or a + b."""
    if isinstance(side, sp.Tuple):
        return all(_is_name(item) for item in side.args)
    if isinstance(side, AppliedUndef):
        return True
    if not isinstance(side, sp.Basic) or not side.free_symbols or side.has(sp.Add):
        return False
    return side.atoms(sp.Number) <= {sp.Integer(-1), sp.Integer(1)}


def _one_relation(value: Any) -> Any:
    """x = 5 + 6 = 11 as x = 11: a chain of equations states its first and last member."""
    if isinstance(value, And):
        args = list(getattr(value, "_unsorted_args", value.args))
        if args and all(isinstance(arg, sp.Eq) for arg in args) and _is_name(args[0].lhs):
            return sp.Eq(args[0].lhs, args[-1].rhs, evaluate=False)
    return value


def _membership(value: Any) -> Any:
    """x in [1, 2] as the interval, when it comes as an equation of a name and a set."""
    if isinstance(value, sp.Eq) and isinstance(value.rhs, sp.Interval | sp.Union) and _is_name(value.lhs):
        return value.rhs
    return value


def _relations(gold: Any, pred: Any) -> str:
    if gold == pred:
        return CONFIRMED
    if isinstance(gold, And) and isinstance(pred, And):
        gold_args, pred_args = _written(gold), _written(pred)
        if len(gold_args) != len(pred_args):
            return UNSURE
        return _all(_relations(g, p) for g, p in zip(gold_args, pred_args, strict=True))
    if isinstance(gold, And) or isinstance(pred, And):
        return UNSURE
    if isinstance(gold, sp.Eq) and isinstance(pred, sp.Eq):
        if _is_name(gold.lhs) and gold.lhs == pred.lhs:
            return confirm(gold.rhs, pred.rhs)
        return _proportional(_difference(gold), _difference(pred), any_sign=True)
    if isinstance(gold, sp.Ne) and isinstance(pred, sp.Ne):
        return _proportional(_difference(gold), _difference(pred), any_sign=True)
    if _MIRROR.get(type(gold)) is None or _MIRROR.get(type(gold)) is not _MIRROR.get(type(pred)):
        return REFUTED
    return _proportional(_difference(gold), _difference(pred), any_sign=False)


def _difference(relation: Any) -> Any:
    """lhs - rhs, turned so that an inequality reads "smaller - larger"."""
    difference = exact(relation.lhs) - exact(relation.rhs)
    return -difference if isinstance(relation, sp.Gt | sp.Ge) else difference


def _proportional(gold: Any, pred: Any, *, any_sign: bool) -> str:
    gold, pred = sp.expand(gold.doit()), sp.expand(pred.doit())
    if gold.free_symbols != pred.free_symbols or not gold.free_symbols:
        return REFUTED if gold.free_symbols != pred.free_symbols else UNSURE
    ratio = sp.simplify(gold / pred)
    if ratio.free_symbols:
        # A ratio that varies refutes polynomials; of other functions it says nothing certain.
        symbols = sorted(gold.free_symbols, key=str)
        return REFUTED if gold.is_polynomial(*symbols) and pred.is_polynomial(*symbols) else UNSURE
    if ratio.is_zero or ratio.is_finite is False:
        return REFUTED
    if any_sign:
        return CONFIRMED if ratio.is_nonzero else UNSURE
    return CONFIRMED if ratio.is_positive else REFUTED if ratio.is_negative else UNSURE


def _as_set(relation: Any) -> Any:
    """The solution set of a relation in one unknown; |z| and f(x) count as real unknowns."""
    functions = sorted(relation.atoms(AppliedUndef), key=str)
    names = {f: sp.Symbol(f"value_{i}", real=True) for i, f in enumerate(functions)}
    parts = (
        [part.xreplace(names) for part in _written(relation)]
        if isinstance(relation, And)
        else [relation.xreplace(names)]
    )
    return sp.Intersection(*[_rational(part).as_set() for part in parts])


def _rational(relation: Any) -> Any:
    return relation.func(exact(relation.lhs), exact(relation.rhs))


def _written(value: Any) -> list[Any]:
    """The members in the order in which they were written, where the parser kept it."""
    return list(getattr(value, "_unsorted_args", value.args))


def _sets(gold: Any, pred: Any) -> str:
    for one, other in ((gold, pred), (pred, gold)):
        if isinstance(one, sp.Interval) and isinstance(other, sp.Tuple | sp.FiniteSet):
            # (1, 3) is read as an open interval, and may be a point
            if not (one.left_open and one.right_open) or len(other.args) != 2:
                return REFUTED
            return _all(confirm(a, b) for a, b in zip((one.start, one.end), _written(other), strict=True))
    if isinstance(gold, sp.Interval) and isinstance(pred, sp.Interval):
        if (gold.left_open, gold.right_open) != (pred.left_open, pred.right_open):
            return REFUTED
        return _all((_scalars(gold.start, pred.start), _scalars(gold.end, pred.end)))
    if isinstance(gold, sp.Tuple) and isinstance(pred, sp.Tuple):
        return _in_order(_written(gold), _written(pred))
    gold_items = _written(gold) if isinstance(gold, sp.FiniteSet | sp.Tuple) else None
    pred_items = _written(pred) if isinstance(pred, sp.FiniteSet | sp.Tuple) else None
    if gold_items is None and isinstance(gold, sp.Basic) and not isinstance(gold, sp.Set):
        gold_items = [gold]
    if pred_items is None and isinstance(pred, sp.Basic) and not isinstance(pred, sp.Set):
        pred_items = [pred]
    if gold_items is not None and pred_items is not None:
        tuples = isinstance(gold, sp.Tuple) or isinstance(pred, sp.Tuple)
        one_named = (len(_names(gold_items)) > 1) != (len(_names(pred_items)) > 1)
        if tuples or one_named:
            return _in_order(gold_items, pred_items)
        return _in_any_order(gold_items, pred_items)
    if isinstance(gold, sp.Set) and isinstance(pred, sp.Set):
        gold, pred = exact(gold), exact(pred)
        if gold == pred:
            return CONFIRMED
        empty = gold.symmetric_difference(pred).is_empty
        return {True: CONFIRMED, False: REFUTED}.get(empty, UNSURE)
    return UNSURE


def _names(items: list[Any]) -> set[Any]:
    return {item.lhs for item in items if isinstance(item, sp.Eq)}


def _in_order(gold: list[Any], pred: list[Any]) -> str:
    if len(gold) != len(pred):
        return REFUTED
    return _all(confirm(g, p) for g, p in zip(gold, pred, strict=True))


def _in_any_order(gold: list[Any], pred: list[Any]) -> str:
    gold, pred = _distinct(gold), _distinct(pred)
    if len(gold) != len(pred):
        return REFUTED
    rest, unsure = list(pred), False
    for g in gold:
        for i, p in enumerate(rest):
            verdict = confirm(g, p)
            unsure = unsure or verdict == UNSURE
            if verdict == CONFIRMED:
                del rest[i]
                break
        else:
            return UNSURE if unsure else REFUTED
    return CONFIRMED


def _distinct(items: list[Any]) -> list[Any]:
    return [item for i, item in enumerate(items) if item not in items[:i]]


def _matrices(gold: Any, pred: Any) -> str:
    gold, pred = gold.doit(), pred.doit()
    if not isinstance(gold, sp.MatrixBase) or not isinstance(pred, sp.MatrixBase):
        return UNSURE
    if gold.shape != pred.shape:
        return REFUTED
    return _all(_scalars(g, p) for g, p in zip(gold.flat(), pred.flat(), strict=True))


def exact(value: Any) -> Any:
    """The value with each float as the decimal fraction that was written, and percentages multiplied out."""
    if not isinstance(value, sp.Basic):
        return value
    return value.xreplace({f: _fraction(f) for f in value.atoms(sp.Float)} | {_PERCENT: sp.Rational(1, 100)})


def _fraction(number: Any) -> Any:
    return sp.Rational(str(number))


def _scalars(gold: Any, pred: Any) -> str:
    if not isinstance(gold, sp.Basic) or not isinstance(pred, sp.Basic):
        return UNSURE
    if gold.has(sp.nan, sp.zoo) or pred.has(sp.nan, sp.zoo):
        return UNSURE
    if gold == pred:
        return CONFIRMED
    decimal = _lone_decimal(gold), _lone_decimal(pred)
    gold, pred = exact(gold).doit(), exact(pred).doit()
    if gold == pred:
        return CONFIRMED
    if gold.is_Rational and pred.is_Rational:
        if decimal[0] is not None and decimal[1] is None:
            return _rounded(decimal[0], pred)
        if decimal[1] is not None and decimal[0] is None:
            return _rounded(decimal[1], gold)
        return REFUTED
    if gold.free_symbols != pred.free_symbols and (not gold.free_symbols or not pred.free_symbols):
        return _zero(gold - pred)
    if not gold.free_symbols:
        if decimal[0] is not None and decimal[1] is None:
            return _rounded(decimal[0], pred)
        if decimal[1] is not None and decimal[0] is None:
            return _rounded(decimal[1], gold)
        if _far_apart(gold, pred):
            return REFUTED
    return _zero(gold - pred)


def _lone_decimal(value: Any) -> Any:
    return value if isinstance(value, sp.Float) else None


def _rounded(decimal: Any, value: Any) -> str:
    """Whether a decimal is `value` rounded (half either way) to the decimal's own places, of six digits or more."""
    text = str(_plain(decimal)).lstrip("-")
    digits = text.replace(".", "").lstrip("0")
    if len(digits) < _ROUNDED_DIGITS or value.is_real is False:
        return REFUTED
    places = len(text.partition(".")[2])
    gap = abs(sp.Rational(str(_plain(decimal))) - value)
    half = sp.Rational(1, 2 * 10**places)
    if value.is_Rational:
        return CONFIRMED if gap <= half else REFUTED
    return CONFIRMED if bool(gap.evalf(_WORKING_DIGITS) <= half) else REFUTED


def _plain(decimal: Any) -> str:
    """A float's decimal text without exponent or trailing zeros."""
    fraction = sp.Rational(str(decimal))
    places = 0
    while fraction.q != 1 and places < 400:
        fraction, places = fraction * 10, places + 1
    digits = str(abs(int(fraction))).rjust(places + 1, "0")
    text = f"{digits[:-places]}.{digits[-places:]}" if places else digits
    return f"-{text}" if fraction < 0 else text


def _far_apart(gold: Any, pred: Any) -> bool:
    a, b = sp.N(gold, _WORKING_DIGITS), sp.N(pred, _WORKING_DIGITS)
    if not (a.is_number and b.is_number) or a.has(sp.nan, sp.oo, sp.zoo) or b.has(sp.nan, sp.oo, sp.zoo):
        return False
    scale = max(abs(a), abs(b), key=lambda v: sp.N(v, 20))
    return bool(abs(a - b) > scale * sp.Float(10) ** (10 - _WORKING_DIGITS))


def _zero(difference: Any) -> str:
    """Whether an expression without floats is zero for all values of its symbols, by proof."""
    if _nonzero_somewhere(difference):
        return REFUTED
    for attempt in (sp.expand, sp.simplify, sp.radsimp, lambda e: sp.simplify(sp.expand(e, trig=True)), sp.sqrtdenest):
        try:
            if attempt(difference) == 0:
                return CONFIRMED
        except (TypeError, ValueError, NotImplementedError, AttributeError):
            continue
    if not difference.free_symbols and difference.is_algebraic:
        variable = sp.Dummy("t")
        return CONFIRMED if sp.minimal_polynomial(difference, variable) == variable else REFUTED
    return UNSURE


def _nonzero_somewhere(difference: Any) -> bool:
    """Tries a few rational points; a value clearly off zero disproves an identity."""
    symbols = sorted(difference.free_symbols, key=str)
    for seeds in itertools.islice(((7, 3), (11, 5), (2, 13)), 3 if symbols else 1):
        point = {s: sp.Rational(seeds[0] + 2 * i, seeds[1]) for i, s in enumerate(symbols)}
        value = sp.N(difference.xreplace(point).doit(), 30)
        if value.is_number and value.is_finite and abs(value) > sp.Float("1e-15"):
            return True
    return False
