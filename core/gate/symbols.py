"""Tables of what is equal when typeset: LaTeX commands, Unicode signs, wrappers, spacing. Data only."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Commands that print one sign, or nothing that carries meaning. The sign is the canonical spelling.
_SIGNS = """
le leq leqslant leqq ≤ | ge geq geqslant geqq ≥ | ne neq ≠ | lt < | gt > | ll ≪ | gg ≫ | equiv ≡ | approx ≈
sim ∼ | simeq ≃ | cong ≅ | propto ∝ | doteq ≐ | mid vert lvert rvert | | nmid ∤ | Vert lVert rVert parallel ∥
nparallel ∦ | perp bot ⊥ | in ∈ | notin ∉ | ni ∋ | subset ⊂ | subseteq ⊆ | subsetneq ⊊ | supset ⊃ | supseteq ⊇ | cup ∪
cap ∩ | setminus smallsetminus backslash textbackslash ∖ | emptyset varnothing ∅ | times × | div ÷ | cdot ·
ast * | star ⋆ | circ ∘ | bullet • | pm ± | mp ∓ | oplus ⊕ | otimes ⊗ | infty ∞ | partial ∂ | nabla ∇
sum ∑ | prod ∏ | int ∫ | iint ∬ | oint ∮ | bigcup ⋃ | bigcap ⋂ | to rightarrow → | gets leftarrow ←
leftrightarrow ↔ | Rightarrow ⇒ | Leftarrow ⇐ | Leftrightarrow ⇔ | implies Longrightarrow ⟹
iff Longleftrightarrow ⟺ | impliedby Longleftarrow ⟸ | mapsto ↦ | longmapsto ⟼ | longrightarrow ⟶
longleftarrow ⟵ | longleftrightarrow ⟷ | uparrow ↑ | downarrow ↓ | forall ∀ | exists ∃
neg lnot ¬ | wedge land ∧ | vee lor ∨ | angle ∠ | measuredangle ∡ | triangle bigtriangleup vartriangle △
square Box □ | degree °
lfloor ⌊ | rfloor ⌋ | lceil ⌈ | rceil ⌉ | langle ⟨ | rangle ⟩ | ldots cdots dots dotsc dotsb dotsm textellipsis …
vdots ⋮ | ddots ⋱ | ell ℓ | Re ℜ | Im ℑ | aleph ℵ | hbar ℏ | pounds textsterling £ | euro texteuro €
textdegree ° | colon : | lbrack [ | rbrack ] | prime ′ | therefore ∴ | because ∵
S § | copyright © | textendash – | textemdash —
"""
_GREEK = """
alpha α beta β gamma γ delta δ epsilon ϵ varepsilon ε zeta ζ eta η theta θ vartheta ϑ iota ι kappa κ lambda λ
mu μ nu ν xi ξ pi π varpi ϖ rho ρ varrho ϱ sigma σ varsigma ς tau τ upsilon υ phi ϕ varphi φ chi χ psi ψ omega ω
Gamma Γ Delta Δ Theta Θ Lambda Λ Xi Ξ Pi Π Sigma Σ Upsilon Υ Phi Φ Psi Ψ Omega Ω
"""


def _signs() -> dict[str, str]:
    table: dict[str, str] = {}
    # A bar is both the separator and a sign, so the entries are read by their last word, not split on bars.
    names: list[str] = []
    for word in _SIGNS.split():
        if word.isascii() and word.isalpha():
            names.append(word)
            continue
        for name in names:
            table[name] = word
        names = []
    return table


SIGNS: dict[str, str] = _signs()
GREEK: dict[str, str] = dict(zip(_GREEK.split()[::2], _GREEK.split()[1::2], strict=True))
GREEK_LETTERS = frozenset(GREEK.values())

# One-character commands, in text and in formulas.
ESCAPED = {"%": "%", "#": "#", "&": "&", "_": "_", "{": "\\{", "}": "\\}", "|": "∥", "$": "\\$"}
NAMED_ESCAPES = {"lbrace": "\\{", "rbrace": "\\}", "textdollar": "\\$", "textbar": "|"}

# Unicode signs that are another spelling of a sign above.
UNICODE = {
    "−": "-", "∗": "*", "⋅": "·", "∙": "·", "⩽": "≤", "⩾": "≥", "≦": "≤", "≧": "≥", "∣": "|", "∆": "$Δ",
    "⟂": "⊥", "⊿": "△", "∅": "∅", "⌀": "∅", "⁄": "/", "∕": "/", "∶": ":", "⋯": "…", "µ": "$μ", "º": "°", "˚": "°",
    "％": "%", "＄": "\\$", "$": "\\$", "﹣": "-", "‑": "-", "‐": "-", "∖": "∖", "{": "\\{", "}": "\\}", "‖": "∥",
    "Ⅰ": "I", "Ⅱ": "II", "Ⅲ": "III", "Ⅳ": "IV", "Ⅴ": "V", "Ⅵ": "VI", "ⅰ": "i", "ⅱ": "ii", "ⅲ": "iii", "ⅳ": "iv",
    "ﬁ": "fi", "ﬂ": "fl", "\u00a0": " ",
}  # fmt: skip
DOUBLE_STRUCK = {"ℝ": "R", "ℕ": "N", "ℤ": "Z", "ℚ": "Q", "ℂ": "C", "ℙ": "P", "𝔽": "F"}

SPACING = words(
    ", ; : ! > thinspace medspace thickspace negthinspace enspace displaystyle textstyle scriptstyle "
    "scriptscriptstyle limits nolimits noindent centering par newline smallskip medskip bigskip linebreak hfill "
    "hfil break nobreak allowbreak null relax left right middle big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr "
    "Biggl Biggr bigm Bigm bf it rm sf tt em sl sc bfseries itshape normalfont rmfamily small large Large normalsize "
    "footnotesize tiny raggedright nonumber notag strut mathstrut protect"
) | {" ", "\n", "\t", "/"}
BREAKING = frozenset({"quad", "qquad", "\\", "cr", "newline"})
DROP_WITH_ARGUMENT = frozenset({"hspace", "vspace", "label", "hspace*", "vspace*", "color", "mspace", "hskip", "kern"})
# `\left` and its like take a delimiter; a full stop there prints nothing.
DELIMITER_SIZES = frozenset({"left", "right", "middle"})

# Wrappers round words that change their looks only. In a formula they hold running text.
TEXT_WRAPPERS = words(
    "text textrm textit textbf textsf texttt textsc textsl textnormal textup textmd mbox hbox emph textsuperscript"
)
# Upright letters in a formula: a word (`\mathrm{cm}`) or points (`\mathrm{ABC}`).
UPRIGHT = words("mathrm operatorname operatorname* mathop mathsf mathnormal mathit rm mathord mathrel mathbin")
ONE_ARGUMENT = words(
    "mathbb overline bar vec hat tilde dot ddot widehat widetilde overrightarrow overleftarrow overarc underline "
    "bold pmb symbf mathbf boldsymbol bm mathcal mathfrak mathscr "
    "boxed overbrace underbrace sqrt phantom wideparen overparen"
)
# Commands with one argument that print what another prints.
SAME_LOOK = {
    "bar": "overline", "overrightarrow": "vec", "widehat": "hat", "widetilde": "tilde", "boldsymbol": "mathbf",
    "bm": "mathbf", "bold": "mathbf", "pmb": "mathbf", "symbf": "mathbf", "overparen": "overarc",
    "wideparen": "overarc",
}  # fmt: skip
NUMBER_SETS = frozenset("NZQRC")  # in bold letters as in double-struck ones
FRACTIONS = frozenset({"frac", "dfrac", "tfrac", "cfrac", "nicefrac", "sfrac"})
BINOMIALS = frozenset({"binom", "dbinom", "tbinom"})
FUNCTIONS = words(
    "sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim limsup liminf max min sup inf gcd "
    "lcm det dim ker deg arg hom Pr mod"
)

# Environments whose content is a formula; line and column marks in them are layout.
MATH_ENVIRONMENTS = words(
    "equation align aligned gather gathered multline eqnarray displaymath math split flalign subequations"
)
MATH_WITH_ARGUMENT = frozenset({"alignat", "alignedat"})
# Here they are content.
GRID_ENVIRONMENTS = words(
    "matrix pmatrix bmatrix vmatrix Bmatrix Vmatrix smallmatrix cases dcases rcases array tabular"
)
LAYOUT_ENVIRONMENTS = words("center flushleft flushright enumerate itemize quote quotation document problem minipage")
FIGURES = frozenset({"asy", "tikzpicture", "figure", "picture", "asydef"})
