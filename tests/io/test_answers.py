"""The right answers that came with samples."""

from pathlib import Path

import pytest

from capcal_lib.io.importing import import_samples
from capcal_lib.io.samples import read_log
from capcal_lib.questions import load_questions
from tests.io.files import accuracy, harness, write

INTERVALS = [
    ("[-2,7]", r"\boxed{[-2,7]}", r"\boxed{-2}"),
    ("[0,1)", r"\boxed{[0,1)}", r"\boxed{[0,1]}"),
    ("[1, 2, 3]", r"\boxed{[1,2,3]}", r"\boxed{1}"),
]


@pytest.mark.parametrize(("gold", "right", "wrong"), INTERVALS)
def test_an_answer_in_brackets_stays_a_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gold: str, right: str, wrong: str
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"question_id": "a", "question": "Solve.", "gold": gold}
    path = write(tmp_path / "rows.jsonl", row | {"response": right}, row | {"response": wrong})
    import_samples(
        [path], model="m", dataset="d", store=tmp_path, kind="math", settings={"temperature": 1.0}
    )
    assert load_questions("d")[0].answer.gold == gold
    path = write(tmp_path / "samples_a.jsonl", harness(0, "x", target=gold))
    assert read_log([path]).items.loc["0", "gold"] == gold


def test_targets_are_lists_where_all_of_a_log_are(tmp_path: Path) -> None:
    listed = "['Sunset Blvd', 'Sunset Boulevard']"
    rows = [harness(0, "Sunset Boulevard", "x", target=listed), harness(1, "a", target='["b"]')]
    path = write(tmp_path / "samples_triviaqa.jsonl", *rows)
    items = read_log([path]).items
    assert items["gold"].tolist() == ["Sunset Blvd", "b"]
    assert items["aliases"].tolist() == [("Sunset Boulevard",), ()]
    assert accuracy(path, regrade=True) == (1, 3)
    one = read_log([write(path, rows[0], harness(1, "a", target="[sic]"))]).items.loc["0", "gold"]
    assert one == listed, "a text among texts"


def test_a_list_of_right_answers_is_bounded_before_it_is_read(tmp_path: Path) -> None:
    rows = [harness(0, "a", target="['a', 'b']"), harness(1, "a", target=f"[{'1,' * 40_000}]")]
    items = read_log([write(tmp_path / "samples_long.jsonl", *rows)]).items
    assert items.loc["0", "gold"] == "['a', 'b']", "a text, since the other is taken for one"
    assert len(items.loc["1", "gold"]) == 80_002
