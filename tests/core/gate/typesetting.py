"""Competition problems written for these tests, and the ways in which other sites would print them. Data only."""

from __future__ import annotations

import re
from collections.abc import Callable

PROBLEMS = (
    r"Let $f(x)=x^2-\frac{3}{4}x+7$ for real $x$ with $x\le 12$. Find the sum of all $x$ such that $f(x)\ge 5$.",
    r"In triangle $ABC$, $AB=13$, $BC=14$ and $\angle ABC=60^\circ$. Point $D$ lies on $\overline{BC}$ so that "
    r"$BD<DC$. The length of $AD$ is $\sqrt{n}$. Find $n$.",
    r"How many ordered pairs $(m,n)$ of positive integers with $1\le m<n\le 2024$ satisfy $\gcd(m,n)=3$?",
    r"The sequence $a_1, a_2, \ldots$ has $a_1=2$ and $a_{n+1}=3a_n-1$. Find the remainder when $a_{100}$ is divided "
    r"by $1000$.",
    "Real numbers $x$ and $y$ satisfy\n\\[\\begin{aligned} x+y&=7\\\\ xy&=\\frac{9}{2}.\\end{aligned}\\]\n"
    "Find $x^2+y^2$.",
    r"Let \[S=\sum_{k=1}^{50}\frac{1}{k(k+1)}.\] Then $S=\tfrac{m}{n}$, where $m$ and $n$ are relatively "
    r"prime. Find $m+n$.",
    r"A fair coin is tossed $10$ times. The probability that at least $3$ heads appear is $\frac{p}{q}$. Find $p$.",
    r"Find the area of the region of all points $(x,y)$ with $\left|x-1\right|+\left|y\right|\leq 4$ and $x\neq y$.",
    r"Let $A=\{1,2,3,\ldots,20\}$. How many subsets of $A$ have no two elements whose difference is $\binom{4}{2}$?",
    r"A cube has edges of length $5\text{ cm}$, and $20\%$ of its volume is cut off. How many $\text{cm}^3$ remain?",
    r"Compute $\lfloor \pi\cdot 10^4 \rfloor$ if $3.14159<\pi<3.1416$. It is known that $\pi$ isn't rational.",
    r"Let $M=\begin{pmatrix}1&2\\0&3\end{pmatrix}$. Find the integer $k$ for which $\det(M-kI)=0$ and $k\ne 1$.",
    r"For how many integers $b>1$ is $\log_b 256$ a positive integer? (For example, $\log_2 256=8$ is one.)",
    r"Points $P$, $Q$ and $R$ lie on a circle of radius $9$ so that $PQ\parallel TR$ and $\triangle PQR$ is isosceles.",
    r"Let $S=\{x\in\mathbb{R} : x^2<9\}$. For a point $P$ with $P\in S\Rightarrow P\to Q$, find $\log 2-\frac{r}{s}$.",
)

_FORMULA = re.compile(r"(\\\[.+?\\\]|\$[^$]+\$)", re.DOTALL)


def _in_formulas(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(change(p) if k % 2 else p for k, p in enumerate(_FORMULA.split(text)))


def _in_words(change: Callable[[str], str]) -> Callable[[str], str]:
    return lambda text: "".join(p if k % 2 else change(p) for k, p in enumerate(_FORMULA.split(text)))


def _sub(pattern: str, new: str) -> Callable[[str], str]:
    return lambda part: re.sub(pattern, new, part, flags=re.DOTALL)


def _math(pattern: str, new: str) -> Callable[[str], str]:
    return _in_formulas(_sub(pattern, new))


VARIANTS: dict[str, Callable[[str], str]] = {
    "parentheses": _math(r"^\$(.+)\$$", r"\\(\1\\)"),
    "spaced delimiters": _math(r"^\$(.+)\$$", r"\\( \1 \\)"),
    "double dollars": _math(r"^\\\[(.+)\\\]$", r"$$\1$$"),
    "equation": _math(r"^\\\[(.+)\\\]$", r"\\begin{equation*}\1\\end{equation*}"),
    "gather": _math(r"^\\\[(.+)\\\]$", r"\\begin{gather}\n\1\n\\end{gather}"),
    "align": _math(r"^\\\[\\begin\{aligned\}(.+)\\end\{aligned\}\\\]$", r"\\begin{align*}\1\\end{align*}"),
    "split": _math(r"\{aligned\}", "{split}"),
    "geq": _math(r"\\(g|l|n)e(?![a-z])", r"\\\1eq"),
    "slanted": _math(r"\\(g|l)eq?(?![a-z])", r"\\\1eqslant"),
    "unicode relations": lambda t: _math(r"\\leq?(?![a-z]) ?", "≤")(_math(r"\\geq?(?![a-z]) ?", "≥")(t)),
    "html relations": _in_formulas(lambda p: p if "&" in p else p.replace("<", "&lt;").replace(">", "&gt;")),
    "dfrac": _math(r"\\t?frac", r"\\dfrac"),
    "tfrac": _math(r"\\frac", r"\\tfrac"),
    "short fractions": _math(r"\\frac\{(\d)\}\{(\d)\}", r"\\frac\1\2"),
    "over": _math(r"\\t?frac\{(\w)\}\{(\w)\}", r"{\1 \\over \2}"),
    "choose": _math(r"\\binom\{(\d)\}\{(\d)\}", r"{\1 \\choose \2}"),
    "no left": _math(r"\\(?:left|right)(?=[|(])", ""),
    "lvert": _math(r"\\left\|(.*?)\\right\|", r"\\lvert \1\\rvert "),
    "left brackets": _math(r"\(([^()]*)\)", r"\\left(\1\\right)"),
    "dots": _math(r"\\ldots", r"\\dots"),
    "full stops": _math(r"\\ldots", "..."),
    "degree sign": _math(r"\^\\circ", "°"),
    "degree braces": _math(r"\^\\circ", r"^{\\circ}"),
    "mathrm": _math(r"\\text\{", r"\\mathrm{"),
    "operator name": _math(r"\\(gcd|log|det)", r"\\operatorname{\1}"),
    "upright name": _math(r"\\(gcd|log|det)", r"\\mathrm{\1}"),
    "thin spaces": _math(r"=(?=[\w\\])(?!\\begin)", r"\\,=\\;"),
    "spaced operators": _math(r"(?<=[\w)}])([=+<>-])(?=[\w(\\])", r" \1 "),
    "braced scripts": _math(r"([_^])(\w)(?![}\w])", r"\1{\2}"),
    "bare roots": _math(r"\\sqrt\{(\w)\}", r"\\sqrt \1"),
    "unicode roots": _math(r"\\sqrt\{(\w)\}", r"√\1"),
    "unicode minus": _math("-", "−"),
    "short dash": _math("-", "–"),
    "unicode pi": _math(r"\\pi(?![a-z])", "π"),
    "unicode signs": _math(r"\\triangle ", "△"),
    "unicode squares": _math(r"\^2", "²"),
    "unicode indices": _math(r"_([12])(?!\d)", lambda m: "₁₂"[int(m.group(1)) - 1]),  # type: ignore[arg-type]
    "limits": _math(r"\\sum", r"\\sum\\limits"),
    "display style": _math(r"^\$(.+)\$$", r"$\\displaystyle \1$"),
    "brackets round a matrix": _math(
        r"\\begin\{pmatrix\}(.+)\\end\{pmatrix\}", r"\\left(\\begin{array}{cc}\1\\end{array}\\right)"
    ),
    "braces": _math(r"\\\{(.*?)\\\}", r"\\lbrace \1\\rbrace "),
    "plain numbers": _math(r"^\$(\d+)\$$", r"\1"),
    "plain letters": _math(r"^\$([B-HJ-Zb-z])\$$", r"\1"),
    "plain points": _math(r"^\$([A-Z]{2,4})\$$", r"\1"),
    "plain equations": _math(r"^\$([A-Z]+=\d+|n|k)\$$", r"\1"),
    "grouped digits": _math(r"(?<![\d.])(\d)(\d{3})(?![\d.])", r"\1{,}\2"),
    "slash": _math(r"\\t?frac\{(\w)\}\{(\w)\}(?=\$|\.)", r"\1/\2"),
    "no stop": _math(r"^\\\[(.+\})\.\\\]$", r"\\[\1\\]"),
    "bar of a set": _math(r" : ", r" \\mid "),
    "long arrows": _math(r"\\Rightarrow(.+)\\to", r"\\implies\1\\longrightarrow"),
    "brackets of a function": _math(r"\\log (\d)", r"\\log(\1)"),
    "stars": _math(r"^\$([B-HJ-Zb-z])\$$", r"*\1*"),
    "doubled": lambda t: t.replace("\\", "\\\\"),
    "tags": lambda t: "<p>" + t.replace("\n", "<br>") + "</p>",
    "entities": _in_words(lambda p: p.replace("'", "&#39;")),
    "smart quotes": _in_words(lambda p: p.replace("'", "’")),
    "emphasis": _in_words(lambda p: re.sub(r"\b(positive|real|ordered|fair)\b", r"*\1*", p)),
    "bold": _in_words(lambda p: re.sub(r"\b(positive|real|ordered|fair)\b", r"**\1**", p)),
    "textit": _in_words(lambda p: re.sub(r"\b(positive|real|ordered|fair)\b", r"\\textit{\1}", p)),
    "line breaks": _in_words(lambda p: p.replace(" and ", "\nand\n")),
    "ties": _in_words(lambda p: re.sub(r"(?<=\w) $", "~", p)),
    "number": lambda t: "7. " + t,
    "label": lambda t: "Problem 7.\n" + t,
    "bold label": lambda t: "**Problem 7.** " + t,
    "comma inside": lambda t: re.sub(r"\$([^$]+)\$([.,])", r"$\1\2$", t),
}

# One sign of a formula changed: another problem, whatever the typesetting.
CHANGES: tuple[tuple[str, str], ...] = (
    (r"\\le\b", "<"), (r"\\ge\b", ">"), (r"(?<=[\d)}])=(?=\d)", "<"), (r"\+", "-"), (r"-", "+"), (r"\^", "_"),
    (r"_", "^"), (r"\\frac\{(\w)\}\{(\w)\}", r"\\frac{\2}{\1}"), (r"\\overline", ""), (r"\\sqrt", ""),
    (r"\\left\|(.*?)\\right\|", r"(\1)"), (r"\((\w,\w)\)", r"[\1]"), (r"<", r"\\le "), (r"\\cdot", "+"),
    (r"\\angle", r"\\triangle "), (r"\^\\circ", ""), (r"\\%", ""), (r"\\text\{ cm\}", r"\\text{ m}"),
    (r"\\parallel", r"\\perp "), (r"\\neq?\b", "="), (r"\\gcd", r"\\max"), (r"\\pi", r"\\phi"), (r"(?<=\d)&(?=\d)", ""),
    (r"\\lfloor", r"\\lceil"), (r"\\binom", r"\\frac"), (r"(?<=\d)\.(?=\d)", ""), (r"(?<=\d),(?=\d)", ""),
)  # fmt: skip


def changed(text: str) -> list[str]:
    """Every text that differs from `text` in one sign of one formula, in one letter, or in one number."""
    out = []
    spans = [m.span() for m in _FORMULA.finditer(text)]
    for first, last in spans:
        part = text[first:last]
        for pattern, new in CHANGES:
            for found in re.finditer(pattern, part):
                other = part[: found.start()] + re.sub(pattern, new, found.group(), count=1) + part[found.end() :]
                if new == "" or pattern.startswith("(?<"):
                    other = part[: found.start()] + new + part[found.end() :]
                out.append(text[:first] + other + text[last:])
        for found in re.finditer(r"(?<![\\A-Za-z{])[A-Za-z](?![A-Za-z])|\d", part):
            old = found.group()
            new = str((int(old) + 1) % 10) if old.isdigit() else chr(ord(old) ^ 1) if old not in "Zz" else "q"
            out.append(text[:first] + part[: found.start()] + new + part[found.end() :] + text[last:])
    return [other for other in out if other != text]
