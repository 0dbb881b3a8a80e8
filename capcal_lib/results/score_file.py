"""Score one's own files: tables of question_id, confidence, correct, total, and logs of others as
they are.

A log of lm-evaluation-harness (``samples_*.jsonl``) or inspect_ai (``.eval``, ``.json``) has counts
and no confidences: it is scored by its accuracy, and says what a confidence would have to beat."""

import io
import sys
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import others_mean, pass_at_k
from capcal_lib.errors import InputError, sanitize
from capcal_lib.grading import grade_many
from capcal_lib.metrics.intervals import variance_of_mean
from capcal_lib.metrics.validation import Floats
from capcal_lib.questions import NOT_STATED, Answer, stream_rows
from capcal_lib.results.logs import items_of, kind_of, read_log

NUMBERS = ["confidence", "correct", "total"]
POWERS = (2, 4, 8, 16, 32, 64)  # the k of pass@k, as far as every question has samples
UNSCORED = 0.02  # share of samples from which the bounds are said
MOST = 1_000_000  # questions; where it takes more, no number is said
EQUAL = 1e-9  # confidences of two files are the same, but for rounding
CORRECTED = "capability Brier, corrected"
PLUG_IN = "capability Brier, plug-in"
ECE = "ECE, ten bins, corrected"
CONSTANT = "the best constant"
Z = 1.96 + 0.84  # a difference is found by a 95 % interval in four of five studies
MISSING = {"", "nan", "none", "null", "na", "n/a"}
MEANINGS = {
    "accuracy": "the mean of mu_hat, the share of a question's scored samples that are correct",
    "pass@k": "the chance that one of k samples is correct, without bias",
    "noise": "the share of the spread of mu_hat over questions that is noise of sampling",
    "best constant": "the corrected Brier score of always saying the mean of the other questions",
    "uniform random": "the corrected Brier score of uniform random numbers",
    PLUG_IN: "the mean of (confidence - mu_hat)^2; lower is better",
    CORRECTED: "the same less what the noise of mu_hat adds, so that it may fall below 0",
    "gain over the best constant": "by which the corrected score is lower than the best constant's",
    "miscalibration": "what recalibration can remove of the score",
    "discrimination": "how far confidences tell questions apart; higher is better",
    "ECE, ten bins": "the mean distance of confidence and mu_hat in ten bins; corrected for noise, "
    "or plug-in, as it is usually reported",
    "may be best": "no other is significantly better on the questions that both have",
}


class Counted(NamedTuple):
    """What a file holds: a row a question, indexed by question_id, and how it was read.

    The table has ``correct``, ``total`` and ``confidence``; that of a log has the right answer,
    ``gold``, in place of a confidence."""

    table: pd.DataFrame
    notes: tuple[str, ...] = ()


def read_file(
    path: Path,
    *,
    key: Path | None = None,
    drop_missing: bool = False,
    scorer: str | None = None,
    regrade: bool = False,
) -> Counted:
    """Read what is to be scored, see :func:`read_confidences` and :func:`read_counts`."""
    rows = path.name.endswith((".json", ".jsonl", ".jsonl.gz", ".parquet"))
    if path.suffix == ".eval" or path.is_dir():
        return read_counts(path, scorer=scorer, regrade=regrade)
    if rows and "confidence" not in next(iter(stream_rows(path)), {"confidence": None}):
        return read_counts(path, scorer=scorer, regrade=regrade)
    table, notes = read_confidences(path, key=key, drop_missing=drop_missing)
    if single := int((table["total"] == 1).sum()):
        few = f"{single} of {len(table)} questions have one scored sample: no corrected score"
        notes = (*notes, few)
    sure = ((table["confidence"] == 0) & (table["correct"] > 0)) | (
        (table["confidence"] == 1) & (table["correct"] < table["total"])
    )
    if sure.any():
        infinite = "questions have a confidence of 0 or 1 and samples to the contrary"
        notes = (*notes, f"log loss is infinite: {sure.sum()} {infinite}")
    return Counted(table, notes)


def read_counts(path: Path, *, scorer: str | None = None, regrade: bool = False) -> Counted:
    """Count the verdicts of a log, see :func:`~capcal_lib.results.logs.read_log`, or those of the
    rules where it has none.

    `InputError` where no sample of it has a verdict."""
    log = read_log([path], scorer=scorer, regrade=regrade)
    items = items_of(log.samples)
    rows = [row["item"].id for row in log.samples]
    if log.judged:
        verdicts = [row["verdict"] for row in log.samples]
    else:
        if any(item.gold == NOT_STATED for item in items.values()):
            raise InputError(f"{path}: the samples have neither answers nor a verdict each")
        kind = kind_of(items.values())
        answers = {name: Answer(kind, one.gold, one.aliases) for name, one in items.items()}
        cases = [(row["response"], answers[row["item"].id]) for row in log.samples]
        verdicts = [verdict.verdict for verdict in grade_many(cases)]
    samples = pd.DataFrame({"question_id": rows, "verdict": verdicts})
    scored = samples[samples["verdict"] != "not_scored"]
    if scored.empty:
        raise InputError(f"{path}: no sample has a verdict, nor an answer that could be graded")
    by_question = scored.assign(right=scored["verdict"] == "correct").groupby("question_id")
    table = pd.DataFrame({"correct": by_question["right"].sum()})
    table["total"] = by_question["right"].size()
    table["gold"] = [items[str(name)].gold for name in table.index]
    table["question"] = [items[str(name)].text for name in table.index]
    notes = list(log.notes)
    if not log.judged and len(scored) < len(samples):
        notes.append(f"{len(samples) - len(scored)} samples that could not be graded left out")
    if lost := len(items) - len(table):
        notes.append(f"{lost} questions without a scored sample left out")
    unscored = samples["verdict"] == "not_scored"
    if unscored.mean() > UNSCORED:
        right = samples["verdict"] == "correct"
        low, high = (one.groupby(rows).mean().mean() for one in (right, right | unscored))
        notes.append(f"accuracy {low:.3f} if all not scored were wrong, {high:.3f} if right")
    return Counted(table, tuple(notes))


def read_confidences(path: Path, *, key: Path | None = None, drop_missing: bool = False) -> Counted:
    """Read and check confidences and counts: a row a question, indexed by question_id as it is
    written.

    The file is JSONL, JSON or parquet by its name, else CSV, separated by commas, semicolons or
    tabs; ``-`` is CSV from standard input. Percentages are divided by 100, and rows of a
    ``correct`` of 0 or 1 without a ``total`` are counted. The counts are those of a ``key`` where
    one is given. Rows without a confidence are left out with ``drop_missing``. Notes say so.

    `InputError` for a file that cannot be read, columns that are missing (those found are listed),
    or a value that is not allowed; the row is named by its place and id.
    """
    table = _read_texts(path)
    notes: list[str] = []
    if key is not None:
        table = _join_key(path, table, key, notes)
    elif "total" not in table and {"question_id", "correct"} <= set(table):
        table = _count_rows(table, notes)
    if lacking := [name for name in ("question_id", *NUMBERS) if name not in table]:
        found = ", ".join(map(str, table))
        raise InputError(
            f"{path}: no column {', '.join(lacking)}; needed: question_id, {', '.join(NUMBERS)}; "
            f"found: {sanitize(found)}"
        )
    if table.empty:
        raise InputError(f"{path}: there are no rows")
    missing = table["confidence"].str.lower().isin(MISSING)
    if drop_missing:
        notes.append(f"{missing.sum()} of {len(table)} questions without a confidence left out")
        table = table[~missing]
    elif missing.any():
        first = int(missing.to_numpy().argmax())
        rule = (
            f"has no confidence, as {missing.sum()} of {len(table)} rows; --drop-missing leaves "
            "them out"
        )
        raise _row_error(path, table, first, rule)
    numbers = table[["correct", "total"]].apply(pd.to_numeric, errors="coerce")
    numbers.insert(0, "confidence", _read_shares(table["confidence"], notes))
    for rule, wrong in _rules(table["question_id"], numbers).items():
        if wrong.any():
            raise _row_error(path, table, int(wrong.to_numpy().argmax()), rule)
    if table.empty:
        raise InputError(f"{path}: no question has a confidence")
    whole = numbers.astype({"correct": np.int64, "total": np.int64})
    return Counted(whole.set_index(table["question_id"]), tuple(notes))


def _is_csv(path: Path) -> bool:
    return not path.name.endswith((".json", ".jsonl", ".jsonl.gz", ".parquet"))


def _read_texts(path: Path) -> pd.DataFrame:
    """Read a table as it is written, every cell a text; the index is the line or row."""
    try:
        if not _is_csv(path):
            return pd.DataFrame(stream_rows(path), dtype=object).fillna("").astype(str)
        source: Any = io.StringIO(sys.stdin.read()) if str(path) == "-" else path
        head = str(pd.read_csv(source, sep="\x01", nrows=0).columns[0])
        if isinstance(source, io.StringIO):
            source.seek(0)
        separator = max(",;\t", key=head.count)
        asked: dict[str, Any] = {"sep": separator, "skipinitialspace": True, "dtype": str}
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            table = pd.read_csv(source, keep_default_na=False, index_col=False, **asked)
    except pd.errors.ParserWarning:
        raise InputError(
            f"{path}: rows have more fields than the header; quote fields that hold a comma"
        ) from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = sanitize(str(error).splitlines()[0])
        raise InputError(f"{path}: cannot be read as CSV: {reason}") from None
    table = table.rename(columns=str.strip)
    for name in table.columns.intersection(["question_id", *NUMBERS]):
        table[name] = table[name].str.strip()
    if separator == ";" and "confidence" in table:  # where commas are decimal
        table["confidence"] = table["confidence"].str.replace(",", ".")
    table.index += 2
    return table


def _join_key(path: Path, table: pd.DataFrame, key: Path, notes: list[str]) -> pd.DataFrame:
    """Take the counts of questions from a key."""
    counts = _read_texts(key)
    for file, known, needed in ((key, counts, NUMBERS[1:]), (path, table, [])):
        if lacking := [name for name in ("question_id", *needed) if name not in known]:
            raise InputError(f"{file}: no column {', '.join(lacking)}")
    counts = counts.drop_duplicates("question_id").set_index("question_id")[NUMBERS[1:]]
    strangers = ~table["question_id"].isin(counts.index)
    if strangers.any():
        name = sanitize(table["question_id"][strangers].iloc[0], 80)
        raise InputError(f"{path}: question {name!r} is not in the key {key}")
    notes.append(f"counts of {key}: {len(table)} of its {len(counts)} questions")
    alone = table.drop(columns=NUMBERS[1:], errors="ignore")
    return alone.join(counts, on="question_id")


def _count_rows(table: pd.DataFrame, notes: list[str]) -> pd.DataFrame:
    """Count rows of a ``correct`` of 0 or 1, or true or false, as samples."""
    words = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
    correct = table["correct"].str.lower().map(words)
    if correct.isna().any():
        return table
    keys = [name for name in ("question_id", "confidence") if name in table]
    rows = table.assign(correct=correct.astype(int), total=1, place=table.index)
    groups = rows.groupby(keys, sort=False)[["correct", "total", "place"]]
    counted = groups.agg({"correct": "sum", "total": "sum", "place": "first"}).reset_index()
    notes.append(f"no total: {len(table)} rows counted as samples of {len(counted)} questions")
    return counted.set_index("place").astype(str)


def _read_shares(cells: "pd.Series[str]", notes: list[str]) -> "pd.Series[float]":
    """Read confidences, as shares or as percentages."""
    marked = cells.str.endswith("%")
    numbers = pd.to_numeric(cells.str.rstrip("% "), errors="coerce")
    percent = marked
    # A few above 1 are mistakes; where most are, there is one reading.
    if not marked.any() and numbers.between(0, 100).all() and (numbers > 1).mean() > 0.5:
        percent = ~marked
    if percent.any():
        notes.append(f"{percent.sum()} confidences read as percentages, divided by 100")
    return numbers.where(~percent, numbers / 100)


def _rules(ids: "pd.Series[str]", numbers: pd.DataFrame) -> dict[str, "pd.Series[bool]"]:
    """Return, by what is wrong with them, the rows that are not as they must be."""
    confidence = numbers["confidence"]
    correct = numbers["correct"]
    total = numbers["total"]
    whole = (numbers[["correct", "total"]] % 1 == 0).all(axis="columns")
    return {
        "has no question_id": ids == "",
        "stands in two rows; keep one": ids.duplicated(),
        "has something else than numbers": numbers.isna().any(axis="columns"),
        "has a confidence outside [0, 1]; divide percentages by 100": ~confidence.between(0, 1),
        "has counts that are not whole numbers": ~whole | ~np.isfinite(total),
        "needs a scored sample (total of 1 or more)": total < 1,
        "has more correct samples than scored ones, or fewer than 0": ~correct.between(0, total),
    }


def _row_error(path: Path, table: pd.DataFrame, row: int, rule: str) -> InputError:
    """Build the error for a row: its place, its question, the rule, and what it says."""
    cells = table.iloc[row]
    values = ", ".join(f"{name} {sanitize(cells[name], 40)!r}" for name in NUMBERS)
    name = sanitize(cells["question_id"], 80)
    place = f"{'line' if _is_csv(path) else 'row'} {table.index[row]}"
    return InputError(f"{path}, {place}: question {name!r} {rule}: {values}")


def score_counts(table: pd.DataFrame) -> pd.DataFrame:
    """Score counts without confidences: accuracy, pass@k, and how much of the spread is noise.

    Returns a table indexed by ``metric``, as :func:`score_confidences` does. ``noise`` is the share
    of the variance of mu_hat over questions that comes from few samples, and not from questions
    that differ; ``best constant`` is the corrected score of always saying the mean of the other
    questions, which a confidence has to beat."""
    return _as_table(_of_counts(table))


def score_confidences(table: pd.DataFrame) -> pd.DataFrame:
    """Score a table as :func:`read_confidences` gives it.

    Returns a table indexed by ``metric``: its ``value`` and, where there is one, the 95 % interval
    ``low`` to ``high`` for questions like these. The corrected scores are those of the questions
    with two scored samples or more."""
    triple = [table[name].to_numpy() for name in NUMBERS]
    scores = _of_counts(table)
    twice = table[table["total"] > 1]
    corrected = len(twice) > 0
    scores[PLUG_IN] = _mean(metrics.capability_brier_terms(*triple))
    if corrected:
        terms = _brier(twice)
        scores[CORRECTED] = _mean(terms)
        if len(twice) > 1:
            scores["gain over the best constant"] = _mean(_constant(twice) - terms, (-1, 1))
        scores["noise floor of the plug-in"] = metrics.noise_floor(*_counts(twice))
    known = twice if corrected else table
    split = metrics.isotonic_split(*(known[name] for name in NUMBERS), corrected=corrected)
    loss = metrics.expected_response_loss(*triple, score="log")
    scores["miscalibration"] = split.miscalibration
    scores["discrimination"] = split.discrimination
    scores["expected response Brier"] = metrics.expected_response_brier(*triple)
    if corrected:
        scores["correctness variance"] = metrics.correctness_variance(*triple[1:])
    scores["log loss"] = float(loss.mean())
    if np.isfinite(loss).all():
        scores["log loss"] = _mean(loss, (0, max(1, loss.max())))
    scores["ECE, ten bins, plug-in"] = metrics.binned_ece(*triple, corrected=False)
    scores[ECE] = metrics.binned_ece(*triple)
    scores["smooth ECE, plug-in"] = metrics.smooth_ece(*triple)
    scores["AUROC"] = metrics.soft_auroc(*triple)
    scores["Spearman with mu_hat"] = metrics.spearman(*triple)
    return _as_table(scores)


def score_table(table: pd.DataFrame) -> pd.DataFrame:
    """Score what a file holds."""
    return score_confidences(table) if "confidence" in table else score_counts(table)


def compare_files(tables: Mapping[str, pd.DataFrame], against: str) -> pd.DataFrame:
    """Compare every file with one of them, on the questions that both have.

    Tables of confidences are compared by capability Brier score, logs by accuracy. Returns a row a
    file, ``against`` aside: ``estimate`` with the interval ``low`` to ``high``, positive where the
    file is better, ``p`` and ``verdict`` as from :func:`~capcal_lib.metrics.gains`; the number of
    ``questions`` that both have; and how many would be ``needed`` to tell the two apart in four of
    five studies, if the difference is what it seems.

    `InputError` where confidences stand beside logs, and where two files have no question in
    common, count one differently, or give it another answer."""
    logs = [name for name, table in tables.items() if "confidence" not in table]
    if logs and len(logs) < len(tables):
        raise InputError(
            f"{sanitize(logs[0])} is a log without confidences, which cannot be compared with "
            "those of the other files; score it by itself"
        )
    same = ["gold"] if logs else ["correct", "total"]
    compared = [name for name in tables if name == against or _have_pairs(tables, name, against)]
    for name in compared:
        _check_pair(tables, name, against, same)
    if not logs and len(compared) < len(tables):
        other = min(tables.keys() - set(compared))
        raise InputError(f"{sanitize(other)} and {sanitize(against)} have no question_id in common")
    terms = pd.DataFrame({name: _terms(tables[name]) for name in compared})
    return _gains(terms, against, "accuracy of every question" if logs else "confidences")


def _gains(terms: pd.DataFrame, against: str, what: str = "confidences") -> pd.DataFrame:
    found = metrics.gains(terms, against)
    differences = [(terms[against] - terms[name]).dropna().to_numpy() for name in found.index]
    return found.assign(
        questions=[len(each) for each in differences],
        same=[what * bool((abs(each) < EQUAL).all()) for each in differences],
        needed=[_needed(each) for each in differences],
    )


def overview(
    tables: Mapping[str, pd.DataFrame], scores: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Put the scores of files side by side, a row a file, with the interval of the Brier score, or
    of the accuracy of logs.

    The Brier score is the corrected one where all files have it."""
    brier = CORRECTED if all(CORRECTED in known.index for known in scores.values()) else PLUG_IN
    rows = {}
    for name, known in scores.items():
        shown = brier if brier in known.index else "accuracy"  # a log has no Brier score
        parts = (
            known["value"].reindex(["questions", "accuracy", brier]),
            known.loc[shown, ["low", "high"]],
            known["value"].reindex(["log loss", ECE, "AUROC"]),
        )
        rows[name] = pd.concat(parts)
    table = pd.DataFrame(rows).T.dropna(axis="columns", how="all")
    best = metrics.may_be_best(
        pd.DataFrame({name: _terms(table) for name, table in tables.items()})
    )
    heads = {PLUG_IN: "Brier, plug-in", CORRECTED: "Brier, corrected"}
    return table.rename(columns=heads).assign(**{"may be best": [name in best for name in tables]})


def in_short(table: pd.DataFrame) -> list[str]:
    """Say what counts say: accuracy and pass@k with their intervals, and how many they are."""
    scored = table[table["total"] > 0]
    known = score_counts(scored)
    passed = [str(name) for name in known.index if str(name).startswith("pass@")]
    shown = []
    for name in ("accuracy", *passed[-1:]):
        found = known.loc[name, ["value", "low", "high"]]
        shown.append(f"{name} {_spell(*found)}")
    fewest = scored["total"].min()
    most = scored["total"].max()
    each = str(most) if fewest == most else f"{fewest} to {most}"
    lines = [f"{', '.join(shown)}", f"{len(scored):,} questions, {each} scored samples each"]
    if single := int((scored["total"] == 1).sum()):
        lines.append(f"{single} of them with one scored sample, left out of the scores")
    return lines


def in_words(name: str, table: pd.DataFrame, scores: pd.DataFrame) -> str:
    """Say in a sentence what a file's score says."""
    if len(table) < 2:
        return "one question says nothing of others: scores and intervals take two or more"
    if "best constant" not in scores.index:
        return (
            "with one scored sample a question, questions that differ and the noise of sampling "
            "cannot be told apart: draw two or more of each"
        )
    if "confidence" not in table:
        value = scores["value"]
        return (
            f"{value['noise']:.0%} of the spread over questions is noise of sampling; a confidence "
            f"has to beat {value['best constant']:z.3f}, the score of always saying "
            f"{value['accuracy']:.2f}"
        )
    twice = table[table["total"] > 1]
    terms = pd.DataFrame({name: _brier(twice), CONSTANT: _constant(twice)})
    return say_difference(name, CONSTANT, _gains(terms, CONSTANT).iloc[0])


def say_difference(name: str, against: str, gain: "pd.Series[Any]") -> str:
    """Say in a sentence what a row of :func:`compare_files` says."""
    estimate, low, high = gain[["estimate", "low", "high"]]
    on = f"on {gain['questions']:,} questions"
    if against != CONSTANT:
        on += " that both have"
    if gain["same"]:
        return f"{name} and {against} have the same {gain['same']} {on}"
    if gain["verdict"] == "better":
        return f"{name} is better than {against} by {_spell(estimate, low, high)}, {on}"
    if gain["verdict"] == "worse":
        return f"{against} is better than {name} by {_spell(-estimate, -high, -low)}, {on}"
    enough = "more than a million questions"
    if gain["needed"] < MOST:
        rounded = float(f"{gain['needed']:.2g}")
        enough = f"about {rounded:,.0f} questions"
    said = f"{_spell(estimate, low, high)}, {on}"
    return f"these data cannot separate {name} and {against} ({said}): {enough} would"


def _spell(estimate: float, low: float, high: float) -> str:
    return f"{estimate:z.3f} [{low:z.3f}, {high:z.3f}]"


def tell_apart(tables: Mapping[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Put the file before the ids of logs that ask other questions under the same ids."""
    apart = dict(tables)
    first: dict[str, str] = {}
    for name, table in tables.items():
        if "question" in table:
            known = pd.Series([first.get(str(one)) for one in table.index], table.index)
            if known.notna().any() and not (known == table["question"]).any():
                apart[name] = table.set_index(name + ": " + table.index.astype(str))
            first = dict(table["question"]) | first
    return apart


def spell_cell(cell: Any) -> str:
    """Spell a cell with at most four decimals; whole numbers above 1 have none.

    >>> [spell_cell(cell) for cell in (300.0, 0.25, -0.00001, True, None, "a")]
    ['300', '0.2500', '0.0000', 'yes', '', 'a']
    """
    if isinstance(cell, str):
        return cell
    if pd.isna(cell):
        return ""
    if pd.api.types.is_bool(cell):
        return "yes" if cell else "no"
    counted = not isinstance(cell, float) or (cell > 1 and cell.is_integer())
    return f"{cell:,.0f}" if counted else f"{cell:z,.4f}"


def _have_pairs(tables: Mapping[str, pd.DataFrame], name: str, against: str) -> bool:
    return len(tables[name].index.intersection(tables[against].index)) > 0


def _check_pair(
    tables: Mapping[str, pd.DataFrame], name: str, against: str, same: list[str]
) -> None:
    """Refuse files whose questions are not the same."""
    common = tables[name].index.intersection(tables[against].index)
    first = tables[name].loc[common]
    second = tables[against].loc[common]
    unlike = (first[same] != second[same]).any(axis="columns")
    what = "another right answer" if same == ["gold"] else "other counts"
    if unlike.any():
        question = sanitize(common[unlike][0], 80)
        raise InputError(
            f"question {question!r} has {what} in {sanitize(name)} than in {sanitize(against)}"
        )


def _terms(table: pd.DataFrame) -> "pd.Series[float]":
    """Return a term a question, lower being better: of the Brier score, or the share of wrong
    samples.
    """
    if "confidence" not in table:
        return 1 - table["correct"] / table["total"]
    triple = [table[name].to_numpy() for name in NUMBERS]
    return pd.Series(metrics.capability_brier_terms(*triple), table.index)


def _needed(difference: Floats) -> float:
    """Return how many questions would tell two files apart in four of five studies."""
    if len(difference) < 2 or not difference.mean():
        return np.inf
    variance = len(difference) * variance_of_mean(difference)
    return float(np.ceil(variance * (Z / difference.mean()) ** 2))


def _of_counts(table: pd.DataFrame) -> dict[str, "Score"]:
    correct, total = _counts(table)
    mu = correct / total
    scores: dict[str, Score] = {
        "questions": float(len(table)),
        "scored samples": float(total.sum()),
        "accuracy": _mean(mu),
    }
    for k in POWERS:
        if k <= total.min():
            scores[f"pass@{k}"] = _mean(pass_at_k(correct, total, k)[:, 0])
    twice = table[table["total"] > 1]
    if len(twice) > 1:
        spread = float((twice["correct"] / twice["total"]).var())
        floor = metrics.noise_floor(*_counts(twice))
        uniform = metrics.uniform_baseline_brier_terms(*_counts(twice), corrected=True)
        scores["noise"] = floor / spread if floor < spread else 1.0
        scores["best constant"] = _mean(_constant(twice))
        scores["uniform random"] = _mean(uniform, (1 / 12, 1 / 3))
    return scores


def _counts(table: pd.DataFrame) -> tuple[Floats, Floats]:
    return table["correct"].to_numpy(), table["total"].to_numpy()


def _brier(table: pd.DataFrame) -> Floats:
    """Return corrected terms."""
    triple = (table[name].to_numpy() for name in NUMBERS)
    return metrics.capability_brier_terms(*triple, corrected=True)


def _constant(table: pd.DataFrame) -> Floats:
    """Return corrected terms of the best constant: the mean of mu_hat of the other questions."""
    others = others_mean(table["correct"] / table["total"]).to_numpy()
    return metrics.capability_brier_terms(others, *_counts(table), corrected=True)


Score = metrics.Interval | float


def _mean(terms: Floats, bounds: tuple[float, float] = (0, 1)) -> metrics.Interval:
    return metrics.mean_interval(terms, bounds=bounds)


def _as_table(scores: Mapping[str, Score]) -> pd.DataFrame:
    rows = {
        name: known if isinstance(known, metrics.Interval) else (known, np.nan, np.nan)
        for name, known in scores.items()
    }
    columns = ["value", "low", "high"]
    table = pd.DataFrame.from_dict(rows, orient="index", columns=columns)
    return table.rename_axis("metric")
