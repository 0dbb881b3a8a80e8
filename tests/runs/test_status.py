import json
import math
from pathlib import Path

import pytest

from capcal_lib.confidence.of_run import estimate, place_confidence
from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.manifests import RECORDED_RUNS
from capcal_lib.probes.features import extract
from capcal_lib.questions import load_questions
from capcal_lib.runs import Run
from capcal_lib.runs.status import as_row, line, next_step, run_status, survey
from capcal_lib.runs.store import read_samples
from capcal_lib.sampling.draw import open_run, sample
from tests.folders import list_runs

SET = "mini-exam"


def test_a_finished_run_lacks_nothing_and_says_what_it_took(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=3, limit=4, store=tmp_path).run.folder
    status = run_status(Run(folder))
    assert (status.samples, status.questions, status.each, status.asked) == (12, 4, (3, 3), "4 x 3")
    assert (status.lacking, status.writer) == (0, None)
    assert (status.graded, status.beside) == ("no", {})
    assert next_step(status) == "capcal grade --model simulated --dataset mini-exam --split test"
    assert status.seconds > 0
    assert status.samples_per_second == pytest.approx(12 / status.seconds)
    assert status.tokens_per_second == pytest.approx(status.tokens / status.seconds)


def test_a_stopped_run_lacks_the_rest_of_the_largest_ask(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    sample("simulated", SET, k=2, limit=2, store=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        sample("simulated", SET, k=5, limit=4, store=tmp_path, progress=stop)
    (folder,) = list_runs(tmp_path)
    status = run_status(Run(folder))
    assert status.asked == "4 x 5"
    assert status.samples + status.lacking == 20
    assert "lacking of 4 x 5" in line(status)
    assert next_step(status).endswith("--split test --limit 4 --k 5")


def test_of_two_asks_the_next_step_draws_the_one_that_is_not_met(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done >= 3:
            raise KeyboardInterrupt

    sample("simulated", SET, k=4, limit=2, store=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        sample("simulated", SET, k=1, limit=9, store=tmp_path, progress=stop)
    (folder,) = list_runs(tmp_path)
    status = run_status(Run(folder))
    assert status.asked == "9 x 1"
    assert status.samples + status.lacking == 2 * 4 + 7
    assert next_step(status).endswith("--split test --limit 9 --k 1")
    sample("simulated", SET, k=1, limit=9, store=tmp_path)
    status = run_status(Run(folder))
    assert (status.asked, status.lacking) == ("9 x 1", 0)


def test_what_is_stale_is_said(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=2, limit=2, store=tmp_path).run.folder
    grade_run(Run(folder))
    estimate(Run(folder), "p-true")
    extract(Run(folder))
    status = run_status(Run(folder))
    assert (status.graded, status.beside) == (
        "yes",
        {"confidence-p-true": "yes", "features": "yes"},
    )
    sample("simulated", SET, k=2, limit=3, store=tmp_path)
    status = run_status(Run(folder))
    assert status.graded == "stale: 4 of 6"
    assert status.beside == {"confidence-p-true": "2 of 3", "features": "2 of 3"}


def test_missing_confidences_are_not_called_all(tmp_path: Path) -> None:
    run = sample("simulated", SET, k=2, limit=3, store=tmp_path).run
    grade_run(run)
    assert "confidence" in next_step(run_status(run))
    names = sorted({row.id for row in load_questions(SET)} & set(read_samples(run)["question_id"]))
    place_confidence(run, "mine", [{"question_id": names[0], "confidence": 0.5}])
    status = run_status(run)
    assert status.beside == {"confidence-mine": "1 of 3"}
    assert next_step(status) == ""


def test_a_writer_at_work_is_named_with_the_time_to_go(tmp_path: Path) -> None:
    with open_run("simulated", SET, k=4, store=tmp_path, limit=2) as drawing:
        drawing.draw(dict.fromkeys(drawing.asked, 1))
        drawing.start()[1].write("drawing")
        status = run_status(Run(drawing.writer.folder))
        assert (status.samples, status.lacking) == (2, 6)
        assert status.writer
        assert status.writer.startswith("pid ")
        assert status.seconds_left == pytest.approx(3 * status.seconds)
        assert "is at work, " in line(status)
    assert math.isnan(run_status(Run(drawing.writer.folder)).seconds_left)


def test_a_run_without_sessions_is_measured_by_what_is_there() -> None:
    (status, _) = survey(RECORDED_RUNS, "simulated", "mini-exam")
    assert (status.asked, status.lacking) == ("102 x 120", 0)
    row = json.loads(as_row(status))
    assert row["identity"]["dataset"] == "mini-exam"
    assert (row["samples"], row["seconds_left"]) == (12_240, None)


def test_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        list(survey(tmp_path / "nowhere"))
