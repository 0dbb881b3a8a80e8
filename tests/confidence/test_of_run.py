"""The confidences of a run, each asked once."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from capcal_lib.cli import app
from capcal_lib.confidence import of_run
from capcal_lib.confidence.of_run import (
    METHODS,
    estimate,
    methods_of,
    place_confidence,
    read_confidence,
)
from capcal_lib.confidence.p_true import p_true
from capcal_lib.confidence.verbalized import verbalized
from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run, run_questions
from capcal_lib.manifests import load_model
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results
from capcal_lib.runs import Run, find_run
from capcal_lib.runs.artifacts import CONFIDENCES
from capcal_lib.runs.status import run_status
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import open_engine
from capcal_lib.sampling.engines.simulated import SimulatedEngine
from tests.confidence.tables import tabulate
from tests.folders import sampled, verify_run
from tests.sampling.chat_server import ChatServer, Exchange, Fault, status

SET = "mini-capitals"
MODEL = load_model("simulated")


class Failing(SimulatedEngine):
    def next_token_logprobs(self, requests, words, sampling, seed):  # type: ignore[no-untyped-def]
        raise RuntimeError("out of memory")

    def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
        yield next(iter(super().sample(requests, sampling, seed)))
        raise RuntimeError("out of memory")


def use(monkeypatch: pytest.MonkeyPatch, engine: type[SimulatedEngine]) -> None:
    monkeypatch.setattr(of_run, "open_engine", lambda model, name=None: engine(model))


@pytest.mark.parametrize("method", METHODS)
def test_what_is_kept_is_what_the_method_said(run: Path, method: str) -> None:
    kept = estimate(Run(run), method)
    engine, questions = open_engine(MODEL), sampled(run)
    asked = (p_true if method == "p-true" else verbalized)(engine, MODEL, questions, seed=0)
    expected = tabulate(asked).loc[[question.id for question in questions]]
    expected = expected.astype({"text": "str"})
    for table in (kept, read_confidence(Run(run), method)):
        pd.testing.assert_frame_equal(table, expected, check_dtype=False)


@pytest.mark.parametrize("method", METHODS)
def test_a_question_is_asked_once_whatever_the_engine(
    run: Path, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = estimate(Run(run), method)
    written = Run(run).path(CONFIDENCES, method).stat().st_mtime_ns
    use(monkeypatch, Failing)
    again = estimate(Run(run), method, engine="simulated")
    pd.testing.assert_frame_equal(again, first)
    assert Run(run).path(CONFIDENCES, method).stat().st_mtime_ns == written


def test_questions_sampled_later_are_asked_alone(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=1, limit=3, store=tmp_path / "grown").run.folder
    few = {method: estimate(Run(folder), method) for method in METHODS}
    sample("simulated", SET, k=1, limit=8, store=tmp_path / "grown")
    whole = sample("simulated", SET, k=1, limit=8, store=tmp_path / "whole").run.folder
    for method in METHODS:
        grown, at_once = estimate(Run(folder), method), estimate(Run(whole), method)
        assert (len(few[method]), len(grown)) == (3, 8)
        pd.testing.assert_frame_equal(grown, at_once)


def test_a_model_that_is_asked_in_another_way_since_is_refused(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change, what = {"chat_template": {"thinking": False}}, "switches of the chat template"
    monkeypatch.setattr(of_run, "load_model", lambda _: MODEL.model_copy(update=change))
    with pytest.raises(InputError, match=f"its samples have other {what}"):
        estimate(Run(run), "p-true")


def confident(exchange: Exchange, body: dict[str, Any]) -> bool:
    place = {
        "token": "0.5",
        "top_logprobs": [{"token": "Yes", "logprob": -1.0}, {"token": "No", "logprob": -1.0}],
    }
    choice = {
        "message": {"content": "0.5"},
        "finish_reason": "stop",
        "logprobs": {"content": [place]},
    }
    exchange.say(200, exchange.server.chat.completion(body) | {"choices": [{"index": 0} | choice]})
    return True


@pytest.mark.parametrize("method", METHODS)
def test_what_a_server_refuses_is_summed_up_and_asked_again(
    run: Path, method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    refused: list[str] = [
        question.text for question in sampled(run)[3:]
    ]  # the second half is refused
    command = (
        f"confidence --model simulated --dataset {SET} --method {method} --engine openai "
        f"--store {run.parents[2]}"
    )

    def fault(number: int, body: dict[str, Any]) -> Fault:
        said = body["messages"][-1]["content"]
        return status(400, "no") if any(text in said for text in refused) else confident

    with ChatServer(models=("simulated",), fault=fault) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        told = CliRunner().invoke(app, command.split())
        assert told.exit_code == 1
        assert "3 confidences kept" in told.output
        assert read_confidence(Run(run), method).tokens.tolist()[:3] != [0, 0, 0]
        assert caplog.messages == [
            '5 of 8 questions were not answered: 5 times: status 400: {"error": {"message": "no"}}'
        ]
        assert (
            "5 questions were not answered, for the reason above; once it is solved" in told.stderr
        )
        asked = len(server.asked)
        refused.clear()
        told = CliRunner().invoke(app, command.split())
        assert (told.exit_code, "8 confidences kept" in told.output) == (0, True)
        again = [body["messages"][-1]["content"] for body in server.asked[asked:]]
        assert not any(question.text in said for said in again for question in sampled(run)[:3])


@pytest.mark.parametrize("method", METHODS)
def test_a_failing_engine_leaves_what_it_answered(
    run: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    before = {*run.iterdir()}
    with monkeypatch.context() as patch:
        use(patch, Failing)
        with pytest.raises(RuntimeError, match="out of memory"):
            estimate(Run(run), method)
    answered = [] if method == "p-true" else [Run(run).path(CONFIDENCES, method)]
    assert {*run.glob("*.parquet")} - before == {*answered}
    if answered:
        assert len(read_confidence(Run(run), method)) == 1
    assert len(estimate(Run(run), method)) == 8


def test_an_unknown_method_is_refused(run: Path) -> None:
    known = "known: consistency, p-true, verbalized"
    with pytest.raises(InputError, match=f"unknown method 'guess'; {known}"):
        estimate(Run(run), "guess")
    with pytest.raises(InputError, match=r"no confidence-guess in .* --from FILE --name guess"):
        read_confidence(Run(run), "guess")
    with pytest.raises(InputError, match=r"invalid method name '\.\./x'; use letters"):
        place_confidence(Run(run), "../x", [])


def test_p_true_asks_some_questions_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    questions = list(load_questions(SET))[:5]
    whole = list(p_true(SimulatedEngine(MODEL), MODEL, questions, seed=0))
    monkeypatch.setattr("capcal_lib.confidence.p_true.CHUNK", 2)
    asked = p_true(SimulatedEngine(MODEL), MODEL, questions, seed=0)
    assert [next(asked), *asked] == whole


def test_a_missing_file_names_the_command(run: Path) -> None:
    where = f"--model simulated --dataset mini-capitals --split test --store {run.parents[2]}"
    with pytest.raises(
        InputError, match=rf"make them with: capcal confidence {where} --method p-true"
    ):
        read_confidence(Run(run), "p-true")


def test_the_recorded_confidences_are_made_again() -> None:
    folder = find_run(RECORDED_RUNS, "simulated", SET, "test").folder
    kept, questions = read_confidence(Run(folder), "p-true"), run_questions(Run(folder))
    assert kept.index.tolist() == sorted(questions)
    some = [questions[name] for name in kept.index[::20]]
    fresh = tabulate(p_true(open_engine(MODEL), MODEL, some, seed=0))
    np.testing.assert_allclose(kept["confidence"][::20], fresh["confidence"], rtol=1e-12)


# A method of one's own


def rows_for(run: Path) -> list[dict[str, Any]]:
    return [
        {"question_id": one.id, "confidence": number / 8, "tokens": number}
        for number, one in enumerate(sampled(run))
    ]


def test_ones_own_method_is_placed_and_listed(run: Path) -> None:
    estimate(Run(run), "p-true")
    placed = place_confidence(Run(run), "length", rows_for(run)[::-1])
    assert placed["confidence"].tolist() == [number / 8 for number in range(8)]
    assert placed["tokens"].tolist() == list(range(8))
    assert methods_of(Run(run)) == ["p-true", "length"]
    place_confidence(
        Run(run),
        "length",
        [*rows_for(run)[1:], {"question_id": sampled(run)[0].id, "confidence": ""}],
    )
    again = read_confidence(Run(run), "length")
    assert again["confidence"].isna().tolist() == [True] + [False] * 7
    assert again["tokens"].iloc[0] == 0
    with pytest.raises(InputError, match="unknown method 'length'"):
        estimate(Run(run), "length")


def test_the_name_of_something_else_is_refused(run: Path) -> None:
    for name in ("p-true", "consistency", "correct", "Probe", "Actual"):
        with pytest.raises(InputError, match="is taken; give your method another name"):
            place_confidence(Run(run), name, rows_for(run))


def test_rows_that_are_no_confidences_are_refused(run: Path) -> None:
    rows = rows_for(run)
    before = sorted(run.iterdir())
    for wrong, what in (
        (rows[0] | {"confidence": 1.5}, "its confidence is not in [0, 1]"),
        (rows[0] | {"confidence": -0.1}, "its confidence is not in [0, 1]"),
        (rows[0] | {"confidence": "0,5"}, "its confidence is no number"),
        (rows[0] | {"tokens": -1, "confidence": 1}, "its tokens are below 0"),
        (rows[0] | {"tokens": float("inf")}, "its tokens are no number"),
        (rows[0] | {"question_id": 1}, "its question was not sampled; the ids look like '"),
        (rows[3], "its question stands in a row before"),
        ({"question_id": rows[0]["question_id"], "s": 0.5}, "no confidence"),
        ({"confidence": 0.5}, "no question_id"),
    ):
        line = re.escape(f"a.csv, row 7: {what}") + ".*got " + re.escape(str(wrong))
        with pytest.raises(InputError, match=line):
            place_confidence(Run(run), "length", [*rows[1:], wrong], "a.csv")
    assert sorted(run.iterdir()) == before


def test_a_confidence_of_ones_own_is_a_number_or_missing(run: Path) -> None:
    cells = ["0.5", "5e-1", 0.5, 0.5, None, "NaN", pd.NA, ""]
    rows = [
        {"question_id": one.id, "confidence": cell, "tokens": None}
        for one, cell in zip(sampled(run), cells, strict=True)
    ]
    placed = place_confidence(Run(run), "mine", rows)["confidence"]
    assert placed.fillna(-1).tolist() == [0.5] * 4 + [-1] * 4


def test_ones_own_method_by_command_is_a_column_and_known_to_status_and_verify(run: Path) -> None:
    store, file = run.parents[2], run.parents[2] / "length.csv"
    file.write_text(
        "question_id,confidence\n" + "".join(f"{one.id},0.25\n" for one in sampled(run)[1:])
    )
    asked = ["--model", "simulated", "--dataset", SET, "--store", str(store)]
    grade_run(Run(run))
    done = CliRunner().invoke(app, ["confidence", *asked, "--from", str(file), "--name", "length"])
    assert done.stdout == "length: 7 confidences kept, 1 missing\n"
    results = load_results(store, "simulated")
    assert list(results) == ["correct", "total", "length"]
    assert results["length"].isna().sum() == 1
    assert run_status(Run(run))["beside"] == {"confidence-length": 8}
    assert verify_run(Run(run)).problems == []
    sample("simulated", SET, k=1, limit=9, store=store)
    assert run_status(Run(run))["beside"] == {"confidence-length": 8}
    assert "confidence-length.parquet: not of what was sampled, or not of all of it" in " ".join(
        verify_run(Run(run)).problems
    )
    for heads, message in (
        ("question_id,said", "no column confidence; .*; rename one"),
        ("question_id,confidence", "length.csv, row 0: its confidence is no number"),
    ):
        file.write_text(f"{heads}\na,high\n")
        refused = CliRunner().invoke(
            app, ["confidence", *asked, "--from", str(file), "--name", "x"]
        )
        assert isinstance(refused.exception, InputError)
        assert re.search(message, str(refused.exception))
    for wrong in (
        [],
        ["--method", "p-true", "--from", str(file)],
        ["--name", "x"],
        ["--from", str(file)],
    ):
        refused = CliRunner().invoke(app, ["confidence", *asked, *wrong])
        assert isinstance(refused.exception, InputError)
        assert "use either --method, or --from FILE with --name NAME" in str(refused.exception)
