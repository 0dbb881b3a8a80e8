"""Pack a workshop: a page that says what to open, slides, a handout, a set of questions for the
class with a page that scores it, and the book, for laptops that install nothing.

All are written in Markdown, in ``book/workshop``: ``{{page:key:.2f}}`` is a number and
``{{page:fig-name}}`` a figure of an executed notebook, so that slides and book say the same."""

import ast
import json
import re
import shutil
import sys
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from html import escape
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.book.experiments import evenly, widget
from capcal_lib.book.style import ACCENT
from capcal_lib.book.tables import show
from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.metrics import binomial_interval, capability_brier, uniform_baseline_brier
from capcal_lib.places import BOOK, BUILD, RECORDED_RUNS
from capcal_lib.plots import INK, MUTED
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results

CLASS_MODEL, CLASS_SET = "smollm2-135m", "mini-elements"
KEPT_TYPE = "application/papermill.record/"  # of what myst_nb.glue keeps
WORKSHOP, STATIC = BOOK / "workshop", BOOK / "static"
KEY = r"\{\{(?P<page>[\w./-]+):(?P<key>[\w.-]+)(?::(?P<form>[^}]*))?\}\}"
SLIDE = re.compile(r"^---$", flags=re.MULTILINE)
GUESS = re.compile(r"^\*Guess first: .*?\*.*$", flags=re.MULTILINE)
HAT = "<span class='hat'>μ</span>"  # few faces put U+0302 over a Greek letter


def class_set() -> pd.DataFrame:
    """Return the ten questions that a class guesses and scores with `capcal score`: of the hard
    ones that ask for an element, so that the best constant scores well below one half.

    Columns: ``question_id``, ``question``, ``confidence`` (empty), ``correct`` and ``total``.
    """
    results = load_results(RECORDED_RUNS, CLASS_MODEL, datasets=[CLASS_SET]).droplevel("dataset")
    about = results.index.str.contains("/element-of-|/heavier-")
    rows = evenly(results.loc[about, ["correct", "total"]], 10).sort_index()
    texts = {question.id: question.text for question in load_questions(CLASS_SET)}
    rows.insert(0, "question", rows.index.map(texts))
    rows.insert(1, "confidence", "")
    return rows.reset_index()


def class_facts(chosen: pd.DataFrame) -> dict[str, Any]:
    """Return what slides and handout say of a class set: questions, key, and simple scores."""
    right, total = chosen["correct"], chosen["total"]
    share = right / total
    intervals = binomial_interval(np.arange(6), 10)
    score = partial(capability_brier, correct=right, total=total, corrected=True)
    facts: dict[str, Any] = {
        "model": load_model(CLASS_MODEL).title,
        "total": int(total.max()),
        "questions": "\n".join(f"{place}. {text}" for place, text in _numbered(chosen)),
        "blank": "| | question | my s | key μ̂ | (s − μ̂)² |\n|---|---|---|---|---|\n",
        "key": "| | question | correct | μ̂ |\n|---|---|---|---|\n",
        "mean": f"{share.mean():.3f}",
        "half": f"{score(share * 0 + 0.5):.3f}",
        "constant": f"{score((share.sum() - share) / (len(share) - 1)):.3f}",
        "uniform": f"{uniform_baseline_brier(right, total, corrected=True):.3f}",
    }
    for (place, text), c, n in zip(_numbered(chosen), right, total, strict=True):
        facts["blank"] += f"| {place} | {text} | | | |\n"
        facts["key"] += f"| {place} | {text} | {c} of {n} | {c / n:.2f} |\n"
    for count, (low, high) in enumerate(intervals):
        facts |= {f"low_{count}": f"{low:.2f}", f"high_{count}": f"{high:.2f}"}
    return facts


def _numbered(chosen: pd.DataFrame) -> list[tuple[int, str]]:
    return list(enumerate(chosen["question"], start=1))


def fill(text: str, executed: Path, facts: Mapping[str, Any]) -> str:
    """Put numbers and figures into Markdown for ``{{page:key}}``.

    A page is an executed notebook of the folder ``executed``, ``class`` for the ``facts`` of the
    class set, or ``static`` for a drawing. `InputError` for a key that its page does not have, and
    for braces or formulas that would be read as they are.
    """
    drawings = {
        path.stem: _image(path.read_text("utf-8"), "", "drawing") for path in STATIC.glob("*.svg")
    }
    pages: dict[str, Mapping[str, Any]] = {"class": facts, "static": drawings}

    def take(match: re.Match[str]) -> str:
        page, key, form = match["page"], match["key"], match["form"] or ""
        if page not in pages:
            path = executed / f"{page}.ipynb"
            if not path.exists():
                raise InputError(
                    f"the slides show {match[0]}, but there is no executed notebook {path}: "
                    "capcal book"
                )
            pages[page] = _shown(json.loads(path.read_text(encoding="utf-8")))
        if key not in pages[page]:
            raise InputError(
                f"the slides show {match[0]}, which is not on page {page}; it has "
                f"{', '.join(pages[page])}"
            )
        return format(pages[page][key], form)

    filled = re.sub(KEY, take, text)
    if left := re.search(r"\{\{.*|\$.*", filled):
        raise InputError(
            f"the slides would show {left[0][:60]!r} as it is: a key is {{{{page:key}}}}"
        )
    return filled


def slides(filled: str) -> str:
    """Write filled Markdown as slides: one page of HTML that needs the folder ``reveal`` beside it.

    A slide ends at ``---``, and what follows ``Note (5 min):`` on it is for the speaker. What
    stands below ``*Guess first: ...*`` comes when the room has guessed.
    """
    sections, minutes = "", 0
    for part in SLIDE.split(filled):
        shown, note, words = _with_note(part)
        clock = f"<p class='minutes'>{minutes} to {minutes + note} min</p>" if note else ""
        minutes += note
        aside = f"<aside class='notes'>{_html(words)}</aside>"
        question, answer = _with_answer(shown)
        body = _html(question)
        if answer:
            body += f"<div class='fragment'>{_html(answer)}</div>"
        sections += f"<section>{body}{clock}{aside}</section>\n"
    return _page("slides.html", filled, sections)


def speaker_notes(filled: str) -> str:
    """Write what the speaker says on each slide, and when, as a page to print."""
    sections, minutes = "", 0
    for part in SLIDE.split(filled):
        shown, note, words = _with_note(part)
        title = shown.strip().splitlines()[0].lstrip("# ")
        head = f"<h2>Minute {minutes} to {minutes + note}: {escape(title)}</h2>"
        sections += f"<section>{head}{_html(words)}</section>\n"
        minutes += note
    return _page("page.html", filled, f"<h1>Notes for the speaker</h1>{sections}")


def printed(filled: str) -> str:
    """Write filled Markdown as a page to print."""
    return _page("page.html", filled, _html(filled))


def _with_note(part: str) -> tuple[str, int, str]:
    """Part a slide into what is shown, the minutes of its note, and the note."""
    minutes = re.search(r"^Note \((\d+) min\): ", part, flags=re.MULTILINE)
    if not minutes:
        return part, 0, ""
    return part[: minutes.start()], int(minutes[1]), part[minutes.end() :]


def _with_answer(shown: str) -> tuple[str, str]:
    """Part what a slide shows into what stands there from the start, and what the room guesses."""
    guess = GUESS.search(shown)
    if not guess:
        return shown, ""
    return shown[: guess.end()], shown[guess.end() :]


def class_page(chosen: pd.DataFrame) -> str:
    """Write the page on which the class guesses its questions, and which scores the guesses."""
    listed = chosen.drop(columns="confidence")
    listed = listed.rename(columns={"question_id": "id", "question": "text"})
    colors = {"You": ACCENT, "Uniform random": INK, "constant": MUTED}
    guess = widget(
        "guess",
        {"questions": listed.to_dict("records"), "methods": {}, "colors": colors},
        "Guess how often each question is answered correctly, from never to always; then compare.",
        fallback=show(chosen[["question"]], "The questions.", evidence="measured"),
        evidence="measured",
    )
    title = load_model(CLASS_MODEL).title
    head = "# Guess the confidence\n\n"
    text = f"How often does *{title}* answer each of these ten questions correctly? "
    text += "Move all ten sliders. Then wait, and press *Compare* together with the others."
    return _page("class.html", head, _html(head + text) + guess.html)


def _html(text: str) -> str:
    from markdown_it import MarkdownIt

    html = MarkdownIt("commonmark").enable("table").render(text)
    html = html.replace("<th></th>", "<td></td>")  # the corner of a table heads nothing
    return re.sub(r"(?<=\d) %", "\N{NO-BREAK SPACE}%", html)


def _page(template: str, filled: str, body: str) -> str:
    title = filled.lstrip().splitlines()[0].lstrip("# ")
    page = (WORKSHOP / template).read_text(encoding="utf-8")
    return page.replace("{title}", escape(title)).replace("{body}", body.replace("μ̂", HAT))


def _image(svg: str, alt: str, kind: str = "figure") -> str:
    code = b64encode(svg.encode()).decode()
    return f'<img class=\'{kind}\' alt="{escape(alt)}" src="data:image/svg+xml;base64,{code}">'


def _shown(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the glued numbers and strings of a page and its named figures; a figure as an image
    that the slides hold.
    """
    notes: dict[str, Any] = {}
    for cell in notebook["cells"]:
        figure = cell["metadata"].get("label")
        alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            kept = "".join(data.get(f"{KEPT_TYPE}text/plain", ""))
            if kept and f"{KEPT_TYPE}text/html" not in data:  # a number or a string
                notes[output["metadata"]["scrapbook"]["name"]] = ast.literal_eval(kept)
            if figure and "image/svg+xml" in data:
                notes[figure] = _image("".join(data["image/svg+xml"]), alt)
    return notes


def pack(out: Path = BUILD) -> Path:
    """Write ``workshop.zip``: a page to start from, the built book, slides with notes, a handout,
    and the class set with its key and the page that scores it; return where it lies.

    `InputError` where the book has not been built.
    """
    html = out / "book" / "_build" / "html"
    if not (html / "index.html").exists():
        raise InputError(f"there is no built book in {html}: run `capcal book` first")
    chosen = class_set()
    facts = class_facts(chosen)
    texts = {
        name: fill((WORKSHOP / f"{name}.md").read_text("utf-8"), out / "notebooks", facts)
        for name in ("start", "slides", "handout", "key")
    }
    pages = {
        "index": printed(texts["start"]),
        "class": class_page(chosen),
        "slides": slides(texts["slides"]),
        "notes": speaker_notes(texts["slides"]),
        "handout": printed(texts["handout"]),
        "key": printed(texts["key"]),
    }
    folder = out / "workshop"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name, page in pages.items():
        (folder / f"{name}.html").write_text(page, encoding="utf-8")
    with as_file(files("sphinx_revealjs") / "_static" / "revealjs") as reveal:
        unused = shutil.ignore_patterns("*.map", "*.esm.js", "*.d.ts")
        for part in ("dist", "plugin/notes"):
            shutil.copytree(reveal / part, folder / "reveal" / part, ignore=unused)
    chosen.to_csv(folder / "class_key.csv", index=False)
    chosen.drop(columns=["correct", "total"]).to_csv(folder / "class_set.csv", index=False)
    shutil.copytree(html, folder / "book")
    return Path(shutil.make_archive(str(out / "workshop"), "zip", folder))


def main() -> None:
    """Pack, and say where the archive lies, or in one line what is missing."""
    try:
        print(pack())
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
