from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from capcal_lib.book import page as page_module
from capcal_lib.book.page import (
    EndOfPage,
    Page,
    evidence_of,
    finding,
    glue,
    models_beside,
    open_page,
    plain,
    probes_of,
    provenance,
    show_runs,
)
from capcal_lib.errors import InputError
from capcal_lib.places import RECORDED_RUNS


def page_of(model: str, **given: Any) -> Page:
    return open_page(model, RECORDED_RUNS, **given)


def test_the_runs_behind_a_page_are_counted_and_marked() -> None:
    html = provenance(page_of("smollm2-135m")).html
    assert "1,116 questions" in html
    assert "<strong>SmolLM2-135M-Instruct</strong>" in html
    assert 'class="evidence measured"' in html
    assert 'class="evidence simulated"' in provenance(page_of("simulated")).html
    runs = page_of("smollm2-135m").runs, page_of("simulated").runs
    assert evidence_of(*runs) == "simulated", "of both"


def test_a_page_says_whose_protocol_and_verdicts_it_follows() -> None:
    page = page_of("simulated", protocol="paper")
    assert (page.counting.recipe, page.counting.held_out) == ("paper", False)
    assert "protocol: paper" in provenance(page).html
    assert "protocol" not in provenance(page_of("simulated")).html
    page = page_of("smollm2-135m")
    judged = replace(page.counting, verdicts="judge:smollm2-135m")
    assert probes_of(replace(page, counting=judged)).empty, "all were trained by the rules"


def test_a_page_of_a_model_without_samples_shows_the_paper_and_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    with pytest.raises(EndOfPage) as ended:
        show_runs(page_of("gpt-oss-20b"), printed=["table-4", "table-2", "figure-10"])
    means, scores, solved = [table.html for table in shown]
    assert "0.9338" in means  # on MATH-500
    assert "0.0267" in scores
    assert 'class="evidence reported"' in scores
    assert 'class="evidence read-off"' in solved  # from a curve
    [reason] = ended.value._render_traceback_()
    assert "capcal reproduce --model gpt-oss-20b --store runs/local" in reason


def test_papermill_ends_quietly_at_the_end_of_a_page() -> None:
    from nbformat.v4 import new_code_cell, new_notebook, new_output
    from papermill.execute import raise_for_execution_errors

    error = new_output("error", ename=EndOfPage.__name__, evalue=str(EndOfPage("Why.")))
    cell = new_code_cell(outputs=[error])
    raise_for_execution_errors(new_notebook(cells=[cell]), None)


def test_one_sample_a_question_ends_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    page = page_of("simulated")
    one = Page(page.counting, page.runs.assign(fewest=1, most=1), page.evidence)
    with pytest.raises(EndOfPage):
        show_runs(one)
    shown: list[Any] = []
    monkeypatch.setattr("IPython.display.display", shown.append)
    show_runs(Page(page.counting, page.runs.assign(fewest=2, most=2), page.evidence))
    assert len(shown) == 1


def test_what_is_unknown_is_refused_in_one_line() -> None:
    for model, store, given in (
        ("gpt-9", RECORDED_RUNS, {}),
        ("simulated", "nowhere", {}),
        ("simulated", RECORDED_RUNS, {"protocol": "mine"}),
        ("simulated", RECORDED_RUNS, {"k_eval": "many"}),
    ):
        with pytest.raises(InputError):
            open_page(model, store, **given)  # type: ignore[arg-type]


def test_a_data_set_without_samples_is_refused_and_one_with_one_sample_ends_the_page() -> None:
    page = page_of("simulated")
    with pytest.raises(InputError, match="unknown dataset with samples 'gsm8k'; known: mini-"):
        show_runs(page, "gsm8k")
    one = page.runs.assign(most=page.runs["most"].where(page.runs.index != "mini-exam", 1))
    with pytest.raises(EndOfPage):
        show_runs(Page(page.counting, one, page.evidence), "mini-exam")


def test_a_mistyped_parameter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def given_to_a_notebook(given: str) -> None:
        namespace: dict[str, Any] = {
            "In": ["", "model: str = 'simulated'", f"# Parameters\n{given}"]
        }
        exec(f"model: str = 'simulated'\nrisk: float = 0.1\n{given}", namespace)
        shell = SimpleNamespace(user_ns=namespace, run_line_magic=lambda *_: None)
        monkeypatch.setattr("IPython.get_ipython", lambda: shell)
        page_of("simulated")

    given_to_a_notebook("model = 'smollm2-135m'\nrisk = 1")
    given_to_a_notebook("")
    with pytest.raises(InputError, match="unknown parameter 'modle'; known: model, risk"):
        given_to_a_notebook("modle = 'smollm2-135m'")
    with pytest.raises(InputError, match="risk must be a number; got 'low'"):
        given_to_a_notebook("risk = 'low'")


def test_measured_models_stand_beside_each_other_from_the_smallest() -> None:
    beside = models_beside(page_of("qwen2.5-coder-0.5b", verdicts="rules"))
    assert [*beside] == ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    assert [*models_beside(page_of("simulated"))] == ["simulated"]


def test_a_finding_escapes_the_texts_of_others() -> None:
    shown = finding("{share:.0%} of {name}", share=0.256, name="<b>*mine*</b>").data
    assert shown == r"26% of \<b\>\*mine\*\</b\>"
    assert plain("a\nb") == "a b"


def test_numbers_are_glued_as_python_writes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Any] = {}
    monkeypatch.setattr("myst_nb.glue", lambda key, value, display: kept.update({key: value}))
    glue(**pd.Series({"a": 1.5}).to_dict(), b=pd.Series([2])[0], c="text")
    assert repr(kept) == "{'a': 1.5, 'b': 2, 'c': 'text'}"


def test_the_name_by_which_papermill_knows_the_end_is_not_that_of_the_interpreter() -> None:
    assert not issubclass(EndOfPage, SystemExit)
    assert page_module.EndOfPage.__name__ == "SystemExit"
