from pathlib import Path
from typing import Any

import pytest

from capcal_lib.book.parameters import check_parameters, open_store
from capcal_lib.errors import InputError
from capcal_lib.places import RECORDED_RUNS

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
    for risk, wrong in ((1.5, "less than 1"), (-0.1, "greater than or equal to 0")):
        with pytest.raises(InputError, match=f"parameter risk should be {wrong}; got {risk}"):
            check_parameters({"__annotations__": {"risk": float}, "risk": risk})
    with pytest.raises(
        InputError, match=r"store names no folder: 'runs/nowhere'; looked in .* with -p store DIR"
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


def test_a_protocol_that_is_not_known_is_refused_with_those_that_are() -> None:
    named = {"__annotations__": {"protocol": str}, "protocol": "papers", "In": []}
    with pytest.raises(
        InputError, match="parameter protocol should be 'corrected' or 'paper'; got 'papers'"
    ):
        check_parameters(named)
