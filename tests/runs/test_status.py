import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from capcal_lib.cli import app
from capcal_lib.confidence.of_run import estimate, place_confidence
from capcal_lib.grading import GRADER_VERSION
from capcal_lib.grading.verdicts import grade_run, read_verdicts, write_verdicts
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.probes.features import extract
from capcal_lib.questions import load_questions
from capcal_lib.runs import Run
from capcal_lib.runs.artifacts import GIVEN
from capcal_lib.runs.run import Record
from capcal_lib.runs.status import SHOWN, run_status, survey
from capcal_lib.runs.store import read_samples
from capcal_lib.sampling.draw import sample
from tests.folders import list_runs

SET = "mini-exam"


def state(run: Run) -> SimpleNamespace:
    return SimpleNamespace(**run_status(run))


def test_a_finished_run_lacks_nothing(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=3, limit=4, store=tmp_path).run.folder
    status = state(Run(folder))
    assert (status.samples, status.questions) == (12, 4)
    assert status.lacking == 0
    assert (status.verdicts, status.beside) == ("no", {})
    asked = f"--model simulated --dataset mini-exam --split test --store {tmp_path}"
    assert status.command == f"capcal grade {asked}"


def test_a_stopped_run_lacks_the_rest_of_the_largest_ask(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        if done:
            raise KeyboardInterrupt

    sample("simulated", SET, k=2, limit=2, store=tmp_path)
    with pytest.raises(KeyboardInterrupt):
        sample("simulated", SET, k=5, limit=4, store=tmp_path, progress=stop)
    (folder,) = list_runs(tmp_path)
    status = state(Run(folder))
    assert status.samples + status.lacking == 20
    assert status.command.endswith(f"--split test --store {tmp_path} --limit 4 --k 5")


def test_what_is_stale_is_said(tmp_path: Path) -> None:
    folder = sample("simulated", SET, k=2, limit=2, store=tmp_path).run.folder
    grade_run(Run(folder))
    estimate(Run(folder), "p-true")
    extract(Run(folder))
    status = state(Run(folder))
    assert (status.verdicts, status.beside) == (
        "yes",
        {"confidence-p-true": 2, "features": 2},
    )
    sample("simulated", SET, k=2, limit=3, store=tmp_path)
    status = state(Run(folder))
    assert status.verdicts == "stale: 4 of 6"
    assert status.beside == {"confidence-p-true": 2, "features": 2}


def test_verdicts_of_another_grader_are_stale_but_not_those_given_with_the_samples(
    tmp_path: Path,
) -> None:
    run = sample("simulated", SET, k=2, limit=2, store=tmp_path).run
    grade_run(run)
    assert run_status(run, str(GRADER_VERSION))["verdicts"] == "yes"
    stale = f"stale: grader {GRADER_VERSION}, now another"
    assert run_status(run, "another")["verdicts"] == stale
    verdicts = read_verdicts(run)
    write_verdicts(run, verdicts, GIVEN)
    assert run_status(run, "another")["verdicts"] == "yes"


def test_confidences_of_ones_own_are_what_a_score_needs(tmp_path: Path) -> None:
    run = sample("simulated", SET, k=2, limit=3, store=tmp_path).run
    grade_run(run)
    assert "confidence" in state(run).command
    names = sorted({row.id for row in load_questions(SET)} & set(read_samples(run)["question_id"]))
    place_confidence(run, "mine", [{"question_id": names[0], "confidence": 0.5}])
    status = state(run)
    assert status.beside == {"confidence-mine": 3}
    assert status.command == ""


def test_a_server_is_asked_for_words_first_since_not_all_tell_probabilities(tmp_path: Path) -> None:
    run = sample("simulated", SET, k=2, limit=3, store=tmp_path).run
    grade_run(run)
    assert state(run).command.endswith(" --method p-true")
    identity = run.identity.model_copy(update={"engine": "openai"})
    record = Record(identity=identity, made_with={})
    (run.folder / "run.json").write_text(record.model_dump_json())
    served = Run(run.folder.rename(run.folder.with_name(identity.key)))
    assert state(served).command.endswith(" --method verbalized --engine openai")


def test_what_is_next_goes_on_with_the_run_and_no_other(tmp_path: Path) -> None:
    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    usual = sample("simulated", SET, k=1, limit=2, store=tmp_path).run
    settings = {"temperature": 0.25, "prompt_style": "steps"}
    with pytest.raises(KeyboardInterrupt):
        sample(
            "simulated", SET, k=5, limit=4, store=tmp_path, seed=3, settings=settings, progress=stop
        )
    [stopped] = {*map(Run, list_runs(tmp_path))} - {usual}
    command = state(stopped).command
    assert "--seed 3 --temperature 0.25 --prompt-style steps" in command
    done = CliRunner().invoke(app, shlex.split(command)[1:])
    assert done.exit_code == 0, done.output
    assert state(stopped).lacking == 0
    assert len(read_samples(stopped)) == 20
    assert len(list_runs(tmp_path)) == 2


def test_the_table_of_a_store_fits_a_line_and_has_a_word_for_what_is_next() -> None:
    table = survey(RECORDED_RUNS, "smollm2-135m")
    assert max(map(len, table[SHOWN].to_string(index=False).splitlines())) <= 120
    assert set(table["next"]) == {""}
    assert (table["lacking"] == 0).all()
