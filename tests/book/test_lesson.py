import subprocess
import sys
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from markdown_it.renderer import RendererHTML

from capcal_lib.book import lesson
from capcal_lib.book.lesson import (
    KEPT_TYPE,
    NOT_KNOWN,
    ONE_SAMPLE,
    EndOfPage,
    Page,
    differences,
    fill,
    glue,
    open_lesson,
    open_page,
    provenance,
)
from capcal_lib.book.tables import Html, badge
from capcal_lib.errors import InputError
from capcal_lib.metrics import mean_interval
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results import load_results, subjects


def page_of(model: str, **parameters: str) -> Page:
    return open_lesson({"model": model, "store": str(RECORDED_RUNS), **parameters})


def test_what_is_behind_a_page_is_counted_and_marked() -> None:
    html = provenance(page_of("smollm2-135m")).html
    row = BeautifulSoup(html, "html.parser").find("th", string="MMLU").parent
    assert [cell.text for cell in row.select("td")] == ["300", "100", "measured"]
    assert "1,116 questions · measured" in BeautifulSoup(html, "html.parser").summary.text
    assert "The paper prints" not in html
    assert badge("simulated") in provenance(page_of("simulated")).html


def test_a_page_about_all_models_says_what_is_behind_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Html] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    page = page_of("qwen2.5-coder-0.5b")
    page.show_other_models()
    assert [BeautifulSoup(one.html, "html.parser").find("strong").text for one in shown] == [
        "SmolLM2-135M-Instruct",
        "Qwen2.5-Coder-1.5B-Instruct",
    ]
    assert shown[1].html == provenance(page_of("qwen2.5-coder-1.5b")).html
    page_of("simulated").show_other_models()
    assert len(shown) == 2  # it stands alone


def test_a_page_says_whose_protocol_and_verdicts_it_follows() -> None:
    assert "What each correction changes" not in provenance(page_of("simulated")).html
    page = page_of("simulated", protocol="paper")
    assert (page.counting.recipe, page.counting.held_out) == ("paper", False)
    counting = replace(page.counting, verdicts="judge:<b>")
    said = provenance(replace(page, counting=counting)).html
    assert "Protocol: paper; verdicts: judge:&lt;b&gt;. The page “What each correction" in said


def test_a_page_says_what_is_not_as_in_the_paper() -> None:
    for model in ("smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"):
        html = provenance(page_of(model)).html
        assert "weights are quantised; SimpleQA is the whole set" in html
    assert "quantised" not in provenance(page_of("simulated")).html
    assert "Unlike in the paper" not in provenance(page_of("gpt-oss-20b")).html


def test_a_page_says_that_the_prompts_of_imported_samples_are_not_known() -> None:
    page = page_of("simulated")
    imported = replace(page, data=page.data.assign(prompts="imported"))
    assert differences(imported) == [NOT_KNOWN]
    one_of_them = page.data["prompts"].where(page.data.index != "mini-exam", "imported")
    assert differences(replace(page, data=page.data.assign(prompts=one_of_them))) == [
        "Unlike in the paper, prompts are of the styles “short”, with examples.",
        NOT_KNOWN,
    ]


def test_a_page_of_a_model_without_samples_shows_the_paper_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    parameters = {"model": "gpt-oss-20b", "store": str(RECORDED_RUNS)}
    with pytest.raises(EndOfPage, match="capcal reproduce --model gpt-oss-20b --store runs/local"):
        open_page(parameters, paper=["table-4"])
    title, table, reason = [output.html for output in shown]
    assert f" · {badge('reported')}" in title
    assert "0.9338" in table  # mean accuracy on MATH-500
    assert "-p model gpt-oss-20b" in reason
    assert EndOfPage("why")._render_traceback_() == []


def test_what_a_solution_finds_is_folded_as_the_notebook_would_show_it() -> None:
    page = page_of("simulated")
    found = BeautifulSoup(page.solution(0.25, "<b>").html, "html.parser").details
    assert not found.has_attr("open")
    assert found.summary.text == "What the solution finds"
    assert found.pre.text == "(0.25, '<b>')"
    table = page.solution(pd.DataFrame({"k": [7]})).html
    assert BeautifulSoup(table, "html.parser").details.td.text == "7"


def test_results_of_one_sample_a_question_end_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("IPython.display.display", lambda _: None)
    counts = {"correct": [1, 0], "total": [1, 1]}
    monkeypatch.setattr(lesson, "results_of", lambda *_, **__: pd.DataFrame(counts))
    with pytest.raises(EndOfPage, match=ONE_SAMPLE):
        page_of("simulated").results()


def test_a_page_says_that_nothing_is_solved_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("IPython.display.display", lambda _: None)
    page = page_of("qwen2.5-coder-1.5b")
    names = pd.Index(["aime25", "gsm8k", "gsm8k"], name="dataset")
    results = pd.DataFrame({"correct": [0, 0, 0], "total": [4, 4, 2]}, names)
    with pytest.raises(
        EndOfPage, match="No question of AIME25 or GSM8K is solved, so that nothing"
    ):
        page.end_where_nothing_is_solved(results)
    page.end_where_nothing_is_solved(results.assign(correct=[0, 0, 1]))


def test_accuracies_have_intervals_over_whole_subjects() -> None:
    page = page_of("smollm2-135m")
    row = page.accuracies().loc["mmlu"]
    counts = load_results(RECORDED_RUNS, "smollm2-135m", datasets=["mmlu"])
    mu = counts["correct"] / counts["total"]
    clustered = mean_interval(mu, clusters=subjects(counts), bounds=(0, 1))
    assert row[["mean μ", "low", "high"]].tolist() == pytest.approx([*clustered])
    alone = mean_interval(mu, bounds=(0, 1))
    assert [*alone] != pytest.approx([*clustered])
    assert row["questions"] == 300


def test_a_data_set_without_samples_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("IPython.display.display", lambda _: None)
    parameters = {"model": "simulated", "store": str(RECORDED_RUNS)}
    declared = {"__annotations__": {"dataset": str}}
    for dataset in ("", "mini-capitals"):
        open_page(parameters | declared | {"dataset": dataset})
    with pytest.raises(InputError, match=r"unknown dataset with samples 'mmlu'; known: mini-"):
        open_page(parameters | declared | {"dataset": "mmlu"})
    open_page(parameters | {"dataset": "mmlu"})  # a name of the page's own, and no parameter


def test_the_measured_models_of_a_store_come_from_the_smallest_to_the_largest() -> None:
    models = page_of("simulated").measured_models()
    assert list(models) == ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]


def test_simulated_models_stand_beside_no_measured_ones() -> None:
    measured = ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    assert list(page_of("qwen2.5-coder-0.5b").comparable_models()) == measured
    assert list(page_of("simulated").comparable_models()) == ["simulated"]


def test_concentrations_of_another_model_are_by_the_rules() -> None:
    page = page_of("smollm2-135m")
    by_rules = page.concentrations()
    assert by_rules["Probe (GSM8K)"] > 0
    counting = replace(page.counting, verdicts="judge:simulated")
    judged = replace(page, counting=counting)
    assert judged.concentrations().empty  # no probe was taught by this judge
    other = replace(judged, counting=replace(counting, model="simulated"))
    assert other.concentrations("smollm2-135m").equals(by_rules)


def test_a_table_names_data_sets_and_joins_an_estimate_with_its_interval() -> None:
    index = pd.Index(["gsm8k"], name="dataset")
    table = pd.DataFrame({"gain": [0.12345], "low": [-0.1], "high": [0.3]}, index)
    table["verdict"] = pd.Categorical(["inconclusive"], ["better", "inconclusive"])
    html = page_of("simulated").show(table, "Gains.").html
    row = BeautifulSoup(html, "html.parser").find("tbody").find("tr")
    assert [cell.text for cell in row.select("th, td")] == [
        "GSM8K",
        "0.123 [-0.100, 0.300]",
        "inconclusive",
    ]
    assert badge("simulated") in html


def test_a_finding_has_its_values() -> None:
    shown = page_of("simulated").finding("{better} of {all:.1f}", better=3, all=4)
    assert "class='capcal-finding'" in shown.data
    assert "\n\n3 of 4.0\n\n" in shown.data
    with pytest.raises(KeyError, match="most"):
        fill("{most} of all")


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "{download}`../../../etc/hostname`",
    "a\n\n:::{include} /etc/hostname\n:::",
    "[x](javascript:alert(1)) ![y](z) **b** $\\mu$ &lt; <https://x.y>",
]


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_of_others_is_shown_as_it_is_and_is_no_markup(hostile: str) -> None:
    from markdown_it import MarkdownIt
    from myst_parser.config.main import MdParserConfig
    from myst_parser.parsers.mdit import create_md_parser

    said = fill("The question “{text}”.", text=hostile)
    shown = BeautifulSoup(MarkdownIt().render(said), "html.parser")
    assert shown.text.strip() == f"The question “{' '.join(hostile.split())}”."
    assert {tag.name for tag in shown.find_all()} == {"p"}
    myst = create_md_parser(MdParserConfig(enable_extensions={"dollarmath"}), RendererHTML)
    [_, inline, _] = myst.parse(said)
    assert {child.type for child in inline.children or ()} <= {"text", "text_special"}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_text_that_is_glued_reaches_another_page_as_text(hostile: str) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from myst_nb.ext.glue.crossref import generate_text_nodes

    InteractiveShell.instance()
    with capture_output() as shown:
        glue(text=hostile)
    (output,) = shown.outputs
    data = {kind.removeprefix(KEPT_TYPE): text for kind, text in output.data.items()}
    assert list(data) == ["text/plain"]  # and nothing that would be markup
    (node,) = generate_text_nodes({"fmt_spec": "s"}, {"data": data})
    assert node.astext() == hostile
    assert {each.tagname for each in node.findall()} == {"inline", "#text"}


@pytest.mark.parametrize("value", [0.25, 3, "three of ten", Html("<p>three</p>")])
def test_results_are_kept_as_myst_nb_keeps_them(value: Any) -> None:
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.utils.capture import capture_output
    from myst_nb import glue as theirs

    InteractiveShell.instance()
    with capture_output() as ours:
        glue(share=value)
    with capture_output() as expected:
        theirs("share", value, display=False)
    (output,), (known,) = ours.outputs, expected.outputs
    assert (output.data, output.metadata) == (known.data, known.metadata)
    assert all(kind.startswith("application/papermill.record/") for kind in output.data)


def test_keeping_a_result_does_not_import_what_reads_it() -> None:
    code = "import sys; from capcal_lib.book.lesson import glue; glue(a=1); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"myst_nb", "nbformat", "jsonschema"} & set(done.stdout.split())
