"""The guide "Bring your own", executed: each recipe as it stands there, in an empty folder outside
the repository.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from capcal_lib.confidence.of_run import estimate
from capcal_lib.errors import InputError
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.manifests import load_dataset, load_model, write_new
from capcal_lib.places import BOOK, OWN_MANIFESTS, ROOT, own_manifests
from capcal_lib.probes.features import extract
from capcal_lib.questions import load_questions
from capcal_lib.results import load_results
from capcal_lib.runs import Run
from capcal_lib.runs.status import run_status
from capcal_lib.sampling.draw import sample
from tests.folders import list_runs, verify_run

GUIDE = (BOOK / "guide" / "bring_your_own.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"```bash\n(.*?)```", GUIDE, re.DOTALL)


@pytest.mark.slow
def test_the_recipes_of_the_guide_work_one_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "bin" / "capcal"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m capcal_lib.cli "$@"\n')
    command.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("CAPCAL")
    }
    environment |= {"PATH": f"{command.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    environment["CAPCAL_STORE"] = "runs"
    said = []
    for recipe in RECIPES:
        run = ["bash", "-e", "-c", recipe]
        done = subprocess.run(
            run, cwd=work, env=environment, capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert len(said) == 5
    assert "12 samples drawn" in said[1]
    assert "12 samples graded" in said[2]
    assert "4 samples imported" in said[3]
    assert "length" in said[4]
    assert (work / "report.html").read_text().startswith("<!")
    monkeypatch.chdir(work)
    results = load_results("runs", "their-model")
    assert results["correct"].tolist() == [1, 2]
    assert results["length"].tolist() == [0.6, 0.8]
    for folder in list_runs(Path("runs")):
        assert verify_run(Run(folder)).problems == []
    store = Path("runs")
    [python] = [
        block
        for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
        if "place_confidence" in block
    ]
    exec(python, {"store": store})
    assert load_results(store, "simulated")["length"].between(0, 1).all()


def test_probes_of_other_layers_are_fitted_and_scored_as_the_guide_says(tmp_path: Path) -> None:
    [block] = [
        block
        for block in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)
        if "MLPRegressor" in block
    ]
    names: dict[str, object] = {"store": tmp_path, "model": "simulated"}
    names |= {"dataset": "mini-exam", "layers": "3"}
    for split in ("train", "test"):
        run = sample("simulated", "mini-exam", split=split, k=20, store=tmp_path).run
        grade_run(run)
        extract(run, layers="3")
    exec(block, names)
    scores = names["scores"]
    assert isinstance(scores, dict)
    assert [*scores] == ["linear", "linear, squared error", "two layers", "as printed"]
    # In this simulation a probe that knows nothing scores about 1/12, the variance of mu.
    assert all(0 < score < 0.25 for score in scores.values()), scores
    assert scores["linear"] < 0.07, scores


def test_a_new_manifest_works_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(OWN_MANIFESTS, raising=False)
    assert [path.name for path in write_new("model", "mine")] == ["mine.yaml"]
    assert [path.suffix for path in write_new("dataset", "law")] == [".jsonl", ".yaml"]
    assert own_manifests() == tmp_path / "capcal.d"
    ours = load_model("smollm2-135m")
    assert load_model("mine").weights == ours.weights, "those of a model that is known to run"
    assert load_model("mine").sampling == ours.sampling
    assert [one.id for one in load_questions("law")] == ["law/1", "law/2", "law/3"]
    assert load_dataset("law").title == "law"
    assert sample("mine", "law", k=2, store=tmp_path / "s", engine="simulated").new == 6
    there = sorted(tmp_path.rglob("*"))
    for what, name, message in (
        ("model", "mine", "exists already"),
        ("model", "smollm2-135m", "^a model 'smollm2-135m' exists already; choose another"),
        ("dataset", "../x", "invalid name '../x'; start with "),
    ):
        with pytest.raises(InputError, match=message):
            write_new(what, name)
    assert sorted(tmp_path.rglob("*")) == there


def test_an_installed_method_is_found_by_its_entry_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = sample("simulated", "mini-exam", k=1, limit=3, store=tmp_path / "store").run.folder
    site = tmp_path / "site"
    (site / "lengths-1.0.dist-info").mkdir(parents=True)
    (site / "lengths-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: lengths\nVersion: 1.0\n"
    )
    (site / "lengths-1.0.dist-info" / "entry_points.txt").write_text(
        "[capcal.methods]\nlength = lengths:length\nbroken = lengths:broken\np-true = "
        "lengths:length\n"
    )
    (site / "lengths.py").write_text(
        "from capcal_lib.confidence.of_run import sampled_questions\n"
        "def length(run):\n"
        "    return [{'question_id': name, 'confidence': 0.25} for name in "
        "sampled_questions(run)]\n"
        "def broken(run):\n    raise RuntimeError('no\\nluck')\n"
    )
    monkeypatch.syspath_prepend(str(site))
    assert estimate(Run(folder), "length")["confidence"].tolist() == [0.25] * 3
    assert run_status(Run(folder))["beside"] == {"confidence-length": 3}
    assert verify_run(Run(folder)).problems == []
    assert estimate(Run(folder), "p-true")["tokens"].tolist() == [1] * 3, "ours stays ours"
    with pytest.raises(InputError, match="the method 'broken' of lengths:broken failed: no luck"):
        estimate(Run(folder), "broken")
    with pytest.raises(
        InputError, match="unknown method 'other'; known: broken, consistency, length, p-true"
    ):
        estimate(Run(folder), "other")
