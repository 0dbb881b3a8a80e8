"""The built book in a real browser, with the network off: in the widths of a desktop, a tablet and
a telephone.

Where there is no Chromium or no built book these tests are skipped. A few pages are visited, and
every page where CAPCAL_EVERY_PAGE is set, as ``make test-book`` does."""

import json
import os
import re
import shutil
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import numpy as np
import pytest
import yaml
from pack_workshop import class_facts, class_page, class_set

from capcal_lib.metrics import binomial_interval, capability_brier
from capcal_lib.places import BOOK, BUILD, NOTEBOOKS, ROOT

HTML = BUILD / "book" / "_build" / "html"
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
FEW = ("index.html", "notebooks/12_try_it.html", "notebooks/04_main_table.html")
MADE_BY_SPHINX = ("genindex.html", "search.html", "py-modindex.html")
DESKTOP, TABLET, TELEPHONE = 1280, 768, 375
MOST_BYTES = 1_500_000  # of a page with its figures, besides what all pages share
CONTENTS = yaml.safe_load((BOOK / "_toc.yml").read_text(encoding="utf-8"))["parts"]
MAIN_LINE = [page["file"] for part in CONTENTS if "numbered" in part for page in part["chapters"]]
SETTINGS = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
MOVED = SETTINGS["sphinx"]["config"]["redirects"]
RULES = ["wcag2a", "wcag2aa", "best-practice"]
# Corners of pandas' tables, the theme's logo, and Sphinx's entries of a bibliography.
ACCEPTED = ("empty-table-header", "region", "aria-allowed-role", "aria-deprecated-role")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium on this machine"),
    pytest.mark.skipif(
        not (HTML / "index.html").exists(), reason="the book is not built: make book"
    ),
]


def pages() -> list[str]:
    if not os.environ.get("CAPCAL_EVERY_PAGE"):
        return list(FEW)
    found = [path.relative_to(HTML).as_posix() for path in sorted(HTML.rglob("*.html"))]
    other = {*MADE_BY_SPHINX, *(f"{old}.html" for old in MOVED)}
    return [path for path in found if path not in other and not path.startswith("_")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        options = ["--no-sandbox", "--allow-file-access-from-files"]
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=options)
        yield chromium
        chromium.close()


@pytest.fixture(params=pages())
def page(request: pytest.FixtureRequest, browser: Any) -> Iterator[Any]:
    """A page with all that goes wrong on it under ``wrong``, and what it loads under ``loaded``."""
    tab = browser.new_page(viewport={"width": DESKTOP, "height": 900})
    tab.name, tab.wrong, tab.loaded = request.param, [], set()
    tab.on("request", lambda asked: tab.loaded.add(asked.url.split("?")[0].split("#")[0]))
    tab.on("requestfailed", lambda asked: tab.wrong.append(asked.url))
    tab.on(
        "console",
        lambda message: (
            tab.wrong.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    tab.on("pageerror", lambda error: tab.wrong.append(str(error)))
    tab.goto((HTML / request.param).as_uri())
    yield tab
    tab.close()


def violations(page: Any, rules: list[str]) -> list[str]:
    asked = "rules => axe.run(document, {runOnly: rules})"
    found = page.evaluate(asked, rules)["violations"]
    found = [rule for rule in found if rule["id"] not in ACCEPTED]
    return [f"{rule['id']}: {node['html'][:150]}" for rule in found for node in rule["nodes"]]


def test_a_page_loads_whole_from_files_alone_and_is_light(page: Any) -> None:
    assert page.wrong == []
    local = {
        Path(unquote(urlsplit(url).path))
        for url in page.loaded
        if not url.startswith(("data:", "blob:"))
    }
    assert all(url.startswith(("file:", "data:", "blob:")) for url in page.loaded)
    assert sum(path.stat().st_size for path in local if "_static" not in path.parts) <= MOST_BYTES
    broken = (
        "[...document.images]"
        ".filter(each => each.complete && !each.naturalWidth).map(each => each.src)"
    )
    assert page.evaluate(broken) == []
    bare = (
        "[...document.images].filter(each => each.alt.length < 5 || each.alt.includes('_images/'))"
    )
    assert page.evaluate(f"{bare}.map(each => each.src)") == []
    links = page.evaluate("[...document.querySelectorAll('a[href]')].map(each => each.href)")
    inside = {Path(unquote(urlsplit(link).path)) for link in links if link.startswith("file:")}
    assert [path for path in inside if not path.exists()] == []
    assert page.evaluate("document.querySelector('meta[name=description]').content")


def test_nothing_is_wider_than_the_window(page: Any) -> None:
    for width in (DESKTOP, TABLET, TELEPHONE):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 1, width
    if page.name.removesuffix(".html") in MAIN_LINE:
        page.set_viewport_size({"width": DESKTOP, "height": 900})
        cut = (
            "[...document.querySelectorAll('.capcal-scroll')].filter(each => "
            "each.scrollWidth > each.clientWidth + 1)"
        )
        labels = page.evaluate(f"{cut}.map(each => each.ariaLabel)")
        assert [
            label for label in labels if not label.startswith("All ")
        ] == []  # those are wide and say so


@pytest.mark.parametrize("width", [DESKTOP, TELEPHONE])
def test_everybody_can_read_it(page: Any, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.reload(wait_until="networkidle")  # what has to be scrolled is another at each width
    page.evaluate(files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
    for theme, rules in (("light", RULES), ("dark", ["color-contrast"])):
        page.evaluate(
            "name => { document.documentElement.dataset.theme = name;"
            " document.documentElement.dataset.mode = name }",
            theme,
        )
        faded = "() => Promise.all(document.getAnimations().map(colour => colour.finished))"
        page.evaluate(faded)
        assert violations(page, rules) == [], theme


def test_the_widgets_answer_to_the_keyboard(browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((HTML / "notebooks" / "12_try_it.html").as_uri())
    said = tab.locator("figure.capcal-widget [role=status]")
    assert said.count() == 3
    assert "of 10 answers are correct" in said.nth(0).inner_text()  # drawn at each visit
    tab.get_by_role("button", name="Start again").click()
    assert "Not asked yet" in said.nth(0).inner_text()
    tab.get_by_role("button", name="Ask 10 times").focus()
    tab.keyboard.press("Enter")
    assert "of 10 answers are correct" in said.nth(0).inner_text()
    tab.get_by_role("button", name="Compare").press("Space")
    assert "10 of 10 are left" in said.nth(1).inner_text()
    for each in tab.locator("[data-widget=guess] input").all():
        each.press("End")
    tab.get_by_role("button", name="Compare").press("Space")
    assert "You said 1.00" in tab.locator("[data-widget=guess] li").first.text_content()
    assert tab.locator("[data-widget=guess] .cw-truth").count() == 11  # and in the legend
    before = said.nth(2).inner_text()
    tab.locator("[data-widget=explorer] input").first.press("ArrowRight")
    assert said.nth(2).inner_text() != before
    tab.close()


def test_the_front_page_answers_above_the_fold_and_few_keys_from_the_coin(browser: Any) -> None:
    tab = browser.new_page(viewport={"width": DESKTOP, "height": 800})
    tab.goto((HTML / "index.html").as_uri())
    for part in (".capcal-answer", "[data-widget=coin] [role=status]"):
        box = tab.locator(part).bounding_box()
        assert box["y"] + box["height"] <= 800, part
    tab.keyboard.press("Tab")
    tab.keyboard.press("Enter")  # to the main content
    presses = 2
    while tab.evaluate("document.activeElement.textContent") != "Ask once":
        tab.keyboard.press("Tab")
        presses += 1
        assert presses <= 8
    tab.close()


def test_the_coin_is_tossed_anew_and_its_interval_is_the_librarys(browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((HTML / "notebooks" / "12_try_it.html").as_uri())
    coin = tab.locator("[data-widget=coin]")
    counts = set()
    for _ in range(12):
        coin.get_by_role("button", name="Start again").click()
        coin.get_by_role("button", name="Ask 10 times").click()
        said = coin.locator("[role=status]").inner_text()
        right, *interval = re.findall(r"(\d+) of 10 .* interval (\S+) to (\S+)\.$", said)[0]
        wanted = binomial_interval([int(right)], [10])[0]
        assert [float(end) for end in interval] == pytest.approx(wanted, abs=0.0051)
        assert coin.locator(".cw-tosses .right").count() == int(right)
        counts.add(right)
    assert len(counts) > 1
    coin.get_by_role("button", name="Ask 100 times").click()
    questions = json.loads(coin.locator("script").text_content())["questions"]
    chosen = coin.locator("select option:checked").inner_text()
    [whole] = [each["verdicts"] for each in questions if each["text"] == chosen]
    assert f"{whole.count('1')} of {len(whole)}" in coin.locator("[role=status]").inner_text()
    tab.close()


def test_theorem_2_keeps_its_gap(browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((HTML / "theory" / "definitions.html").as_uri())
    widget = tab.locator("[data-widget=theorem]")
    s, mu = widget.locator("input").all()
    for confidence, share in ((0.0, 0.5), (0.9, 0.5), (0.3, 1.0)):
        s.fill(str(confidence))
        mu.fill(str(share))
        said = widget.locator("[role=status]").inner_text()
        numbers = [float(each) for each in re.findall(r"\d\.\d{3}", said)]
        capability, variance = (confidence - share) ** 2, share * (1 - share)
        assert numbers == pytest.approx([capability + variance, capability, variance], abs=0.0006)
    tab.close()


def test_nobody_has_seen_the_questions_to_guess(browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((HTML / "notebooks" / "12_try_it.html").as_uri())
    data = json.loads(tab.locator("[data-widget=guess] script").text_content())
    texts = {each["text"] for each in data["questions"]} | set(class_set()["question"])
    assert len(texts) == 20
    coin = tab.locator("[data-widget=coin] script").text_content()
    assert [text for text in texts if text in coin] == []
    for path in HTML.rglob("*.html"):
        if path.name not in ("12_try_it.html", "api.html"):  # examples of how a function is called
            page = path.read_text(encoding="utf-8")
            assert [text for text in texts if escape(text) in page] == [], path
    tab.close()


def test_the_page_of_the_class_scores_as_the_key_does(browser: Any) -> None:
    tab = browser.new_page()
    tab.set_content(class_page(class_set()))
    assert "correct (" not in tab.locator("main").inner_text()
    tab.add_script_tag(path=BOOK / "static" / "widgets.js")
    for each in tab.locator("[data-widget=guess] input").all():
        tab.get_by_role("button", name="Compare").click()
        assert tab.locator(".cw-truth").count() == 0  # the key waits for all guesses
        each.press("ArrowRight")
        each.press("ArrowLeft")
    tab.get_by_role("button", name="Compare").click()
    rows = tab.locator(".cw-stage .cw-row").all_inner_texts()
    scores = dict(
        row.replace("−", "-").rsplit("\n", 1) for row in rows if re.search(r"\.\d{3}$", row)
    )
    facts = class_facts(class_set())
    assert scores["You"] == scores["Always one half"] == facts["half"]
    assert scores["Best constant: the mean of the other questions"] == facts["constant"]
    assert scores["Uniform random"] == facts["uniform"]
    tab.close()


def test_the_explorer_scores_as_the_library_does(browser: Any) -> None:
    tab = browser.new_page()
    tab.goto((HTML / "notebooks" / "12_try_it.html").as_uri())
    figure = tab.locator("[data-widget=explorer]")
    chosen = json.loads(figure.locator("script").text_content())["sets"][0]
    share = np.divide(chosen["correct"], chosen["total"])
    others = (share.sum() - share) / (len(share) - 1)
    for method, values in chosen["methods"].items():
        figure.locator("select").nth(1).select_option(method)
        scored = [place for place, value in enumerate(values) if value is not None]
        own = [
            [column[place] for place in scored]
            for column in (values, chosen["correct"], chosen["total"])
        ]
        for kind in ("corrected", "plug-in"):
            figure.locator("select").nth(2).select_option(kind)
            both = [own[0], others[scored]]
            wanted = [capability_brier(s, *own[1:], corrected=kind == "corrected") for s in both]
            status = figure.locator("[role=status]").inner_text()
            found = re.findall(r"(?:capability Brier|best constant) (\S+\d)", status)
            said = [float(each.replace("−", "-")) for each in found]
            assert said == pytest.approx(wanted, abs=0.0006)
            assert left_out(status) == len(values) - len(scored)
    tab.close()


def left_out(status: str) -> int:
    """Return of how many questions a widget says that a method has no confidence."""
    said = re.search(r"Left out: (\d+) of", status)
    return int(said[1]) if said else 0


def test_a_page_shows_its_finding_and_its_picture_on_top() -> None:
    shown = 0
    for source in NOTEBOOKS.glob("*.py"):
        text = (HTML / "notebooks" / f"{source.stem}.html").read_text(encoding="utf-8")
        for tag in ("finding", "picture"):
            if re.search(rf'tags=\[[^]]*"{tag}"', source.read_text(encoding="utf-8")):
                _, *lifted = text.split(f"tag_{tag} tag_remove-input")
                assert lifted, source
                assert all("cell_output" in each[:200] for each in lifted), source
                shown += 1
    assert shown > len([*NOTEBOOKS.glob("*.py")])


def test_an_old_address_leads_to_its_page() -> None:
    for old, new in MOVED.items():
        page = HTML / f"{old}.html"
        text = page.read_text(encoding="utf-8")
        assert f'target = "{new}"' in text
        assert f'url={new}"' in text
        path, _, section = new.partition("#")
        text = page.parent.joinpath(path).read_text(encoding="utf-8")
        assert "<h1>" in text
        assert not section or text.count(f'id="{section}"') == 1, new


def test_an_old_address_of_a_section_leads_to_the_section_that_the_page_went_to(
    browser: Any,
) -> None:
    tab = browser.new_page()
    for old in ("notebooks/14_routing", "notebooks/15_first_success"):
        place = HTML / f"{old}.html"
        path, _, section = MOVED[old].partition("#")
        tab.goto(f"{place.as_uri()}#summary")
        target = place.parent.joinpath(path).resolve()
        tab.wait_for_url(f"{target.as_uri()}#{section or 'summary'}")
    tab.close()


def test_search_finds_the_page_first(browser: Any) -> None:
    wanted = {
        "pass@k": "05_pass_at_k",
        "Brier": "theory/definitions",
        "Brier score": "theory/definitions",
        "what is a probe": "reference/vocabulary.html#term-probe",
        "how do I train a probe": "08_probe_generalization",
        "probe": "08_probe_generalization",
        "hallucination": "reference/vocabulary",
        "budget": "06_budget_allocation",
        "temperature": "theory/definitions",
        "how many samples": "02_k_eval_choice",
        "which method": "which_method",
        "does it help": "10_uses",
        "gpt-oss-20b": "16_printed",
        "response against capability": "theory/definitions",
    }
    found = {words: hits(browser, words)[0] for words in wanted}
    assert {words: page for words, page in wanted.items() if page not in found[words]} == {}, found


def test_search_finds_the_answer_to_a_question_among_the_first_six(browser: Any) -> None:
    wanted = {
        "which confidence for my 8B model on math?": "guide/which_method",
        "how many samples do I need?": "notebooks/02_k_eval_choice",
        "did the claim about probes hold?": "notebooks/09_statements",
        "how is pass@k predicted?": "notebooks/05_pass_at_k",
        "what differs from the authors' code?": "notebooks/13_protocol",
        "my own model, served by vLLM": "guide/scaling_out",
        "table 7 of the paper": "reference/paper_map.html#",
        "what does corrected Brier mean?": "reference/vocabulary.html#term-corrected-Brier",
        "how good is the grader?": "notebooks/15_grading",
        "can I trust MMLU numbers?": "guide/limits",
        "best constant": "reference/vocabulary.html#term-best-constant",
        "limitations": "guide/limits",
        "Qwen": "index.html",
        "quantised": "reference/vocabulary.html#term-quantised",
        "discrimination": "reference/vocabulary.html#term-discrimination",
        "contamination": "guide/limits",
        "overconfident": "reference/vocabulary.html#term-overconfident",
        "ECE": "reference/vocabulary.html#term-ECE",
        "unlabelled": "reference/vocabulary.html#term-unlabelled",
        "no labels": "guide/which_method",
        "1000 labels": "guide/which_method",
        "MMLU results": "notebooks/04_main_table",
        "isotonic": "reference/vocabulary",
        "baseline": "reference/vocabulary.html#term-baseline",
    }
    found = {words: hits(browser, words)[:6] for words in wanted}
    lacking = {words for words, page in wanted.items() if page not in " ".join(found[words])}
    assert lacking == set(), found
    every = {page for words in ("MMLU", "AIME25") for page in hits(browser, words)}
    assert len([page for page in every if "notebooks/" in page]) <= len(MAIN_LINE) / 2


def test_a_result_is_shown_once_with_what_it_says(browser: Any) -> None:
    tab = browser.new_page()
    for words in ("how many samples", "best constant", "expected accuracy", "table 7", "probe"):
        tab.goto(f"{(HTML / 'search.html').as_uri()}?q={quote(words)}")
        tab.get_by_text("Search finished").wait_for()
        tab.wait_for_function(
            "!document.querySelector('#search-results li:not(:has(p.context, span))')"
        )
        rows = tab.locator("#search-results li")
        addresses = links_of(tab)
        assert len(addresses) == len({*addresses}) == rows.count()
        for text in rows.all_inner_texts():
            assert not re.search(r"\\\(|Contents|\bCSV\b", text), text
        first = rows.first.inner_text()
        if words == "best constant":
            assert "the same confidence for every question of a data set: the" in first
        if words == "table 7":
            assert "Probes trained on one data set and on two" in first
    tab.close()


def hits(browser: Any, words: str) -> list[str]:
    """Return the addresses that the search page gives for words, in their order."""
    tab = browser.new_page()
    tab.goto(f"{(HTML / 'search.html').as_uri()}?q={quote(words)}")
    tab.get_by_text("Search finished").wait_for()
    addresses = links_of(tab)
    tab.close()
    return addresses


def links_of(tab: Any) -> list[str]:
    """Return the addresses on a page of results, in their order, without what was searched."""
    links = tab.locator("#search-results li > a")
    addresses = links.evaluate_all("all => all.map(link => link.getAttribute('href'))")
    return [re.sub(r"\?[^#]*", "", address) for address in addresses]
