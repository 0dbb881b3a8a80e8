import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from capcal_lib.errors import InputError
from capcal_lib.metrics import (
    binned_ece,
    bounds_over_constant,
    capability_brier,
    gains,
    may_be_best,
    mean_interval,
    questions_needed,
)
from capcal_lib.results.score_file import (
    BEST,
    compare_files,
    in_words,
    read_confidences,
    read_counts,
    read_file,
    score_files,
    score_table,
    spell_scores,
    summarize,
)

LOG = Path(__file__).parent / "logs" / "samples_counts.jsonl"
BY_RULES = "the log has no verdict on each sample: the rules grade it"
CSV = "question_id,confidence,correct,total\na,0.5,1,2\nb,1.0,2,2\n"
BAD = {
    "no confidence": (
        CSV.replace("0.5", ""),
        "row 0: question 'a' has no confidence, as 1 of 2 rows; --drop-missing",
    ),
    "not there": (CSV.replace("1.0", "NaN"), "row 1: question 'b' has no confidence"),
    "not a number": (
        CSV.replace("0.5", "high"),
        "row 0: question 'a' has a confidence that is no number: {'confidence': 'high'",
    ),
    "words": (CSV.replace("0.5", "I am 74% sure"), "row 0: .* a confidence that is no number"),
    "one percentage": (CSV.replace("0.5", "50"), "row 0: .* above 1; divide percentages by 100"),
    "above 1": (CSV.replace("0.5", "1.2"), "row 0: .* has a confidence above 1: "),
    "below 0": (CSV.replace("0.5", "-0.1"), "row 0: .* has a confidence below 0: "),
    "infinite": (CSV.replace("0.5", "inf"), "row 0: .* has a confidence above 1"),
    "more correct than total": (
        CSV.replace("2,2", "3,2"),
        "row 1: question 'b' has more correct samples than its total: .*'3', 'total': '2'",
    ),
    "half a sample": (
        CSV.replace("1,2", "0.5,2"),
        "row 0: question 'a' has a number of correct samples that is not whole, or below 0: ",
    ),
    "correct in words": (CSV.replace("1,2", "x,2"), "row 0: .* correct samples that is not whole"),
    "below none": (CSV.replace("1,2", "-1,2"), "row 0: .* correct samples that is .* below 0"),
    "a total in words": (
        CSV.replace("1,2", "1,x"),
        "row 0: .* has a total that is no whole number",
    ),
    "half a total": (CSV.replace("1,2", "1,2.5"), "row 0: .* has a total that is no whole number"),
    "none scored": (CSV.replace("1,2", "0,0"), "row 0: .* has no scored sample; leave it out: "),
    "no rows": ("question_id,confidence,correct,total\n", "there are no rows"),
    "no column": (
        CSV.replace("correct", "right"),
        "no column correct; needed: question_id, confidence, correct; found: question_id, "
        "confidence, right, total; --key FILE takes correct and total from another file",
    ),
    "rows by their place": (
        '{"confidence":{"0":0.5,"1":1.0},"correct":{"0":1,"1":2},"total":{"0":2,"1":2}}',
        "no column question_id; needed: question_id, confidence",
    ),
    "a total of another name": (
        CSV.replace("total", "n"),
        "row 1: .* more than one correct in a row; without",
    ),
    "two columns of one name": (
        CSV.replace("total", "Correct"),
        "several columns are called correct: correct, Correct; name them apart",
    ),
    "twice the same name": (
        CSV.replace("total", "confidence"),
        "row 0: cannot be read: two columns are called 'confidence'; name them apart",
    ),
    "two totals": (
        "question_id,confidence,correct,total,Total\na,0.5,1,2,2\n",
        "several columns are called total: total, Total",
    ),
    "no id": (CSV.replace("b,", ","), "row 1: question '' has no question_id"),
    "a question twice": (CSV.replace("b,", "a,"), "row 1: question 'a' stands in two rows"),
    "too many fields": (
        CSV.replace("a,0.5", "a,x,0.5"),
        "row 0: cannot be read: it has 5 fields, and the header 4 .question_id, confidence, ",
    ),
    "an empty file": ("", "there are no rows"),
}


@pytest.mark.parametrize(("content", "message"), BAD.values(), ids=BAD)
def test_bad_files_are_refused_by_line_and_id(content: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / ("mine.json" if content.startswith("{") else "mine.csv")
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_confidences(path)


def test_ids_are_kept_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        "question_id,confidence,correct,total\n01,0.5,1,2\n1,0.5,1,2\nNA,0.5,1,2\nnull,0.5,1,2\n"
    )
    assert read_confidences(path).table.index.tolist() == ["01", "1", "NA", "null"]


def test_scores_are_those_of_the_metrics_whatever_the_order_of_rows(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {"question_id": [f"q{i}" for i in range(50)], "confidence": rng.random(50), "total": 20}
    )
    table["correct"] = rng.binomial(20, 0.4, 50)
    paths = [tmp_path / "one.csv", tmp_path / "other.csv"]
    table.to_csv(paths[0], index=False)
    table.sample(frac=1, random_state=2).to_csv(paths[1], index=False)
    tables = [read_confidences(path).table for path in paths]
    first, second = map(score_table, tables)
    expected = capability_brier(
        table["confidence"], table["correct"], table["total"], corrected=True
    )
    assert first.loc["capability Brier, corrected", "value"] == pytest.approx(expected)
    np.testing.assert_allclose(*(one["value"].astype(float) for one in (first, second)), atol=1e-12)
    difference = compare_files(dict(zip("ab", tables, strict=True)), "a").loc["b"]
    assert difference["estimate"] == 0
    assert difference["questions"] == 50


def test_files_that_count_differently_are_not_compared(tmp_path: Path) -> None:
    one, other, apart = tmp_path / "one.csv", tmp_path / "other.csv", tmp_path / "apart.csv"
    one.write_text(CSV)
    other.write_text(CSV.replace("2,2", "1,2"))
    apart.write_text(CSV.replace("a,", "c,").replace("b,", "d,"))
    first = read_confidences(one).table
    with pytest.raises(
        InputError, match="question 'b' has other correct and total in one file than in another"
    ):
        compare_files({"one": first, "other": read_confidences(other).table}, "one")
    found = compare_files({"one": first, "apart": read_confidences(apart).table}, "one")
    assert found["sentence"].tolist() == ["apart and one ask different questions: not compared"]
    with pytest.raises(InputError, match="logs without confidences are not compared"):
        compare_files({"one": first, "log": read_counts(LOG).table}, "one")


@pytest.mark.parametrize("name", ["mine.parquet", "mine.jsonl"])
def test_other_formats_are_read_alike(name: str, tmp_path: Path) -> None:
    csv, path = tmp_path / "mine.csv", tmp_path / name
    csv.write_text(CSV)
    table = pd.read_csv(csv)
    table.to_parquet(path) if name.endswith("parquet") else table.to_json(
        path, orient="records", lines=True
    )
    pd.testing.assert_frame_equal(read_confidences(path).table, read_confidences(csv).table)
    bad = table.assign(confidence=[0.5, None])
    bad.to_parquet(path) if name.endswith("parquet") else bad.to_json(
        path, orient="records", lines=True
    )
    with pytest.raises(InputError, match="row 1: question 'b' has no confidence, as 1 of 2 rows"):
        read_confidences(path)


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        read_confidences(tmp_path / "mine.jsonl")


def test_log_loss_and_binned_error_by_hand() -> None:
    said, mu = np.array([0.2, 0.2, 0.9]), np.array([0.25, 0.5, 1.0])
    table = pd.DataFrame({"confidence": said, "correct": 4 * mu, "total": 4}).astype(
        {"correct": int}
    )
    scores = score_table(table)
    loss = -(mu * np.log(said) + (1 - mu) * np.log(1 - said))
    assert scores.loc["log loss", "value"] == pytest.approx(loss.mean())
    assert scores.loc["ECE, ten bins, corrected", "value"] == pytest.approx(
        binned_ece(said, 4 * mu, 4)
    )
    usual = binned_ece(said, 4 * mu, 4, corrected=False)
    assert scores.loc["ECE, ten bins, plug-in", "value"] == pytest.approx(usual)


SPELLED = {
    "tabs": ("mine.tsv", CSV.replace(",", "\t"), ""),
    "semicolons": ("mine.csv", CSV.replace(",", ";"), ""),
    "decimal commas": ("mine.csv", CSV.replace(",", ";").replace(".", ","), ""),
    "spaces": ("mine.csv", CSV.replace(",", ", "), ""),
    "more spaces": ("mine.csv", CSV.replace(",", " ,\t"), ""),
    "signs": ("mine.csv", CSV.replace("0.5", "50 %").replace("1.0", "100%"), ""),
    "records": (
        "mine.json",
        json.dumps(
            [
                {"question_id": "a", "confidence": 0.5, "correct": 1, "total": 2},
                {"question_id": "b", "confidence": 1.0, "correct": 2, "total": 2},
            ]
        ),
        "",
    ),
    "columns": (
        "mine.json",
        '{"question_id":{"0":"a","1":"b"},"confidence":{"0":0.5,"1":1.0},'
        '"correct":{"0":1,"1":2},"total":{"0":2,"1":2}}',
        "",
    ),
    "lists": (
        "mine.json",
        '{"question_id":["a","b"],"confidence":[0.5,1.0],"correct":[1,2],"total":[2,2]}',
        "",
    ),
    "capitals": ("mine.csv", CSV.replace("correct,total", "Correct,TOTAL"), ""),
    "heads with spaces": (
        "mine.txt",
        CSV.replace("question_id,confidence", "Question ID , Confidence"),
        "",
    ),
}


@pytest.mark.parametrize(("name", "content", "note"), SPELLED.values(), ids=SPELLED)
def test_one_table_is_read_however_it_is_spelled(
    name: str, content: str, note: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    found = read_confidences(tmp_path / name)
    assert found.table.to_numpy().tolist() == [[0.5, 1, 2], [1, 2, 2]]
    assert found.table.index.tolist() == ["a", "b"]
    assert "".join(found.notes).startswith(note)
    assert bool(found.notes) == bool(note)


@pytest.mark.parametrize("said", ["0 1", "False True", "false TRUE"])
def test_without_a_total_each_row_is_one_sample(said: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    wrong, right = said.split()
    rows = f"a,.5,{wrong}\nb,1,{right}\na,.5,{right}\n"
    path.write_text(f"question_id,confidence,correct\n{rows}")
    found = read_confidences(path)
    assert found.table.to_numpy().tolist() == [[0.5, 1, 2], [1, 1, 1]]
    assert found.notes[0] == "no total: 3 rows counted as samples of 2 questions"
    path.write_text(f"question_id,confidence,correct\n{rows}a,.6,{right}\n")
    with pytest.raises(InputError, match="row 3: question 'a' has two confidences; one is for all"):
        read_confidences(path)


def test_counts_come_from_a_key_and_missing_confidences_go_if_asked(tmp_path: Path) -> None:
    key, mine = tmp_path / "key.csv", tmp_path / "mine.csv"
    key.write_text("question_id,question,correct,total\na,Why?,1,2\nb,How?,2,2\nc,Who?,0,2\n")
    mine.write_text("question_id,question,confidence\nb,How?,1.0\na,Why?,\n")
    with pytest.raises(InputError, match="row 1: question 'a' has no confidence"):
        read_file(mine, key=key)
    found = read_file(mine, key=key, drop_missing=True)
    assert found.table.to_dict("index") == {"b": {"confidence": 1.0, "correct": 2, "total": 2}}
    assert found.notes == [
        f"counts of {key}: 2 of its 3 questions",
        "1 of 2 rows without a confidence left out",
    ]
    mine.write_text("question_id,confidence\nz,1.0\n")
    with pytest.raises(
        InputError, match=r"question 'z' is not in the key .*key\.csv, whose ids look like 'a'"
    ):
        read_file(mine, key=key)
    with pytest.raises(InputError, match=r"mine\.csv: no column correct; needed: question_id, cor"):
        read_file(mine, key=mine)


def test_a_key_counts_rows_and_says_which_rows_are_unlike(tmp_path: Path) -> None:
    key, mine = tmp_path / "key.csv", tmp_path / "mine.csv"
    mine.write_text("ID,Confidence\na,0.5\nb,1.0\n")
    key.write_text("question_id,correct\na,yes\na,no\nb,pass\n")
    found = read_file(mine, key=key)
    assert found.table[["correct", "total"]].to_numpy().tolist() == [[1, 2], [1, 1]]
    assert found.notes[0] == "no total: 3 rows counted as samples of 2 questions"
    equal = "question_id,method,correct,total\na,x,1,2\na,y,1,2\nb,x,2,2\nb,y,2,2\n"
    key.write_text(equal)
    assert read_file(mine, key=key).table["correct"].tolist() == [1, 2]
    for unlike, row in (
        (equal.replace("a,y,1", "a,y,0"), 1),
        (equal.replace("b,y,2,2", "b,y,2,3"), 3),
    ):
        key.write_text(unlike)
        with pytest.raises(InputError, match=rf"key.csv, row {row}: .* stands in two rows; give"):
            read_file(mine, key=key)
    key.write_text("question_id,correct,total\na,1,1\na,1,1\nb,0,1\n")
    with pytest.raises(InputError, match="row 1: question 'a' stands in two rows"):
        read_file(mine, key=key)


def test_a_key_may_be_a_log(tmp_path: Path) -> None:
    mine = tmp_path / "mine.csv"
    mine.write_text('doc_id,confidence\n0,0.5\n1,30%\n2,"0,6"\n')
    found = read_file(mine, key=LOG)
    counts = read_counts(LOG).table.droplevel("question")
    assert found.table["correct"].to_dict() == counts["correct"].to_dict()
    assert found.table["confidence"].tolist() == [0.5, 0.3, 0.6]
    assert found.notes[:2] == [BY_RULES, f"counts of {LOG}: 3 of its 3 questions"]
    rows = [{"question_id": "0", "question": q, "response": "B", "gold": "B"} for q in "ab"]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"question '0' .* two"):
        read_file(mine, key=path)


def test_options_of_logs_and_of_tables_are_not_exchanged(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV)
    for options in ({"regrade": True}, {"scorer": "match"}):
        with pytest.raises(InputError, match=r"mine.csv is a table of counts, no log: --scorer"):
            read_file(path, **options)
        with pytest.raises(InputError, match=r"mine.csv is a table of counts, no log: --scorer"):
            read_file(path, key=path, **options)
    with pytest.raises(InputError, match="is a log, which has no confidences to miss"):
        read_file(LOG, drop_missing=True)
    assert read_file(path, scorer=None, regrade=False).table["total"].tolist() == [2, 2]


def test_a_table_that_is_neither_says_what_either_needs(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,prob,n_correct,n\na,0.5,1,2\n")
    with pytest.raises(
        InputError, match=r"confidences are needed in columns question_id, .* or sam"
    ):
        read_file(path)


def test_an_infinite_log_loss_says_of_how_many_where_it_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV.replace("0.5", "0").replace("2,2", "1,2"))
    note = f"{path}: log loss is infinite: 2 questions with a confidence of 0 or 1 and samples"
    assert any(line.startswith(note) for line in score_files([path], every=True).below)
    assert "log loss" not in "".join(score_files([path]).below)


def test_logs_of_other_tasks_are_not_compared(tmp_path: Path) -> None:
    tables = {}
    for name in "ab":
        rows = [
            {"question_id": n, "question": f"{name}{n}", "response": "B", "gold": "B"} for n in "01"
        ]
        path = tmp_path / f"{name}.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        tables[name] = read_file(path).table
    (sentence,) = compare_files(tables, "a")["sentence"]
    assert sentence == "b and a ask different questions: not compared"
    shown = score_files([tmp_path / "a.jsonl", tmp_path / "b.jsonl"])
    assert shown.below[-2].endswith(f"b.jsonl {BEST}"), "both of them"
    (sentence,) = compare_files({"a": tables["a"], "c": tables["a"]}, "a")["sentence"]
    assert sentence.startswith("c and a have the same confidences, or accuracies, on 2 questions")


def table_of(mu: np.ndarray, noise: float, rng: np.random.Generator) -> pd.DataFrame:
    said = np.clip(mu + rng.normal(0, noise, len(mu)), 0.01, 0.99)
    names = [f"q{place}" for place in range(len(mu))]
    return pd.DataFrame({"confidence": said, "correct": (20 * mu).round(), "total": 20}, names)


def test_what_two_files_say_is_said_with_its_direction() -> None:
    rng = np.random.default_rng(0)
    mu = rng.random(300)
    tables = {"sharp": table_of(mu, 0.1, rng), "blunt": table_of(mu, 0.4, rng)}
    for rival, other in (("sharp", "blunt"), ("blunt", "sharp")):
        said = compare_files(tables, rival)["sentence"][other]
        assert said.startswith("sharp is better than blunt by 0."), "whichever comes first"
        assert said.endswith("on 300 questions that both have")
    tables["copy"] = tables["sharp"] + {"confidence": 1e-11, "correct": 0, "total": 0}
    said = compare_files(tables, "sharp")["sentence"]["copy"]
    assert said.startswith("copy and sharp have the same confidences, or accuracies, on 300")
    tables["like"] = table_of(mu, 0.105, rng)
    row = compare_files(tables, "sharp").loc["like"]
    assert row["sentence"].startswith("these data cannot tell like and sharp apart (")
    assert row["sentence"].endswith(", and are too few to say how many would")
    assert np.isnan(row["needed"]), "the gain is smaller than its standard error"
    tables["less"] = table_of(mu, 0.12, rng)
    row = compare_files(tables, "sharp").loc["less"]
    terms = (tables["sharp"]["confidence"] - tables["sharp"]["correct"] / 20) ** 2
    terms -= (tables["less"]["confidence"] - tables["less"]["correct"] / 20) ** 2
    by_hand = np.ceil(questions_needed(terms))
    assert row["verdict"] == "inconclusive"
    assert row["needed"] == by_hand > 300
    assert row["sentence"].endswith(f": about {by_hand:,.0f} questions or more would")


def test_one_file_is_compared_with_the_best_constant() -> None:
    rng = np.random.default_rng(0)
    sharp = table_of(rng.random(300), 0.1, rng)
    said = in_words("sharp", sharp, score_table(sharp))
    assert said.startswith("sharp is better than the best constant by 0.")
    assert said.endswith("on 300 questions"), "which both have anyway"
    single = sharp.assign(correct=1, total=1)
    said = in_words("single", single, score_table(single))
    assert "draw two or more of each" in said


def test_what_a_careful_person_would_say_is_seven_rows() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.random(60), 0.2, rng)
    scores = score_table(table)
    shown = summarize(scores)
    assert shown.index.tolist() == [
        "questions, scored samples",
        "accuracy",
        "capability Brier, corrected",
        "best constant",
        "gain over the best constant",
        "miscalibration, discrimination (in sample)",
        "AUROC",
    ]
    assert shown.iloc[0] == "60, 1,200"
    limits = mean_interval(table["correct"] / 20, bounds=(0, 1))
    assert shown["accuracy"] == "{:.3f} [{:.3f}, {:.3f}]".format(*limits)
    parts = [scores["value"][name] for name in ("miscalibration", "discrimination")]
    assert shown.iloc[5] == "{:.3f}, {:.3f}".format(*parts)
    assert len(spell_scores(scores)) > 20


def test_below_ten_questions_nothing_has_an_interval_or_four_decimals() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.random(10), 0.2, rng)
    assert score_table(table).loc["accuracy", ["low", "high"]].notna().all()
    few = table.iloc[:9]
    scores = score_table(few)
    assert scores[["low", "high"]].isna().all(axis=None)
    assert not re.search(r"\[|\.\d\d\d", " ".join(spell_scores(scores)))
    said = in_words("few", few, scores)
    assert said == "too few to tell few and the best constant apart: 9 questions"
    both = compare_files({"a": few, "b": few.assign(confidence=0.5)}, "a").loc["b"]
    assert both["verdict"] == "too few"
    assert both[["low", "high", "p", "needed"]].isna().all()


def test_a_corrected_score_below_zero_is_no_limit_of_its_own(tmp_path: Path) -> None:
    """Samples of all questions alike are said to be so, and by chance less far than they are."""
    path = tmp_path / "mine.csv"
    rows = [f"q{n},0.5,{1 + n % 3},4" for n in range(60)]
    path.write_text("question_id,confidence,correct,total\n" + "\n".join(rows))
    found = score_files([path])
    scores = found.rows[0].set_index("metric")
    value, low, high = scores.loc["capability Brier, corrected", ["value", "low", "high"]]
    # (1/24 of mu_hat's spread less the mean of mu_hat (1 - mu_hat) / 3)
    assert value == pytest.approx(2 / 3 / 16 - (2 * 3 / 16 + 1 / 4) / 9)
    assert value < low == 0 < high
    note = f"{path}: a corrected score below 0 is noise of sampling: the true one is 0 or more"
    assert note in found.below
    assert found.below[-1].startswith("these samples show no difference between questions beyond")


def test_counts_far_from_any_noise_have_no_interval() -> None:
    table = pd.DataFrame(
        {"confidence": 0.5, "correct": 1, "total": 2}, [f"q{n}" for n in range(20)]
    )
    scores = score_table(table)
    row = scores.loc["capability Brier, corrected"]
    assert row["value"] == -0.25
    assert row[["low", "high"]].isna().all()
    assert "noise" not in scores.index, "nothing is spread"


def test_the_gain_of_a_file_is_tested_within_the_bounds_of_its_constant() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.beta(8, 8, 60), 0.1, rng)
    share = table["correct"] / 20
    floor = share * (1 - share) / 19
    others = (share.sum() - share) / 59
    terms = pd.DataFrame(
        {
            "constant": (others - share) ** 2 - floor,
            "mine": (table["confidence"] - share) ** 2 - floor,
        }
    )
    bounds = bounds_over_constant(share.mean())
    expected = gains(terms, "constant", bounds=bounds).loc["mine"]
    row = score_table(table).loc["gain over the best constant"]
    assert row[["value", "low", "high"]].tolist() == pytest.approx(
        expected[["estimate", "low", "high"]].tolist()
    )


def test_what_rests_on_fewer_questions_says_so() -> None:
    rng = np.random.default_rng(0)
    table = table_of(rng.random(40), 0.2, rng)
    table.loc[table.index[5:], ["correct", "total"]] = 1
    shown = summarize(score_table(table))
    assert re.fullmatch(r"0\.\d\d\d \[.*\]", shown["accuracy"])
    assert re.fullmatch(r"-?\d\.\d\d on 5 questions", shown["capability Brier, corrected"])
    assert re.fullmatch(r"-?\d\.\d\d on 5 questions", shown["gain over the best constant"])
    assert shown.iloc[5].count("on 5 questions") == 1
    said = in_words("mine", table, score_table(table))
    assert said == "too few to tell mine and the best constant apart: 5 questions"
    ones = table.assign(correct=rng.integers(0, 2, 40), total=1)
    shown = summarize(score_table(ones))
    response = (ones["confidence"] - ones["correct"]) ** 2
    assert shown["expected response Brier"] == f"{response.mean():.3f}"
    assert "capability Brier, corrected" not in shown


GROUPED = "question_id,confidence,correct,total,{}\n" + "".join(
    f"q{n},0.{n % 10},{n // 6},10,s{n // 10}\n" for n in range(60)
)


@pytest.mark.parametrize("head", ["subject", "cluster", "Subject", "CLUSTER"])
def test_subjects_of_a_file_vary_whole(head: str, tmp_path: Path) -> None:
    path, plain = tmp_path / "mine.csv", tmp_path / "plain.csv"
    path.write_text(GROUPED.format(head))
    plain.write_text(GROUPED.format("colour"))
    found = read_file(path)
    assert found.table["cluster"].tolist() == [f"s{n // 10}" for n in range(60)]
    assert f"whole {head.lower()}s vary: 6 of them" in found.notes
    row = score_table(found.table).loc["accuracy"]
    mu_hat = found.table["correct"] / found.table["total"]
    expected = mean_interval(mu_hat, clusters=found.table["cluster"], bounds=(0, 1))
    assert row[["value", "low", "high"]].tolist() == list(expected)
    alone = score_table(read_file(plain).table).loc["accuracy"]
    assert row["high"] - row["low"] > 1.5 * (alone["high"] - alone["low"])
    other = read_file(path).table.assign(confidence=0.5)
    both = {"mine": found.table, "other": other.sample(frac=1, random_state=0)}
    tested = compare_files(both, "mine").loc["other"]
    terms = pd.DataFrame(
        {name: (table["confidence"] - mu_hat) ** 2 for name, table in both.items()}, mu_hat.index
    )
    by_hand = gains(terms, "mine", clusters=found.table["cluster"]).loc["other"]
    assert tested[["low", "high", "p"]].tolist() == by_hand[["low", "high", "p"]].tolist()
    with pytest.raises(InputError, match="some files have a column cluster or subject and others"):
        compare_files({"mine": found.table, "plain": read_file(plain).table}, "mine")
    regrouped = found.table.assign(cluster="all")
    with pytest.raises(InputError, match="other correct and total and cluster in one file than in"):
        compare_files({"mine": found.table, "regrouped": regrouped}, "mine")


def test_subjects_may_stand_in_the_key_and_in_rows_of_samples(tmp_path: Path) -> None:
    mine, key = tmp_path / "mine.csv", tmp_path / "key.csv"
    mine.write_text("question_id,confidence\nb,0.5\na,0.2\n")
    key.write_text("question_id,correct,total,subject\na,1,2,law\nb,2,2,art\nc,1,2,art\n")
    assert read_file(mine, key=key).table["cluster"].to_dict() == {"b": "art", "a": "law"}
    mine.write_text("question_id,confidence,subject\nb,0.5,x\na,0.2,y\n")
    assert read_file(mine, key=key).table["cluster"].to_dict() == {"b": "x", "a": "y"}
    rows = tmp_path / "rows.csv"
    rows.write_text("question_id,confidence,correct,subject\na,.5,1,law\na,.5,0,law\nb,1,1,art\n")
    assert read_file(rows).table["cluster"].to_dict() == {"a": "law", "b": "art"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GROUPED.format("weight"), "a column weight is not used, as every question counts alike"),
        (GROUPED.format("Weight"), "a column weight is not used, as every question counts alike"),
        (
            "question_id,confidence,correct,total,subject,cluster\na,.5,1,2,x,y\n",
            "columns cluster and subject say it twice; keep one of them",
        ),
        (
            "question_id,confidence,correct,total,subject\na,.5,1,2,x\nb,.5,1,2,\n",
            "row 1: question 'b' has no subject",
        ),
        (
            "question_id,confidence,correct,subject\na,.5,1,x\na,.5,1,y\n",
            "row 0: question 'a' has more than one subject",
        ),
    ],
)
def test_weights_and_unclear_subjects_are_refused(
    content: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(content)
    with pytest.raises(InputError, match=message):
        read_file(path)


def test_a_log_of_many_questions_says_what_a_confidence_has_to_beat() -> None:
    rng = np.random.default_rng(0)
    mu = rng.random(40)
    table = pd.DataFrame({"correct": rng.binomial(8, mu), "total": 8}, [f"q{n}" for n in range(40)])
    scores = score_table(table)
    assert summarize(scores).index.tolist() == [
        "questions, scored samples",
        "accuracy",
        "pass@8",
        "noise",
        "best constant",
    ]
    value = scores["value"]
    assert in_words("log", table, scores) == (
        f"{value['noise']:.0%} of the spread over questions is noise of sampling; a confidence has "
        f"to beat {value['best constant']:.3f}, the score of always saying {value['accuracy']:.2f}"
    )
    alike = table.assign(correct=8)
    assert in_words("log", alike, score_table(alike)).startswith("these samples show no difference")


def test_a_log_is_counted_as_it_is() -> None:
    table = read_file(LOG).table
    assert table["total"].tolist() == [3, 3, 3]
    assert table["correct"].tolist() == [1, 1, 2], "by the rules: the log has one score for three"
    scores = score_table(table)
    assert scores.loc["accuracy", "value"] == pytest.approx(4 / 9)
    # 1 - C(2, 2) / C(3, 2) of one correct sample in three, and 1 of two
    assert scores.loc["pass@2", "value"] == pytest.approx((2 / 3 + 2 / 3 + 1) / 3)
    assert scores.loc["noise", "value"] == 1, "no more spread than three samples make"
    words = "too few to say what a confidence has to beat: 3 questions"
    assert in_words("log", table, scores) == words
    assert read_file(LOG).notes == [BY_RULES]
    epochs = read_file(LOG.with_name("counts.eval"))
    assert epochs.notes == ["verdicts of the log: match; its scorers: match"], (
        "each epoch has its verdict"
    )
    assert epochs.table["total"].tolist() == [3, 3, 3]
    other = table.assign(gold=["8", "6", "9"])
    with pytest.raises(InputError, match="question '2' has other gold in one file"):
        compare_files({"a": table, "b": other}, "a")
    better = table.assign(correct=[3, 3, 3])
    found = compare_files({"a": table, "b": better}, "a").loc["b"]
    assert found["estimate"] == pytest.approx(5 / 9), "by accuracy, positive where it is better"


def test_what_a_log_leaves_out_is_said(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows: list[dict[str, object]] = [
        {"question_id": "a", "gold": "4", "response": "4"},
        {"question_id": "a", "gold": "4", "response": ""},
        {"question_id": "a", "gold": "4", "response": None},
        {"question_id": "a", "gold": "4", "response": None, "error": "status 500"},
        {"question_id": "b", "gold": "5", "response": "6"},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read_file(path)
    assert found.notes == ["2 requests without a response left out", BY_RULES]
    assert found.table["total"].tolist() == [2, 1], "an empty text is an answer without one"


def test_one_sample_does_not_take_the_corrected_score_from_the_others(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(CSV + "c,0.5,1,1\n")
    found = read_file(path)
    assert found.notes == ["no corrected score of 1 question: one scored sample"]
    scores = score_table(found.table)
    assert scores.loc["questions", "value"] == 3
    assert scores.loc["capability Brier, corrected", "value"] == pytest.approx(-0.125)


def test_a_method_with_few_confidences_takes_no_question_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    mu = rng.random(400)
    tables = {"sharp.csv": table_of(mu, 0.1, rng), "blunt.csv": table_of(mu, 0.4, rng)}
    tables["few.csv"] = table_of(mu, 0.2, rng).iloc[:6]
    for name, table in tables.items():
        table.astype({"correct": int}).rename_axis("question_id").to_csv(name)
    found = score_files([*map(Path, tables)])
    sizes = found.table.loc["questions, scored samples"].tolist()
    assert sizes == ["400, 8,000", "400, 8,000", "6, 120"]
    assert ["[" in text for text in found.table.loc["accuracy"]] == [True, True, False]
    assert "too few to tell few.csv and sharp.csv apart: 6 questions that both have" in found.below
    best = f"sharp.csv and few.csv {BEST}"
    assert best in found.below, "six questions do not show that it is not"


def test_a_partial_method_excludes_others_and_is_excluded() -> None:
    rng = np.random.default_rng(0)
    good, bad = rng.random(300) / 10, 0.5 + rng.random(300) / 10
    gap = np.where(np.arange(300) < 250, 0, np.nan)
    assert may_be_best(pd.DataFrame({"good": good, "bad": bad + gap})) == {"good"}
    assert may_be_best(pd.DataFrame({"good": good + gap, "bad": bad})) == {"good"}
    assert may_be_best(pd.DataFrame({"good": good + gap, "bad": bad + gap[::-1]})) == {"good"}
    assert may_be_best(pd.DataFrame({"one": good, "other": np.nan})) == {"one"}
