"""What is refused, and the lines of the guide that put it right."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.io.tables import read_file
from capcal_lib.places import BOOK, ROOT
from tests.io.files import accuracy, epoch, harness, inspect, write

GUIDE = (BOOK / "guide" / "bring_your_own.md").read_text(encoding="utf-8")
SECTION = GUIDE.partition("### A file that is refused\n")[2].partition("\n### ")[0]
SHARES = "question_id;confidence;correct;total\n01;0,5;1;2\n1;1;2;2\n"
SAMPLES = "question_id,sample,response,gold,verdict\na,0,4,4,pass\na,1,5,4,fail\na,1,5,4,fail\n"
COLOURS = "['red', 'green']"


def write_files(folder: Path) -> None:
    """Write the files that the section is about."""
    (folder / "commas.csv").write_text(SHARES)
    percent = SHARES.replace("0,5", "50 %").replace(";1;2;2", ";100%;2;2").replace(";", ",")
    (folder / "percent.csv").write_text(percent)
    row = {"question_id": ["a"], "choices": [COLOURS], "answer": [1], "response": ["B"]}
    pd.DataFrame(row).to_csv(folder / "lists.csv", index=False)
    (folder / "samples.csv").write_text(SAMPLES)
    (folder / "words.csv").write_text("id,response,gold,verdict\na,4,4,1\na,4,4,maybe\n")
    pd.read_csv(folder / "commas.csv", sep=";").to_json(folder / "columns.json")
    inspect(folder / "words.json", epoch(0, "pass"), epoch(1, "fail"), epoch(2, "pass"))
    for time, text in (("2025-01-01T10-00-00", "4"), ("2025-01-02T10-00-00", "5")):
        rows = [harness(n, text) for n in range(3)]
        write(folder / "logs" / f"samples_sums_{time}.jsonl", *rows)
    filters = [harness(0, "x", filter=name) for name in ("strict-match", "flexible-extract")]
    write(folder / "samples_filters.jsonl", *filters)
    write(folder / "samples_copied.jsonl", *[harness(n, "4") for n in (0, 1, 0)])


REFUSED = {
    "columns.json": 'is a column and no row; write table.to_json("rows.jsonl", orient="records"',
    "words.csv": "row 1: question 'a' has no such verdict; verdicts are 1/0, true/false, C/I or "
    'correct/incorrect: table["verdict"] = table["verdict"] == "pass": {\'verdict\': \'maybe\'}',
    "commas.csv": "row 0: question '01' has a confidence .*; read it by pd.read_csv(FILE, sep=",
    "percent.csv": "row 0: question '01' has a confidence .*; read it by table[\"confidence\"].str",
    "lists.csv": "row 0: \"['red', 'green']\" is no list as JSON writes one; write table.to_json(",
    "samples.csv": "row 2: question 'a' has the sample of an earlier one; give one of the logs, or "
    'table.drop_duplicates(["question_id", "sample"])',
    "words.json": "no verdicts by judge: pass, fail; verdicts are 1/0",
    "logs": "is a folder; name the files in it, as in .*logs/*.jsonl",
    "samples_filters.jsonl": "verdicts by exact_match,strict-match and exact_match,flexible-extract"
    "; choose: --scorer exact_match,strict-match",
    "samples_copied.jsonl": "row 2: question '0' stands there twice; equal lines go by: sort -u",
}


@pytest.mark.parametrize(("name", "said"), REFUSED.items())
def test_a_refusal_names_the_line_that_helps(tmp_path: Path, name: str, said: str) -> None:
    write_files(tmp_path)
    with pytest.raises(InputError, match=re.escape(said).replace(r"\.\*", ".*")):
        read_file(tmp_path / name)


@pytest.mark.slow
def test_the_lines_of_the_guide_put_refused_files_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path)
    monkeypatch.chdir(tmp_path)
    exec("\n".join(re.findall(r"```python\n(.*?)```", SECTION, re.DOTALL)), {})
    for name in ("with_points.csv", "with_shares.csv"):
        found = read_file(tmp_path / name).table
        assert found["confidence"].to_dict() == {"01": 0.5, "1": 1.0}
    assert accuracy(tmp_path / "lists.jsonl") == (1, 1)
    assert accuracy(tmp_path / "samples_once.csv") == (1, 2)
    [console] = re.findall(r"```console\n(.*?)```", SECTION, re.DOTALL)
    outputs = []
    for line in console.splitlines():
        done = subprocess.run(
            [
                "bash",
                "-c",
                line.removeprefix("$ ").replace("capcal", f"{sys.executable} -m capcal_lib"),
            ],
            env=os.environ | {"PYTHONPATH": str(ROOT), "CAPCAL_STORE": "runs"},
            capture_output=True,
            text=True,
            check=True,
        )
        outputs.append(done.stdout)
    assert "accuracy                   0.67" in outputs[0]
    assert "6 samples imported" in outputs[1]
    assert "accuracy                   1.00" in outputs[2]
    assert accuracy(tmp_path / "samples_single.jsonl") == (2, 2)
    scores = [json.loads(line) for line in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert len({row["metric"] for row in scores}) > 15
