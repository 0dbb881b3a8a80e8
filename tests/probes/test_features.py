"""The hidden states of a run, each read once."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import run_questions
from capcal_lib.manifests import load_model
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes import features as features_module
from capcal_lib.probes.features import extract, extract_features, read_features
from capcal_lib.runs import Run, find_run
from capcal_lib.runs.files import write_table
from capcal_lib.runs.status import run_status
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines import Request, open_engine
from capcal_lib.sampling.engines.simulated import SimulatedEngine
from tests.folders import sampled, verify_run
from tests.probes.stores import change

FEATURES = "features.parquet"
SET = "mini-capitals"
MODEL = load_model("simulated")


def use(monkeypatch: pytest.MonkeyPatch, engine: type[SimulatedEngine]) -> None:
    monkeypatch.setattr(features_module, "open_engine", lambda model, name=None: engine(model))


def test_questions_sampled_later_are_read_alone(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=1, limit=3, store=tmp_path / "grown").run.folder
    assert len(extract(Run(folder))) == 3
    sample("simulated", SET, k=1, limit=8, store=tmp_path / "grown")
    whole = sample("simulated", SET, k=1, limit=8, store=tmp_path / "whole").run.folder
    np.testing.assert_array_equal(extract(Run(folder)), extract(Run(whole)))
    assert read_features(Run(folder))[0] == read_features(Run(whole))[0]


def test_features_are_kept_as_float16_and_read_as_float32(run: Path) -> None:
    matrix = extract(Run(run))
    ids, again = read_features(Run(run))
    exact = extract_features(open_engine(MODEL), MODEL, sampled(run))
    assert ids == [question.id for question in sampled(run)]
    assert matrix.dtype == again.dtype == np.float32
    np.testing.assert_array_equal(matrix, again)
    np.testing.assert_array_equal(again, exact.astype(np.float16).astype(np.float32))
    np.testing.assert_allclose(again, exact, rtol=2**-10, atol=1e-6)
    assert pq.read_schema(run / FEATURES).field("features").type.value_type == pa.float16()


def test_a_stopped_extraction_goes_on_after_what_is_kept(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    kept: list[bool] = []

    class Stopping(SimulatedEngine):
        def hidden_states(self, requests):  # type: ignore[no-untyped-def]
            read.extend(request.question.id for request in requests)
            kept.append((run / FEATURES).exists())
            if len(read) == 8:
                raise KeyboardInterrupt
            return super().hidden_states(requests)

    whole = extract(Run(run))
    monkeypatch.setattr(features_module, "QUESTIONS_AT_ONCE", 3)
    use(monkeypatch, Stopping)
    for seconds, written in ((60.0, False), (0.0, True)):
        (run / FEATURES).unlink()
        monkeypatch.setattr(features_module, "WRITE_FEATURES_SECONDS", seconds)
        read.clear()
        with pytest.raises(KeyboardInterrupt):
            extract(Run(run))
        assert kept[-1] == written, "where it is killed, not stopped"
    read.clear()
    np.testing.assert_array_equal(extract(Run(run)), whole)
    assert read == [question.id for question in sampled(run)][6:]


def test_rows_of_another_prompt_are_refused_and_rows_of_unknown_ones_read_again(run: Path) -> None:
    whole = extract(Run(run))
    table = pq.read_table(run / FEATURES)
    assert table.column_names == ["question_id", "prompt", "features"]
    prompts = table["prompt"].to_pylist()
    write_table(
        run / FEATURES, table.set_column(1, "prompt", pa.array([*prompts[:-1], "0123456789abcdef"]))
    )
    with pytest.raises(
        InputError,
        match="made with another prompt, engine or model; delete it",
    ):
        extract(Run(run))
    write_table(run / FEATURES, table.drop_columns("prompt"))
    np.testing.assert_array_equal(
        read_features(Run(run))[1], whole
    )  # as it was kept before there were digests
    np.testing.assert_array_equal(extract(Run(run)), whole)
    assert pq.read_table(run / FEATURES)["prompt"].to_pylist() == prompts


@pytest.mark.parametrize("beyond", [65_519.0, np.nan, -np.inf])
def test_a_feature_beyond_float16_is_refused_and_leaves_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch, beyond: float
) -> None:
    use(monkeypatch, _with(beyond))
    third = sampled(run)[2].id
    with pytest.raises(
        InputError, match=rf"hidden states of '{third}' that are not finite, or too large"
    ):
        extract(Run(run))
    assert not (run / FEATURES).exists()


def _with(value: float) -> type[SimulatedEngine]:
    class Far(SimulatedEngine):
        def hidden_states(self, requests: list[Request]) -> np.ndarray:  # type: ignore[override]
            states = super().hidden_states(requests)
            states[2, 5] = value
            return states

    return Far


def test_hidden_states_of_another_length_are_not_mixed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Short(SimulatedEngine):
        def hidden_states(self, requests):  # type: ignore[no-untyped-def]
            return super().hidden_states(requests)[:, :3]

    folder = sample("simulated", SET, k=1, limit=2, store=tmp_path).run.folder
    extract(Run(folder))
    sample("simulated", SET, k=1, limit=3, store=tmp_path)
    use(monkeypatch, Short)
    with pytest.raises(InputError, match="another prompt, engine or model; delete it"):
        extract(Run(folder))
    assert len(read_features(Run(folder))[0]) == 2


def test_a_missing_file_names_the_command(run: Path) -> None:
    where = f"--model simulated --dataset mini-capitals --split test --store {run.parents[2]}"
    with pytest.raises(InputError, match=rf"make them with: capcal features {where}$"):
        read_features(Run(run))
    with pytest.raises(InputError, match=rf"no features-7 in .* features {where} --layers 7$"):
        read_features(Run(run), "7")


def test_other_weights_than_those_that_answered_are_refused(tmp_path: Path) -> None:
    change(sample("simulated", SET, k=1, limit=2, store=tmp_path).run, weights="another")
    with pytest.raises(InputError, match="weights"):
        extract(find_run(tmp_path, "simulated", SET, "test"))


def test_each_choice_of_layers_has_a_file_of_its_own_and_the_mean_the_one_it_had(run: Path) -> None:
    mean = extract(Run(run))
    before = (run / FEATURES).read_bytes()
    found = {layers: extract(Run(run), layers=layers) for layers in ("max", "0", "12")}
    assert (run / FEATURES).read_bytes() == before
    names = sorted(path.name for path in run.glob("features*"))
    assert names == ["features-0.parquet", "features-12.parquet", "features-max.parquet", FEATURES]
    for layers, matrix in found.items():
        assert matrix.shape == mean.shape
        assert (matrix != mean).any()
        np.testing.assert_array_equal(read_features(Run(run), layers)[1], matrix)
    np.testing.assert_array_equal(read_features(Run(run))[1], mean)
    beside = {path.removesuffix(".parquet"): 8 for path in names}
    assert run_status(Run(run))["beside"] == beside
    assert verify_run(Run(run)).problems == []
    for layers in ("-1", "01", "middle", "../1"):
        with pytest.raises(InputError, match="layers must be mean, max, or the number of one"):
            extract(Run(run), layers=layers)


def test_the_recorded_hidden_states_are_made_again() -> None:
    folder = find_run(RECORDED_RUNS, "simulated", SET, "test").folder
    (ids, features), questions = read_features(Run(folder)), run_questions(Run(folder))
    fresh = extract_features(open_engine(MODEL), MODEL, [questions[name] for name in ids[::20]])
    np.testing.assert_allclose(features[::20], fresh, rtol=1e-3, atol=1e-6)
