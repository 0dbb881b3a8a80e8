"""Draw the figures of the written pages: ``python book/figures.py`` writes them to static/.

They are in dark ink on no ground; the dark theme inverts them. A pair stands side by side, or one
below the other on a narrow screen.
"""

from pathlib import Path

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath

from capcal_lib.book.style import font_files
from capcal_lib.metrics import binomial_interval

STATIC = Path(__file__).parent / "static"
INK, MUTED, CORRECT, INCORRECT = "#1a1a1a", "#6b6b6b", "#17616b", "#bc3e0b"
WIDTH = 344
SANS = font_files()[:3]  # upright, italic and semibold; an image cannot use the faces of its page
TIP = (
    f'<marker id="tip" markerWidth="7" markerHeight="8" refX="2" refY="4" '
    f'orient="auto"><path d="M0 0 L7 4 L0 8 z" fill="{MUTED}"/></marker>'
)
MU, PEOPLE, SEED = 0.6, 20, 4


def drawing(height: int, *parts: str) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}">'
    return "\n".join([head, *parts, "</svg>", ""])


def text(
    x: float, y: float, words: str, *, color: str = INK, size: float = 13, cut: int = 0
) -> str:
    """Draw words about a place as outlines in the face of all figures."""
    outlines = TextPath((0, 0), words, size=size, prop=FontProperties(fname=SANS[cut]))
    left, right = outlines.get_extents().intervalx
    steps = [
        "Z"
        if code == Outline.CLOSEPOLY
        else "MLQC"[code - 1] + " ".join(f"{point:.1f}".removesuffix(".0") for point in points)
        for points, code in outlines.iter_segments()
    ]
    place = f"translate({x - (left + right) / 2:.2f} {y:g}) scale(1 -1)"
    return f'<path d="{"".join(steps)}" fill="{color}" transform="{place}"/>'


def stroke(path: str, color: str = MUTED, width: float = 1.5, more: str = "") -> str:
    return f'<path d="{path}" fill="none" stroke="{color}" stroke-width="{width:g}"{more}/>'


def box(x: float, width: float, words: str) -> str:
    frame = (
        f'<rect x="{x}" y="32" width="{width}" height="34" rx="8" fill="none" '
        f'stroke="{MUTED}" stroke-width="1.5"/>'
    )
    return frame + text(x + width / 2, 54, words)


def arrow(start: float, end: float) -> str:
    return stroke(f"M{start} 49 H{end - 9}", more=' marker-end="url(#tip)"')


def answer(x: float, y: float, correct: bool) -> str:
    """Draw a graded answer: a tick in a disc, or a cross in a ring."""
    ring = (
        f'fill="{CORRECT}" stroke="{CORRECT}"' if correct else f'fill="none" stroke="{INCORRECT}"'
    )
    tick, cross = f"M{x - 5:g} {y:g} l4 4.5 l6.5 -8", f"M{x - 4:g} {y - 4:g} l8 8 m0 -8 l-8 8"
    mark = stroke(tick, "#fff", 2) if correct else stroke(cross, INCORRECT, 2)
    return f'<circle cx="{x:g}" cy="{y:g}" r="10.5" stroke-width="1.5" {ring}/>{mark}'


def asked(verdicts: list[list[bool]], caption: str) -> str:
    """Draw a question, the model, and its graded answers in rows."""
    answers = [
        answer(222 + 27 * column, 49 + 28 * (number - (len(verdicts) - 1) / 2), correct)
        for number, row in enumerate(verdicts)
        for column, correct in enumerate(row)
    ]
    boxes = [
        f"<defs>{TIP}</defs>",
        box(4, 86, "question x"),
        arrow(92, 114),
        box(116, 70, "model f"),
        arrow(188, 208),
    ]
    return "\n".join(
        [*boxes, *answers, text(222 + 13.5 * (len(verdicts[0]) - 1), 96, caption, color=MUTED)]
    )


def target(value: float, label: str, confidence: float, whose: str) -> str:
    """Draw the unit interval with the target above it and a confidence below."""
    low, high = 36, 308
    at, s = (low + share * (high - low) for share in (value, confidence))
    ends = [stroke(f"M{x} 167 v10") for x in (low, high)]
    ends += [text(low - 12, 176, "0", color=MUTED), text(high + 12, 176, "1", color=MUTED)]
    mark = (
        f'<circle cx="{at:g}" cy="172" r="6" fill="{CORRECT}"/>'
        f"{text(min(at, high - 34), 156, label, color=CORRECT)}"
    )
    said = stroke(f"M{s:g} 164 v16", INK, 3) + text(s, 200, f"confidence {whose}")
    return "\n".join([stroke(f"M{low} 172 H{high}"), *ends, mark, said])


def hidden_state() -> str:
    """Draw the tokens of a question below the layers of a model, and a probe that reads the states
    of the last token in all layers.
    """
    columns, rows = range(14, 171, 26), (49, 79, 109)
    cells = " ".join(f"M{x} {y - 9} h18 v18 h-18 z" for x in columns for y in rows)
    x = columns[-1]
    read = [f'<rect x="{x}" y="{y - 9}" width="18" height="18" fill="{CORRECT}"/>' for y in rows]
    layers = " ".join(f"M{x + 9} {y + 21} v-12" for x in columns for y in rows)
    tokens = " ".join(f"M{x} 136 h18" for x in columns)
    return drawing(
        166,
        f"<defs>{TIP}</defs>",
        stroke(cells),
        *read,
        stroke(layers, width=1),
        stroke(tokens, width=6),
        text(92, 159, "question x", color=MUTED),
        text(150, 24, "hidden states", color=CORRECT),
        arrow(194, 216),
        box(218, 64, "probe"),
        arrow(284, 306),
        text(326, 54, "s(x)"),
    )


def repetitions(n: int, rng: np.random.Generator) -> str:
    """Draw what many people estimate who each asked ``n`` times, with their Jeffreys intervals."""
    counts = rng.binomial(n, MU, PEOPLE)
    intervals = binomial_interval(counts, np.full(PEOPLE, n))
    left, right, top, step = 16, 328, 30, 9

    def place(share: float) -> str:
        return f"{left + share * (right - left):.1f}"

    bottom = top + step * PEOPLE
    parts = [
        text(WIDTH / 2, 16, f"each asks {n} times"),
        stroke(f"M{place(MU)} {top - 6} V{bottom}", MUTED, 1.5),
    ]
    for y, count, (start, end) in zip(range(top, bottom, step), counts, intervals, strict=True):
        color = CORRECT if start <= MU <= end else INCORRECT
        parts += [stroke(f"M{place(start)} {y} H{place(end)}", color, 2)]
        parts += [f'<circle cx="{place(count / n)}" cy="{y}" r="3" fill="{color}"/>']
    parts += [stroke(f"M{left} {bottom} H{right}")]
    for share in (0, 0.5, 1):
        parts += [
            stroke(f"M{place(share)} {bottom} v5"),
            text(float(place(share)), bottom + 18, f"{share:g}"),
        ]
    return drawing(bottom + 26, *parts)


LOGO = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 300 96" role="img" aria-label="capcal: \
capability calibration">
<rect x="8" y="8" width="80" height="80" rx="14" fill="#10353b"/>
<path d="M18 78 L78 18" stroke="#f4f1ea" stroke-opacity=".55" stroke-width="2.5" \
stroke-dasharray="1 6" stroke-linecap="round"/>
<path d="M22 70 C36 68 36 52 46 48 S62 40 74 24" fill="none" stroke="#f4f1ea" stroke-width="3" \
stroke-linecap="round"/>
<circle cx="22" cy="70" r="5" fill="#009e73"/>
<circle cx="38.500" cy="55" r="5.500" fill="#56b4e9"/>
<circle cx="56" cy="43.500" r="6" fill="#e69f00"/>
<circle cx="74" cy="24" r="5" fill="#009e73"/>
"""


def logo() -> str:
    name = text(160, 52, "capcal", color="#56939b", size=42, cut=2)
    return "\n".join(
        [
            f"{LOGO}{name}",
            text(172, 78, "capability calibration", color="#6b7a7c", size=16),
            "</svg>",
            "",
        ]
    )


def displays() -> None:
    """Draw the displays of ``capcal_lib.plots`` on recorded samples, in one picture."""
    import matplotlib.pyplot as plt

    from capcal_lib.book.style import set_style
    from capcal_lib.places import RECORDED_RUNS
    from capcal_lib.plots import (
        PassAtKDisplay,
        ReliabilityDisplay,
        RiskCoverageDisplay,
        ScoreDisplay,
    )
    from capcal_lib.results import load_results, score

    set_style()
    results = load_results(RECORDED_RUNS, "qwen2.5-coder-1.5b", datasets=["mmlu"])
    figure, ((upper, right), (lower, last)) = plt.subplots(2, 2, figsize=(9.6, 7.2))
    for name in ("Verbalized confidence", "P(True)"):
        triple = results[[name, "correct", "total"]].dropna().to_numpy().T
        ReliabilityDisplay.from_counts(*triple, name=name, ax=upper)
        RiskCoverageDisplay.from_counts(*triple, name=name, ax=right)
        PassAtKDisplay.from_counts(*triple, name=name, ax=lower)
    ScoreDisplay.from_scores(score(results), ax=last)
    titles = ["ReliabilityDisplay", "RiskCoverageDisplay", "PassAtKDisplay", "ScoreDisplay"]
    for ax, title in zip((upper, right, lower, last), titles, strict=True):
        ax.set_title(title)
    figure.savefig(STATIC / "displays.png", facecolor="white", dpi=100)
    plt.close(figure)


def figures() -> dict[str, str]:
    ten = [[True, True, False, True, False], [False, True, True, False, True]]
    rng = np.random.default_rng(SEED)
    return {
        "response_calibration": drawing(
            208,
            asked([[True]], "graded answer"),
            target(1, "target: correct = 1", 0.72, "s(x, answer)"),
        ),
        "capability_calibration": drawing(
            208, asked(ten, "graded answers"), target(0.6, "target: μ ≈ 6/10", 0.72, "s(x, f)")
        ),
        "hidden_state": hidden_state(),
        "ten_samples": repetitions(10, rng),
        "hundred_samples": repetitions(100, rng),
        "logo": logo(),
    }


if __name__ == "__main__":
    displays()
    for name, svg in figures().items():
        (STATIC / f"{name}.svg").write_text(svg, encoding="utf-8")
