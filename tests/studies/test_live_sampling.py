"""Samples that are drawn for now are those that a run would keep."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run, read_verdicts
from capcal_lib.manifests import load_model
from capcal_lib.questions import load_questions
from capcal_lib.runs import KEY
from capcal_lib.sampling import Failure, open_engine
from capcal_lib.sampling.draw import sample
from capcal_lib.studies.live_sampling import draw_and_grade

MODEL = load_model("simulated")
QUESTIONS = load_questions("mini-elements", limit=5)


def test_fresh_samples_have_the_verdicts_of_a_run_of_the_same_seed(tmp_path: Path) -> None:
    fresh = draw_and_grade(open_engine(MODEL), MODEL, QUESTIONS, k=4, seed=7)
    run = sample("simulated", "mini-elements", k=4, limit=5, seed=7, store=tmp_path).run
    grade_run(run)
    kept = read_verdicts(run)
    assert fresh.groupby(KEY)["verdict"].first().to_dict() == (
        kept.groupby(KEY)["verdict"].first().to_dict()
    )


def test_a_sample_that_fails_is_said_in_one_line() -> None:
    class Broken:
        def sample(self, *_: Any) -> Iterator[Failure]:
            yield Failure("q", (0,), "out of memory")

    with pytest.raises(InputError, match=r"^a sample failed: out of memory; run it again$"):
        draw_and_grade(Broken(), MODEL, QUESTIONS, k=1, seed=0)  # type: ignore[arg-type]
