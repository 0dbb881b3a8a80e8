from typing import Any

import pytest

from capcal_lib.book.notebook import check_parameters, open_study
from capcal_lib.errors import InputError

DECLARED = {"model": str, "k_eval": int, "level": float, "fast": bool}
VALUES: dict[str, Any] = {"model": "simulated", "k_eval": 10, "level": 0.5, "fast": True}


def namespace(injected: str = "", **given: Any) -> dict[str, Any]:
    cells = ["", "model: str = 'simulated'", f"# Parameters\n{injected}", "study = open_study(globals())"]
    return {"__annotations__": DECLARED, "In": cells, **VALUES, **given}


def test_declared_parameters_of_their_types_pass() -> None:
    check_parameters(namespace("k_eval = 3\nlevel = 1", k_eval=3, level=1))


def test_an_unknown_parameter_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"unknown parameter 'modle'; known: fast, k_eval, level, model"):
        check_parameters(namespace("modle = 'x'", modle="x"))


def test_other_names_of_the_notebook_are_not_parameters() -> None:
    check_parameters(namespace("k_eval = 3", k_eval=3, figures=None, ratio=0.5))


@pytest.mark.parametrize(
    ("name", "value", "kind"),
    [
        ("k_eval", "many", "str"),
        ("k_eval", 2.5, "float"),
        ("k_eval", True, "bool"),
        ("model", 3, "int"),
        ("fast", 1, "int"),
    ],
)
def test_a_value_of_another_type_is_refused(name: str, value: object, kind: str) -> None:
    with pytest.raises(InputError, match=rf"parameter {name} must be of type \w+; got .*, which is of type {kind}"):
        check_parameters(namespace(f"{name} = {value!r}", **{name: value}))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": "gpt-9"}, "unknown model 'gpt-9'; known: .*smollm2-135m"),
        ({"k_eval": 0}, "k_eval is a number of samples and must be at least 1; got 0"),
        ({"seed": -1}, "seed must not be negative; got -1"),
        ({"store": "runs/nowhere"}, "store names no folder: 'runs/nowhere'"),
    ],
)
def test_a_value_that_is_not_allowed_is_one_clear_line(change: dict[str, object], message: str) -> None:
    values = {"model": "simulated", "store": "runs/recorded", "k_eval": 100, "seed": 0} | change
    declared = {name: type(value) for name, value in values.items()}
    with pytest.raises(InputError, match=message) as caught:
        open_study({"__annotations__": declared, "In": [], **values})
    assert "\n" not in str(caught.value)


def test_a_notebook_shows_the_line_and_no_traceback() -> None:
    assert InputError("k is too small")._render_traceback_() == ["InputError: k is too small"]


def opened(**given: Any) -> Any:
    return open_study({"model": "simulated", "store": "runs/recorded", "k_eval": 100, "seed": 0, **given})


def test_everyone_is_every_model_of_which_something_is_known() -> None:
    study = opened(k_eval=20)
    found = {each.model.name: each for each in study.everyone()}
    assert found["simulated"] is study
    assert {"smollm2-135m", "gpt-oss-20b", "qwen3-8b", "olmo-3-7b-instruct"} <= set(found)
    assert all(each.evaluations or each.reported for each in found.values())
    assert all(each.k_eval == 20 for each in found.values())
    assert {int(one.counts.total.max()) for each in found.values() for one in each.evaluations} == {20}


def test_the_largest_data_set_comes_first() -> None:
    sizes = [len(one.counts) for one in opened().evaluations]
    assert sizes == sorted(sizes, reverse=True)


def test_a_study_says_what_is_special_about_a_data_set() -> None:
    assert "k_eval = 500" in opened(k_eval=500)._repr_html_()
    assert "k_eval" not in opened()._repr_html_()
