import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from markdown_it.renderer import RendererHTML

from capcal_lib.book.layout import lay_out
from capcal_lib.book.lesson import KEPT_TYPE
from capcal_lib.book.notebook import about, finding, glue, measured_models, open_page, say
from capcal_lib.book.parameters import check_parameters, open_store
from capcal_lib.book.pipeline import own_front_page
from capcal_lib.book.tables import Html, badge
from capcal_lib.errors import InputError
from capcal_lib.manifests import RECORDED_RUNS

DECLARED = {"model": str, "k_eval": int, "level": float, "fast": bool}
VALUES: dict[str, Any] = {"model": "simulated", "k_eval": 10, "level": 0.5, "fast": True}


def namespace(injected: str = "", **given: Any) -> dict[str, Any]:
    cells = ["", "model: str = 'simulated'", f"# Parameters\n{injected}"]
    return {"__annotations__": DECLARED, "In": cells, **VALUES, **given}


def test_declared_parameters_of_their_types_pass() -> None:
    check_parameters(namespace("k_eval = 3\nlevel = 1", k_eval=3, level=1))


def test_an_unknown_parameter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        InputError, match=r"unknown parameter 'modle'; known: fast, k_eval, level, model"
    ):
        check_parameters(namespace("modle = 'x'", modle="x"))


def test_other_names_of_the_notebook_are_not_parameters() -> None:
    check_parameters(namespace("k_eval = 3", k_eval=3, figures=None, ratio=0.5))


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("k_eval", "many", "integer"),
        ("k_eval", 2.5, "integer"),
        ("k_eval", True, "integer"),
        ("level", "half", "number"),
        ("model", 3, "string"),
        ("fast", 1, "boolean"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: object, kind: str) -> None:
    with pytest.raises(
        InputError, match=f"^parameter {name} should be a valid {kind}; got {value!r}$"
    ):
        check_parameters(namespace(f"{name} = {value!r}", **{name: value}))


def test_values_that_are_not_allowed_are_one_clear_line() -> None:
    with pytest.raises(
        InputError, match="parameter k_eval should be greater than or equal to 2; got -1"
    ):
        check_parameters(namespace("k_eval = -1", k_eval=-1))
    with pytest.raises(InputError, match="parameter k_c should be greater than or equal to 0"):
        check_parameters({"__annotations__": {"k_c": int}, "k_c": -1})
    with pytest.raises(
        InputError, match=r"store names no folder: 'runs/nowhere'; looked in .* by -p store DIR"
    ):
        open_store("runs/nowhere")


def test_a_notebook_shows_the_line_and_no_traceback() -> None:
    assert InputError("k is too small")._render_traceback_() == ["InputError: k is too small"]


def test_a_store_is_looked_for_where_one_stands_and_then_at_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert open_store("runs/recorded") == RECORDED_RUNS
    mine = tmp_path / "runs" / "recorded"
    mine.mkdir(parents=True)
    assert open_store("runs/recorded").resolve() == mine
    assert open_store(str(RECORDED_RUNS)) == RECORDED_RUNS


def page_of(model: str, **given: str) -> pd.DataFrame:
    """Describe what is behind a page, as it does it itself."""
    asked = {"model": model, "store": str(RECORDED_RUNS), **given}
    return open_page(asked)[1]


def test_what_is_behind_a_page_is_counted_and_marked() -> None:
    html = about(page_of("smollm2-135m")).html
    row = BeautifulSoup(html, "html.parser").find("th", string="MMLU").parent
    assert [cell.text for cell in row.select("td")] == ["300", "100", "measured"]
    assert "capcal reproduce" not in html
    simulated = page_of("simulated")
    assert badge("simulated") in about(simulated).html
    assert " · 1 data set · 1 question <" in about(simulated.head(1).assign(questions=1)).html


def test_what_else_is_lacking_is_said_and_marked() -> None:
    html = about(page_of("simulated"), {"probes": "No <hidden> states."}).html
    assert "data-lacking='probes paper'" in html
    assert "No &lt;hidden&gt; states." in html


def test_a_model_without_samples_is_told_how_to_get_them() -> None:
    html = about(page_of("gpt-oss-20b")).html
    assert badge("reported") in html
    assert badge("measured") not in html
    for line in html.split("<pre>")[1].split("</pre>")[0].splitlines():
        assert " gpt-oss-20b" in line


def test_a_page_says_whose_protocol_and_verdicts_it_follows() -> None:
    runs = page_of("simulated")
    assert "What each correction changes" not in about(runs).html
    runs.attrs |= {"protocol": "paper", "verdicts": "judge:<b>"}
    said = about(runs).html
    assert "Protocol: paper; verdicts: judge:&lt;b&gt;. The page “What each correction" in said
    assert page_of("simulated", protocol="paper").attrs["protocol"] == "paper"
    asked = {"__annotations__": {"protocol": str}, "protocol": "papers", "In": []}
    with pytest.raises(
        InputError, match="parameter protocol should be 'corrected' or 'paper'; got 'papers'"
    ):
        check_parameters(asked)


def test_the_measured_models_of_a_store_come_from_the_smallest_to_the_largest() -> None:
    models = measured_models(RECORDED_RUNS, page_of("simulated"), 100)
    assert list(models) == ["smollm2-135m", "qwen2.5-coder-0.5b", "qwen2.5-coder-1.5b"]
    assert measured_models(RECORDED_RUNS, page_of("gpt-oss-20b"), 100) == {}


def test_a_page_of_several_models_links_the_others_and_has_labels_of_its_own() -> None:
    figure = {"figure": {"caption": "A.", "name": "fig-a"}}
    versions = {"04_main": "simulated", "04_main/qwen3-8b": "qwen3-8b"}
    heads, labels = [], []
    for name in versions:
        title = {"cell_type": "markdown", "source": "# Title", "metadata": {}}
        cell = {"cell_type": "code", "source": "1", "metadata": {"mystnb": deepcopy(figure)}}
        page = {"cells": [title, cell]}
        lay_out(page, name, versions)
        heads.append(page["cells"][0]["source"])
        labels.append(cell["metadata"]["mystnb"]["figure"].get("name"))
    assert labels == ["fig-a", None]
    names = ("Simulated model", "04_main"), ("Qwen3-8B (non-thinking)", "04_main/qwen3-8b")
    links = " · ".join(f"[{title}](/notebooks/{page}.ipynb)" for title, page in names)
    assert heads == [f"# Title\n\n{links}\n", f"# Title: {names[1][0]}\n\n{links}\n"]


def test_the_title_of_a_model_is_text_wherever_a_page_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    lines = "name: evil", "title: <img src=x onerror=alert(1)> [*A*] $x$", "engine: simulated"
    rest = "prompt_style: paper", "sampling: {temperature: 1, max_tokens: 8, context_tokens: 9}"
    (tmp_path / "models" / "evil.yaml").write_text("\n".join([*lines, *rest]))
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    title = {"cell_type": "markdown", "source": "# Title", "metadata": {}}
    page = {"cells": [title]}
    lay_out(page, "04_main/evil", {"04_main": "simulated", "04_main/evil": "evil"})
    shown = r"\<img src=x onerror=alert(1)\> \[\*A\*\] \$x\$"
    heading, _, links = page["cells"][0]["source"].splitlines()
    assert heading == f"# Title: {shown}"
    assert links.endswith(f" · [{shown}](/notebooks/04_main/evil.ipynb)")
    assert own_front_page("evil").startswith(f"# Capability calibration of {shown}\n")


def test_a_text_refuses_a_result_that_it_was_not_given() -> None:
    glue(kept=0.25)
    text = r"{kept:.0%} and {more} of $k_{eval}$, $\frac{a}{b}$, $\text{kept}$"
    expected = r"25 % and 3 of $k_{eval}$, $\frac{a}{b}$, $\text{kept}$"
    assert say(text, more=3).data == expected
    with pytest.raises(InputError, match=r"unknown result 'bound'; known: .*kept"):
        say("inside on {kept} data sets, the bounds on {bound}")
    assert "class='capcal-finding'" in finding("{kept}").data


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "{download}`../../../etc/hostname`",
    "a\n\n:::{include} /etc/hostname\n:::",
    "[x](javascript:alert(1)) ![y](z) **b** $\\mu$ &lt; <https://x.y>",
]


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize("kept", [False, True], ids=["given", "glued"])
def test_text_of_others_is_shown_as_it_is_and_is_no_markup(hostile: str, kept: bool) -> None:
    from markdown_it import MarkdownIt
    from myst_parser.config.main import MdParserConfig
    from myst_parser.parsers.mdit import create_md_parser

    if kept:
        glue(text=hostile)
    said = say("The question “{text}”.", **{} if kept else {"text": hostile}).data
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
    code = "import sys; from capcal_lib.book.notebook import glue; glue(a=1); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"myst_nb", "nbformat", "jsonschema"} & set(done.stdout.split())
