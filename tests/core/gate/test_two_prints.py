"""What sites print in two ways (fractions with a slash, arrows, Markdown variables, sets): one form only where safe."""

from __future__ import annotations

import pytest

from core.gate import Policy, Verdict, canonical, judge
from core.gate.canonical import tokens_of

FRACTIONS_SAME = [
    (r"It is written as $\frac{m}{n}$ there.", "It is written as $m/n$ there."),
    (r"It is written as $\tfrac mn$, where", "It is written as m/n, where"),
    (r"Let $f\left(\frac{x}{3}\right)=x^2$.", "Let $f(x/3)=x^2$."),
    (r"Both $\lfloor \frac{n}{9}\rfloor$ and $-\frac{\pi}{2}$ are.", r"Both $\lfloor n/9\rfloor$ and $-\pi/2$ are."),
    (r"Find $x+\frac{1}{b^2}-\frac{a_1}{3}$.", "Find $x + 1/b^2 - a_1/3$."),
    (r"Find $2^{\frac{1}{2}}$ and $\sqrt{\frac{3}{4}}$.", r"Find $2^{1/2}$ and $\sqrt{3/4}$."),
    (r"It takes $\frac{3}{4}$ cup of it.", "It takes 3/4 cup of it."),
    (r"The points $(\frac{1}{2},\frac{3}{2})$ lie there.", "The points $(1/2, 3/2)$ lie there."),
    (r"Let $x=\frac{y^2}{3}$ be.", "Let $x=y^2/3$ be."),
    (
        r"$\text{(A)}\ \frac{1}{b^2} \qquad \text{(B)}\ \frac{1}{b} \qquad \text{(C)}\ 3$",
        r"(A) $1/b^2$ (B) $1/b$ (C) $3$",
    ),
    ("½ of it and ¼ more", "1/2 of it and 1/4 more"),
    (r"Find $\frac{N}{10}$.", "Find $N/10$"),
]
FRACTIONS_DIFFER = [
    (r"Find $\frac{2m}{n}$.", "Find $2m/n$."),
    (r"Find $2\frac{m}{n}$.", "Find $2m/n$."),
    (r"Find $\frac{1}{2}x$.", "Find $1/2x$."),
    (r"Find $\frac{1}{2}x$.", "Find 1/2 x."),
    (r"Find $\frac{1}{2}$ $x$.", "Find $1/2$ $x$."),
    (r"Find $x$ $\frac{1}{2}$.", "Find $x$ $1/2$."),
    (r"Take $2\frac{1}{2}$ cups.", "Take 2 1/2 cups."),
    (r"Take $2-\frac{1}{2}$ cups.", "Take 2-1/2 cups."),
    (r"Find $\frac{1}{2}(x+1)$.", "Find $1/2(x+1)$."),
    (r"Find $\frac{a}{b}\cdot c$.", r"Find $a/b\cdot c$."),
    (r"Find $a\cdot\frac{b}{c}$.", r"Find $a\cdot b/c$."),
    (r"Find $\frac{a}{b}/c$.", "Find $a/b/c$."),
    (r"Find $\frac{n}{2}!$.", "Find $n/2!$."),
    (r"Find $\sin\frac{x}{2}$.", r"Find $\sin x/2$."),
    (r"Find $\log_2\frac{x}{2}$.", r"Find $\log_2 x/2$."),
    (r"Find $\sum_{k=1}^{n}\frac{k}{2}$.", r"Find $\sum_{k=1}^{n} k/2$."),
    (r"Find $\frac{1}{2}\%$ of it.", r"Find $1/2\%$ of it."),
    (r"Let $a|\frac{b}{c}$.", "Let $a|b/c$."),
    (r"Find $\frac{f'}{g}$.", "Find $f'/g$."),
    (r"Find $\sqrt{\frac{2}{3}}$.", r"Find $\sqrt{2}/3$."),
    (r"Find $\frac{x^2}{3}$.", "Find x^2/3."),
    (r"Find $x^{\frac12}$.", "Find $x^1/2$."),
    (r"Find $\frac{x^1}{2}$.", "Find $x^1/2$."),
    (r"Find $6$ divided by $\frac12$.", "Find 6 divided by 1/2."),
    (r"Find the square root of $\frac{2}{3}$.", "Find the square root of 2/3."),
    (r"Find $\frac{n}{2}$ factorial.", "Find n/2 factorial."),
    (r"The ratio is $1:\frac{2}{3}$.", "The ratio is $1:2/3$."),
    (r"On $\frac{9}{11}$/2001 it was.", "On 9/11/2001 it was."),
    (r"The Legendre symbol $\left(\frac{a}{p}\right)$ is.", "The Legendre symbol $(a/p)$ is."),
    (r"Find $\frac{x+1}{2}$.", "Find $x+1/2$."),
    (r"Find $\frac{1}{x+1}$.", "Find $1/x+1$."),
    (r"Find $\frac{AB}{CD}$.", "Find $AB/CD$."),
    (r"Find $\frac{dy}{dx}$.", "Find $dy/dx$."),
    (r"He came $\frac{w}{o}$ it.", "He came w/o it."),
    (r"Find $\frac{m}{n}$.", "Find $n/m$."),
    (r"A box $\frac{w}{5}$ pens.", "A box w/ 5 pens."),
    (r"A box $\frac{w}{5}$ pens.", "A box w/5 pens."),
    (r"Find $\frac{1}{10}$.", "Find $1/100$."),
    (r"Find $\frac{1}{2}_3$.", "Find $1/2_3$."),
    (r"Find $\binom{m}{n}$.", "Find $m/n$."),
    (r"Find $\frac12 \bmod 7$.", r"Find $1/2 \bmod 7$."),
    (r"Find $\operatorname{rad}\frac{m}{n}$.", r"Find $\operatorname{rad} m/n$."),
    (r"Find $\text{rank}\ \frac{m}{n}$.", r"Find $\text{rank}\ m/n$."),
    (r"Find $\frac12$ sqrt(3).", "Find 1/2 sqrt(3)."),
    (r"Find $\frac12$ pi.", "Find 1/2 pi."),
    (r"Find $\frac12$ vol(K).", "Find 1/2 vol(K)."),
    (r"Find $\frac12$ dx.", "Find 1/2 dx."),
    (r"Find sqrt $\frac12$.", "Find sqrt 1/2."),
]
SIGNS_SAME = [
    (r"Then $A\implies B$ and $B\iff C$.", r"Then $A\Rightarrow B$ and $B\Leftrightarrow C$."),
    (r"Let $f:A\longrightarrow B$ be.", r"Let $f:A\to B$ be."),
    (r"for vectors $\bold{v}$ and $\pmb w$", r"for vectors $\mathbf{v}$ and $\boldsymbol{w}$"),
    (r"Find $\log(x)+\sin(2)$.", r"Find $\log x+\sin 2$."),
    (r"Find $\log_2(x)$ and $\cos^2(\theta)$.", r"Find $\log_2 x$ and $\cos^2\theta$."),
    (r"It is $10\cdot\gcd(m,n)$.", r"It is $10\gcd(m,n)$."),
    (r"Find $\max_{\substack{1\le k\le n}} a_k$.", r"Find $\max_{1\le k\le n} a_k$."),
    ("Let a denote the number with $b=2$.", "Let $a$ denote the number with $b=2$."),
    ("a $13$th root and the 13 th one", r"a 13th root and the $13\text{th}$ one"),
    ("the $13$-th one", "the 13-th one"),
    (r"the $21$st and the $3\text{rd}$ one", "the 21st and the 3rd one"),
    ("with x^2 - xy - 6y^2 = 0", "with $x^2-xy-6y^2=0$"),
    (r"pay \$1{,}250 or \$1{,}000{,}000.50 now", r"pay \$1,250 or \$1000000.50 now"),
    (r"Let \[x=1.\] Find $x$.", r"Let \[x=1\] Find $x$."),
    (r"Let \[x=1\] Find $x$.", "Let $x=1$. Find $x$."),
]
SIGNS_DIFFER = [
    (r"If $A\Rightarrow B$ then $A\implies C$.", r"If $A\Rightarrow B$ then $A\Rightarrow C$."),
    (r"Let $x\to y$ and $y\longrightarrow z$.", r"Let $x\to y$ and $y\to z$."),
    (r"Then $A\implies B$.", r"Then $A\iff B$."),
    (r"Find $\bold{v}$.", "Find $v$."),
    (r"Find $\log(x)y$.", r"Find $\log xy$."),
    (r"Find $\sin(x)^2$.", r"Find $\sin x^2$."),
    (r"Find $\sin(x)!$.", r"Find $\sin x!$."),
    (r"Find $\log(x)/2$.", r"Find $\log x/2$."),
    (r"Find $\log(x+1)$.", r"Find $\log x+1$."),
    (r"Find $\gcd(x)$.", r"Find $\gcd x$."),
    (r"Find $1/2\cdot\sin x$.", r"Find $1/2\sin x$."),
    (r"Find $x^2\cdot\sin x$.", r"Find $x^{2\sin x}$."),
    (r"Let $a\cdot b=a+b+1$. Find $2\cdot\gcd(4,6)$.", r"Let $a\cdot b=a+b+1$. Find $2\gcd(4,6)$."),
    (r"$\max_{\substack{1\le k\\k\ne 3}} a_k$", r"$\max_{1\le k k\ne 3} a_k$"),
    ("Let a number be it, x = 3.", "Let $a$ number be it, x = 3."),
    (r"the $1$th one", "the 1st one"),
    ("the $13$-th one", "the 14th one"),
    ("He weighs 21 st.", "He weighs 21st."),
    ("He ca n't come.", "He $ca$ n't come."),
    ("add 2 + $13$ th", "add 2 + 13"),
    (r"pay \$1{,}25 now", r"pay \$125 now"),
    (r"pay \$1{,}2500 now", r"pay \$12500 now"),
    (r"the pair (1{,}250,x)", "the pair (1,250,x)"),
    (r"Let \[x=1\] where $x$ is.", r"Let \[x=1.\] where $x$ is."),
    (r"Let \[x=1,\] Tom had.", r"Let \[x=1.\] Tom had."),
    (r"Let $x=1$ Find $x$.", "Let $x=1$. Find $x$."),
]
MARKUP_SAME = [
    ("Let *P* and *Q* be points with *PQ* = *QR*.", "Let $P$ and $Q$ be points with $PQ$ = $QR$."),
    ("Find *m* + *n* if 3<sup>*k*</sup> is.", "Find $m$ + $n$ if $3^k$ is."),
    ("two red (**R**) and blue (**B**)", r"two red ($\textbf{R}$) and blue ($\textbf{B}$)"),
    ("'''Note''': find $x$.", "Note: find $x$."),
    (r"Find \\(\\frac{m}{n}\\) if \\(x\\le 3\\).", r"Find \(\frac{m}{n}\) if \(x\le 3\)."),
    (r"Find $\\sqrt{x}$ if \\[x\\\\y\\]", r"Find $\sqrt{x}$ if \[x\\y\]"),
]
MARKUP_DIFFER = [
    ("Find 2 *x* 3.", "Find 2 x 3."),
    ("Find a*b*c.", "Find abc."),
    ("Find x *y* z.", "Find x y z."),
    ("Find 3 *x* of 4.", "Find 3 x of 4."),
    ("Let *n* = n(n+1). Find *a* if a = 3.", "Let n = n(n+1). Find a if a = 3."),
    ("Let *n* = $n(n+1)$. Find *a*.", "Let $n$ = $n(n+1)$. Find $a$."),
    ("Let *n* be odd. Find *12*.", "Let $n$ be odd. Find *12*."),
    ("Let *n* be odd. Find 2 * 3.", "Let $n$ be odd. Find 2 * 3."),
    ("Let **v** be a vector.", "Let $v$ be a vector."),
    ("Find $$x = *b* + c$$ now.", "Find $$x = b + c$$ now."),
    (r"Find \[x = *b* + c\] now.", r"Find \[x = b + c\] now."),
    ("Find *a* if **a** is.", "Find $a$ if $a$ is."),
    (r"Find \\(x\\) if \(y\).", r"Find \(x\) if \(y\)."),
    (r"$$x=1\\y=2$$ holds.", r"$$x=1\y=2$$ holds."),
    (r"\[x=1\\(y+1)=2\] holds.", r"\[x=1(y+1)=2\] holds."),
    ("the 3'''4'''5 code", "the 345 code"),
]
ROWS_SAME = [
    (r"\[\begin{array}{rcl}x+y&=&1\\ x&<&2.\end{array}\] Then", r"\begin{align*}x+y&=1\\x&<2.\end{align*} Then"),
    (r"$$\begin{array}{l}x=1\\y=2\end{array}$$ holds", r"\[\begin{aligned}x&=1\\y&=2\end{aligned}\] holds"),
    (r"$\left\{\begin{aligned}x&=1\\y&=2\end{aligned}\right.$", r"$\begin{cases}x=1\\y=2\end{cases}$"),
]
ROWS_DIFFER = [
    (r"\[\begin{array}{cc}1&2\\3&4\end{array}\]", r"\[\begin{aligned}1&2\\3&4\end{aligned}\]"),
    (r"\[\begin{array}{c}1\\2\end{array}\]", r"\[\begin{aligned}1\\2\end{aligned}\]"),
    (r"\[\left(\begin{array}{c}x=1\\y=2\end{array}\right)\]", r"\[\begin{aligned}x=1\\y=2\end{aligned}\]"),
    (r"\[\begin{array}{l}x=1\\y=2\end{array}\]", r"\[\begin{array}{l}x=1y=2\end{array}\]"),
    (r"\[\begin{array}{cc}x=1&y=2\end{array}\]", r"\[\begin{aligned}x=1y=2\end{aligned}\]"),
    (r"$\left\{\begin{aligned}x&=1\\y&=2\end{aligned}\right\}$", r"$\begin{cases}x=1\\y=2\end{cases}$"),
]
SETS_SAME = [
    (r"Let $S=\{x\mid x>0\}$.", r"Let $S=\{x:x>0\}$."),
    (r"Let $S=\{(x,y)\in\mathbb{R}^2 | x+y=|x|\}$.", r"Let $S=\{(x,y)\in\mathbb{R}^2 : x+y=|x|\}$."),
    (r"Let $S=\{n \in A_1 \mid n\le 5\}$.", r"Let $S=\{n\in A_1\colon n\leq 5\}$."),
]
SETS_DIFFER = [
    (r"Let $S=\{d\mid 12\}$.", r"Let $S=\{d:12\}$."),
    (r"Let $S=\{d\mid n\}$.", r"Let $S=\{d:n\}$."),
    (r"Let $S=\{x | x| > 1\}$.", r"Let $S=\{x : x| > 1\}$."),
    (r"Let $S=\{n : n\mid 12, n>1\}$.", r"Let $S=\{n : n : 12, n>1\}$."),
    (r"Let $S=\{a\mid b : b>0\}$.", r"Let $S=\{a : b : b>0\}$."),
    (r"Let $S=\{2n\mid n>0\}$.", r"Let $S=\{2n:n>0\}$."),
    (r"Let $(x\mid x>0)$.", r"Let $(x:x>0)$."),
    (r"Let $S=\{x\mid x>0\}$.", r"Let $S=\{x\mid x\ge 0\}$."),
    (r"Let $\{a,b\mid c=1\}$.", r"Let $\{a,b:c=1\}$."),
]
LISTS_SAME = [
    (r"It takes 2 $\frac{1}{2}$ hours.", r"It takes $2\frac{1}{2}$ hours."),
    ("Find 5!.", "Find $5!$."),
    (
        r"Find $x$. $(\mathbf{A})\ 1\qquad(\mathbf{B})\ 2\qquad(\mathbf{C})\ 3\qquad(\mathbf{D})\ 4$",
        r"Find $x$. $\text{(A) }1\qquad\text{(B) }2\qquad\text{(C) }3\qquad\text{(D) }4$",
    ),
    ("Find it. (A) -9 (B) -8 (C) 7", "Find it. $(A)\\ -9\\qquad (B)\\ -8\\qquad (C)\\ 7$"),
    ("Two hold: - For each set. - If not.", "Two hold: • For each set. • If not."),
    ("(Ⅰ) Find it. (Ⅲ) Find $b$.", "(I) Find it. (III) Find $b$."),
    ("the arcs ACᵢ and xₖ", "the arcs $AC_i$ and $x_k$"),
    (r"Find $\sqrt [3] {n}$.", r"Find $\sqrt[3]{n}$."),
]
LISTS_DIFFER = [
    (r"Find $\det(\mathbf{A})+\det(\mathbf{B})$.", r"Find $\det(A)+\det(B)$."),
    ("Find it. (A) -9 (B) -8", "Find it. (A) 9 (B) 8"),
    ("It is $x$: - Find it.", "It is $x$: Find it."),
    ("5 - For each", "5 • For each"),
    (r"Find $\sqrt{3}n$.", r"Find $\sqrt[3]n$."),
]
# Found by an attack: each pair was one form once.
ATTACKED = [
    ("If $n^2=16$ and $n>0$, find $n$!", "If $n^2=16$ and $n>0$, find $n!$."),
    ("n < 10 satisfy n != 6?", "n < 10 satisfy n! = 6?"),
    ("pairs (i, j) with i!=j", "pairs (i, j) with i! = j"),
    (r"$|2\vec a\times3\vec b|$", r"$|2\vec a\cdot3\vec b|$"),
    (r"Find $|a\times 2b|$ for the vectors a and b.", r"Find $|a\cdot 2b|$ for the vectors a and b."),
    ("Find $f(2{,}5)$.", "Find $f(2,5)$."),
    (r"$\{0{,}5\}$", r"$\{0,5\}$"),
    (r"\begin{align*} x &= 3 && y &= z \\ z&=6\end{align*}", r"\begin{align*} x &= 3 y = z \\ z&=6\end{align*}"),
    (r"\begin{align*} x &= 3 & -2y &= 4\end{align*}", r"\[x=3-2y=4\]"),
    (r"\begin{align*} a &= 3 & \lvert b\rvert &= c\end{align*}", r"\[a=3\lvert b\rvert=c\]"),
    (r"Solve \[a=2\hspace{2em}b=5c\]", r"Solve \[a=2b=5c\]"),
    (r"Solve \[a=2\hfill b=5c\]", r"Solve \[a=2b=5c\]"),
    (r"Solve \[a=2\ \ b=5c\]", r"Solve \[a=2b=5c\]"),
    (r"Solve \[a=2\;\;\;b=5c\]", r"Solve \[a=2b=5c\]"),
    ("Find 𝐚·𝐛.", "Find a·b."),
    ("roots in 𝔽₅", "roots in F₅"),
    ("𝒫(A)", "P(A)"),
    ("Find <b>a</b>·<b>b</b>.", "Find a·b."),
    ("shown 6 $(n+1)$ times", "shown $6(n+1)$ times"),
    (r"adds 2 $\binom{n}{2}$ times", r"adds $2\binom{n}{2}$ times"),
    ("2 $|S|$ times", "$2|S|$ times"),
    (r"2 $\frac{n}{2}$ times", r"$2\frac{n}{2}$ times"),
    (r"2 $\log_2 n$ times", r"$2\log_2 n$ times"),
    ("points 6 $-3$", "points $6-3$"),
    ("repeat $n!$ 2 times", "repeat $n!2$ times"),
    ("Compute log2 8/4.", r"Compute log2 $\frac{8}{4}$."),
    ("Evaluate 1/2rs when", "Evaluate ½rs when"),
    ("Find 1/2 sin30.", "Find ½ sin30."),
    (r"Find $1/n\operatorname{tr}(A)$.", r"Find $\frac1n\operatorname{tr}(A)$."),
    ("is √24n an integer?", r"is $\sqrt{24}n$ an integer?"),
    ("Solve √2/3=x", r"Solve $\sqrt{2}/3=x$"),
    ("What is x--y if", "What is x–y if"),
    (
        r"The symbol $\times$ stands for addition. Find $(3\cdot 4)\times 5$.",
        r"The symbol $\times$ stands for addition. Find $(3\times 4)\cdot 5$.",
    ),
    (r"Solve $$y=x\\cos y = 0$$", r"Solve $$y=x\cos y = 0$$"),
    ("Find $1/a_{n}!$.", r"Find $\frac1{a_n}!$."),
    (": - Five plus", ": • Five plus"),
]
SAME = [*LISTS_SAME, *FRACTIONS_SAME, *SIGNS_SAME, *MARKUP_SAME, *ROWS_SAME, *SETS_SAME]
OTHER = [*ATTACKED, *LISTS_DIFFER, *FRACTIONS_DIFFER, *SIGNS_DIFFER, *MARKUP_DIFFER, *ROWS_DIFFER, *SETS_DIFFER]


@pytest.mark.parametrize(("left", "right"), SAME)
def test_two_prints_of_one_problem_are_one_form(left: str, right: str) -> None:
    assert canonical(left) == canonical(right)
    assert judge(left, right, Policy.STRICT).verdict is Verdict.GRAFT


@pytest.mark.parametrize(("left", "right"), OTHER)
def test_what_could_mean_something_else_keeps_its_form(left: str, right: str) -> None:
    assert canonical(left) != canonical(right)


@pytest.mark.parametrize("text", [text for pair in (*SAME, *OTHER) for text in pair])
def test_places_are_those_of_the_text(text: str) -> None:
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens_of(text))
