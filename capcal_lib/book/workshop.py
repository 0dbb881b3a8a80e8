"""Pack a workshop: slides, a set of questions for the class, and the book, for laptops that install
nothing.

Slides are written in Markdown, ``book/workshop/slides.md``: a slide ends at ``---``;
``{{page:key:.2f}}`` is a number and ``{{page:fig-name}}`` a figure of an executed notebook, so that
slides and book say the same."""

import ast
import json
import re
import shutil
from base64 import b64encode
from collections.abc import Mapping
from html import escape
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib.errors import InputError
from capcal_lib.manifests import BOOK, BUILD, RECORDED_RUNS
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results

CLASS_MODEL, CLASS_SETS = "smollm2-135m", ("mini-capitals", "mini-elements")
LIVE_SET, LIVE_QUESTIONS = "mini-capitals", 16  # what the live page asks


def evenly(results: pd.DataFrame, number: int) -> pd.DataFrame:
    """Choose rows of ``correct`` and ``total`` that lie evenly from the hardest to the easiest.

    >>> evenly(pd.DataFrame({"correct": [9, 0, 10, 1, 5], "total": 10}), 2)["correct"].tolist()
    [1, 9]
    """
    mu = (results["correct"] / results["total"]).sort_values(kind="stable")
    number = min(number, len(mu))
    places = (np.arange(number) + 0.5) / number * len(mu)
    return results.loc[mu.index[places.astype(int)]]


def to_guess(results: pd.DataFrame) -> pd.DataFrame:
    """Keep what can be guessed: of the sets for guessing one question a subject, and none that the
    live page asks.
    """
    live = evenly(results.loc[[LIVE_SET]], LIVE_QUESTIONS)
    rows = results.loc[list(CLASS_SETS)].drop(live.index)
    names = rows.index.get_level_values("question_id")
    subjects = pd.Series(names.str.split("-of-").str[-1])
    return rows[~subjects.duplicated().to_numpy()]


def spread(results: pd.DataFrame, number: int = 10, *, seed: int = 2026) -> pd.DataFrame:
    """Choose rows of ``correct`` and ``total`` whose expected accuracies are spread from 0 to 1,
    and mix them.

    >>> counts = pd.DataFrame({"correct": [9, 0, 10, 1, 5], "total": 10})
    >>> sorted(spread(counts, 3)["correct"])
    [0, 5, 10]
    """
    mixed = results.sample(frac=1, random_state=np.random.default_rng(seed))
    mu = mixed["correct"] / mixed["total"]
    chosen: list[Any] = []
    for share in np.linspace(0, 1, number):  # the nearest question that is left
        chosen.append((mu.drop(chosen) - share).abs().idxmin())
    return results.loc[chosen].sample(frac=1, random_state=np.random.default_rng(seed))


def class_set(number: int = 10, *, seed: int = 2026, store: Path = RECORDED_RUNS) -> pd.DataFrame:
    """Choose questions whose expected accuracies are spread from 0 to 1, for a class to guess and
    `capcal score`.

    >>> list(class_set(2))
    ['question_id', 'question', 'confidence', 'correct', 'total']
    """
    results = load_results(store, CLASS_MODEL, datasets=CLASS_SETS)[["correct", "total"]]
    results = to_guess(results).droplevel("dataset")
    texts = {each.id: each.text for name in CLASS_SETS for each in load_questions(name)}
    rows = spread(results, number, seed=seed)
    rows.insert(0, "question", [" ".join(texts[name].split()) for name in rows.index])
    rows.insert(1, "confidence", "")
    return rows.rename_axis("question_id").reset_index()


def slides(text: str, executed: Path) -> str:
    """Write slides, Markdown with ``{{page:key}}``, as one page of HTML that needs the folder
    ``reveal`` beside it.

    A number or a figure that is in no notebook of the folder ``executed`` is refused.
    """
    from markdown_it import MarkdownIt

    pages: dict[str, Mapping[str, Any]] = {}

    def fill(found: re.Match[str]) -> str:
        page, key, form = found["page"], found["key"], found["form"] or ""
        if page not in pages:
            path = executed / f"{page}.ipynb"
            if not path.exists():
                raise InputError(
                    f"the slides show {found[0]}, but there is no executed notebook {path}: "
                    "capcal book"
                )
            pages[page] = _shown(json.loads(path.read_text(encoding="utf-8")))
        if key not in pages[page]:
            raise InputError(
                f"the slides show {found[0]}, which is not on page {page}; it has "
                f"{', '.join(pages[page])}"
            )
        return format(pages[page][key], form)

    filled = re.sub(r"\{\{(?P<page>[\w./-]+):(?P<key>[\w-]+)(:(?P<form>[^}]*))?\}\}", fill, text)
    markdown = MarkdownIt("commonmark").enable("table")
    parts = [
        f"<section>{markdown.render(part)}</section>\n"
        for part in re.split(r"^---$", filled, flags=re.MULTILINE)
    ]
    title = filled.lstrip().splitlines()[0].lstrip("# ")
    page = (BOOK / "workshop" / "slides.html").read_text(encoding="utf-8")
    return page.replace("{title}", escape(title)).replace("{slides}", "".join(parts))


def _shown(notebook: Mapping[str, Any]) -> dict[str, Any]:
    """Return the glued numbers and the named figures of a page; a figure as an image that the
    slides hold.
    """
    found: dict[str, Any] = {}
    for cell in notebook["cells"]:
        figure = cell["metadata"].get("mystnb", {}).get("figure", {}).get("name")
        alt = cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")
        for output in cell.get("outputs", ()):
            plain = "".join(
                output.get("data", {}).get("application/papermill.record/text/plain", "")
            )
            if plain and not plain.startswith("Html("):
                found[output["metadata"]["scrapbook"]["name"]] = ast.literal_eval(
                    plain
                )  # a number or a string
            if figure and "image/svg+xml" in output.get("data", {}):
                svg = b64encode("".join(output["data"]["image/svg+xml"]).encode()).decode()
                found[figure] = f'<img alt="{escape(alt)}" src="data:image/svg+xml;base64,{svg}">'
    return found


def pack(out: Path = BUILD) -> Path:
    """Write ``workshop.zip``: the built book, the slides, and the class set with its key; return
    where it lies.

    `InputError` where the book has not been built.
    """
    html = out / "book" / "_build" / "html"
    if not (html / "index.html").exists():
        raise InputError(f"there is no built book in {html}: run `capcal book` first")
    folder = out / "workshop"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = (BOOK / "workshop" / "slides.md").read_text(encoding="utf-8")
    (folder / "slides.html").write_text(slides(text, out / "notebooks"), encoding="utf-8")
    with as_file(files("sphinx_revealjs") / "_static" / "revealjs" / "dist") as reveal:
        shutil.copytree(
            reveal,
            folder / "reveal" / "dist",
            ignore=shutil.ignore_patterns("*.map", "*.esm.js", "*.d.ts"),
        )
    chosen = class_set()
    chosen.to_csv(folder / "class_key.csv", index=False)
    chosen.drop(columns=["correct", "total"]).to_csv(folder / "class_set.csv", index=False)
    shutil.copytree(html, folder / "book", ignore=shutil.ignore_patterns("_sources", "*.ipynb"))
    return Path(shutil.make_archive(str(out / "workshop"), "zip", folder))


if __name__ == "__main__":
    print(pack())
