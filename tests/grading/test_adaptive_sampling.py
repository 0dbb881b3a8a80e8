from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading.adaptive_sampling import sample_until
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.runs import Run
from capcal_lib.runs.stopping import Rule, outcomes, stops
from capcal_lib.runs.store import read_samples
from capcal_lib.sampling import draw as sampling_module
from capcal_lib.sampling.draw import sample
from capcal_lib.sampling.engines.simulated import SimulatedEngine

SET, RULE = "mini-exam", Rule(precision=0.1, k=40)


def until(store: Path, **changes: object):  # type: ignore[no-untyped-def]
    settings = {"precision": RULE.precision, "k": RULE.k, "limit": 8, "store": store} | changes
    return sample_until("simulated", SET, **settings)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return until(tmp_path_factory.mktemp("once")).run.folder


def test_each_question_has_the_first_samples_of_a_full_run_up_to_its_stop(
    undisturbed: Path, tmp_path: Path
) -> None:
    whole = sample("simulated", SET, k=RULE.k, limit=8, store=tmp_path).run.folder
    grade_run(Run(whole))
    names, table = outcomes(read_verdicts(Run(whole)), RULE.k)
    at, stopped = stops(RULE, table)
    assert stopped.all()
    assert 20 in at
    assert RULE.k in at
    full = read_samples(Run(whole))
    wanted = full[full["sample_index"] < full["question_id"].map(dict(zip(names, at, strict=True)))]
    pd.testing.assert_frame_equal(read_samples(Run(undisturbed)), wanted.reset_index(drop=True))


def test_the_report_adds_up(tmp_path: Path) -> None:
    first = until(tmp_path)
    assert first.new + first.saved == 8 * RULE.k
    assert 0 < first.early < first.questions == 8
    again = until(tmp_path)
    assert (again.new, again.early, again.saved) == (0, first.early, first.saved)


def test_a_run_that_was_stopped_goes_on_to_the_same_rows(undisturbed: Path, tmp_path: Path) -> None:
    def stop(done: int, most: int) -> None:
        assert done <= most
        if done > 45:
            raise KeyboardInterrupt

    stopped = 0
    while True:
        try:
            folder = until(tmp_path, progress=stop).run.folder
        except KeyboardInterrupt:
            stopped += 1
        else:
            break
    assert stopped > 2
    pd.testing.assert_frame_equal(read_samples(Run(folder)), read_samples(Run(undisturbed)))


def test_a_narrower_precision_goes_on_from_there(tmp_path: Path) -> None:
    few = until(tmp_path, precision=0.15).new
    more = until(tmp_path).new
    assert few > 0
    assert more > 0
    assert few + more + until(tmp_path).saved == 8 * RULE.k


def test_another_seed_is_another_run(undisturbed: Path, tmp_path: Path) -> None:
    other = until(tmp_path, seed=1).run.folder
    assert other.name != undisturbed.name
    assert not np.array_equal(
        read_samples(Run(other))["response"][:20], read_samples(Run(undisturbed))["response"][:20]
    )


def test_a_question_that_the_engine_leaves_out_does_not_hold_up_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forgetful(SimulatedEngine):
        def sample(self, requests, sampling, seed):  # type: ignore[no-untyped-def]
            groups = list(super().sample(requests, sampling, seed))
            yield from groups[1:]

    with monkeypatch.context() as patch:
        patch.setattr(sampling_module, "open_engine", lambda model, name=None: Forgetful(model))
        done = until(tmp_path)
    assert len(read_samples(done.run)) == done.new < 8 * RULE.k - done.saved
    assert until(tmp_path).new > 0
    assert until(tmp_path).new == 0


@pytest.mark.parametrize("precision", [0.0, 0.7])
def test_a_bad_precision_is_refused_and_leaves_nothing(tmp_path: Path, precision: float) -> None:
    with pytest.raises(InputError, match="precision is the half-width"):
        until(tmp_path / "store", precision=precision)
    assert list(tmp_path.iterdir()) == []
