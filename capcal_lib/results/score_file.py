"""Score one's own files: tables of question_id, confidence, correct, total, and logs of others as
they are.

A log of lm-evaluation-harness (``samples_*.jsonl``) or inspect_ai (``.eval``, ``.json``) has counts
and no confidences: it is scored by its accuracy, and says what a confidence would have to beat."""

from collections.abc import Mapping
from os.path import isdir
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import others_mean, pass_at_k
from capcal_lib.errors import InputError, counted, sanitize
from capcal_lib.grading.core import UNSCORED, grade_many
from capcal_lib.questions import NOT_STATED, TEXTS, Answer, plain_head, stream_rows
from capcal_lib.results.logs import kind_of, read_log

NUMBERS = ["confidence", "correct", "total"]
POWERS = (2, 4, 8, 16, 32, 64)  # the k of pass@k, as far as every question has samples
MOST = 1_000_000  # questions; where it takes more, no number is said
EQUAL = 1e-9  # confidences of two files are the same, but for rounding
CORRECTED = "capability Brier, corrected"
PLUG_IN = "capability Brier, plug-in"
ECE = "ECE, ten bins, corrected"
CONSTANT = "the best constant"
Z = 1.96 + 0.84  # a difference is found by a 95 % interval in four of five studies
MISSING = {"", "nan", "none", "null", "na", "n/a"}
TRUTH = {"0": 0, "1": 1, "0.0": 0, "1.0": 1, "false": 0, "true": 1}
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
    ``gold``, and the ``question`` in place of a confidence."""

    table: pd.DataFrame
    notes: list[str]


def read_file(
    path: Path, *, key: Path | None = None, drop_missing: bool = False, **log: Any
) -> Counted:
    """Read what is to be scored: :func:`read_confidences`, or :func:`read_counts` of a log."""
    if key is None and str(path) != "-":
        is_log = path.suffix == ".eval" or isdir(path)
        heads = [] if is_log else next(iter(stream_rows(path)), NUMBERS)
        if {*map(plain_head, heads)}.isdisjoint(NUMBERS):
            return read_counts(path, **log)
    table, notes = read_confidences(path, key=key, drop_missing=drop_missing)
    if single := int((table["total"] == 1).sum()):
        questions = counted(len(table), "question")
        notes.append(f"no corrected score of {single} of {questions}: one scored sample")
    wrong = table["correct"] / table["total"] != table["confidence"]
    if sure := int((wrong & table["confidence"].isin([0, 1])).sum()):
        notes.append(
            f"log loss is infinite: {counted(sure, 'question')} with a confidence of 0 or 1 and "
            "samples to the contrary"
        )
    return Counted(table, notes)


def read_counts(path: Path, *, scorer: str | None = None, regrade: bool = False) -> Counted:
    """Count the verdicts of a log, see :func:`~capcal_lib.results.logs.read_log`, or those of the
    rules where it has none.

    `InputError` where no sample of it has a verdict."""
    log = read_log([path], scorer=scorer, regrade=regrade)
    items = pd.DataFrame(log.items.values(), list(log.items))
    samples = log.samples[["question_id", "verdict"]]
    if not log.judged:
        if (items["answer"] == NOT_STATED).any():
            raise InputError(f"{path}: the samples have neither answers nor a verdict each")
        kind = kind_of(log.items.values())
        answers = {name: Answer(kind, one.answer, one.aliases) for name, one in log.items.items()}
        cases = zip(log.samples["response"], samples["question_id"].map(answers), strict=True)
        samples = samples.assign(verdict=[one.verdict for one in grade_many(list(cases))])
    right = samples["verdict"] == "correct"
    lost = samples["verdict"] == "not_scored"
    if lost.all():
        raise InputError(f"{path}: no sample has a verdict, nor an answer that could be graded")
    groups = right[~lost].groupby(samples["question_id"])
    table = pd.DataFrame({"correct": groups.sum(), "total": groups.size()})
    table[["gold", "question"]] = items.loc[table.index, ["answer", "question"]]
    notes = list(log.notes)
    if lost.any() and not log.judged:
        notes.append(f"{counted(lost.sum(), 'sample')} that could not be graded left out")
    if len(table) < len(items):
        unknown = counted(len(items) - len(table), "question")
        notes.append(f"{unknown} without a scored sample left out")
    if lost.mean() > UNSCORED:
        low, high = (
            one.groupby(samples["question_id"]).mean().mean() for one in (right, right | lost)
        )
        notes.append(f"accuracy {low:.3f} if all not scored were wrong, {high:.3f} if right")
    return Counted(table, notes)


def read_confidences(path: Path, *, key: Path | None = None, drop_missing: bool = False) -> Counted:
    """Read and check confidences and counts: a row a question, indexed by question_id as it is
    written.

    The file is one of :func:`~capcal_lib.questions.stream_rows`; heads may be in capitals and with
    spaces. Percentages are divided by 100, and rows of a ``correct`` of 0 or 1 without a ``total``
    are counted. The counts are those of a ``key`` where one is given. Rows without a confidence are
    left out with ``drop_missing``. Notes say so.

    `InputError` for a file that cannot be read, columns that are missing (those found are listed),
    or a value that is not allowed; the row is named by its place and id.
    """
    notes: list[str] = []
    table = _read_texts(path, ["question_id"] if key else [])
    if key is not None:
        counts = _read_texts(key, ["question_id", *NUMBERS[1:]])
        counts = counts.drop_duplicates("question_id").set_index("question_id")[NUMBERS[1:]]
        strangers = ~table["question_id"].isin(counts.index)
        if strangers.any():
            name = sanitize(table["question_id"][strangers].iloc[0], 80)
            raise InputError(f"{path}: question {name!r} is not in the key {key}")
        notes.append(f"counts of {key}: {len(table)} of its {counted(len(counts), 'question')}")
        table = table.drop(columns=NUMBERS[1:], errors="ignore").join(counts, on="question_id")
    elif {"question_id", "confidence", "correct"} <= set(table) and not any(
        "total" in plain_head(head) for head in table
    ):
        truth = table["correct"].str.lower().map(TRUTH)
        if truth.notna().all():
            rows = table.assign(correct=truth, total=1, place=table.index)
            groups = rows.groupby(["question_id", "confidence"], sort=False, as_index=False)
            table = groups.agg({"correct": "sum", "total": "sum", "place": "first"})
            table = table.set_index("place").astype(str)
            samples = f"samples of {counted(len(table), 'question')}"
            notes.append(f"no total: {counted(len(rows), 'row')} counted as {samples}")
    _check_heads(path, table, ["question_id", *NUMBERS])
    missing = table["confidence"].str.lower().isin(MISSING)
    rules = {}
    if drop_missing:
        left_out = counted(len(table), "question")
        notes.append(f"{missing.sum()} of {left_out} without a confidence left out")
        table = table[~missing]
    else:
        few = f"has no confidence, as {missing.sum()} of {counted(len(table), 'row')}"
        rules[f"{few}; --drop-missing leaves them out"] = missing
    if table.empty:
        raise InputError(f"{path}: no question has a confidence")
    numbers = table[NUMBERS].apply(pd.to_numeric, errors="coerce")
    cells = table["confidence"].str.replace(",", ".")  # decimal commas
    percent = cells.str.endswith("%")
    confidence = pd.to_numeric(cells.str.rstrip("% "), errors="coerce")
    # A few above 1 are mistakes; where most are, there is one reading.
    if not percent.any() and confidence.between(0, 100).all() and (confidence > 1).mean() > 0.5:
        percent = ~percent
    if percent.any():
        notes.append(f"{counted(percent.sum(), 'confidence')} read as percentages, divided by 100")
    numbers["confidence"] = confidence.where(~percent, confidence / 100)
    counts = numbers[NUMBERS[1:]]
    rules |= {
        "has no question_id": table["question_id"] == "",
        "stands in two rows; keep one": table["question_id"].duplicated(),
        "has something else than numbers": numbers.isna().any(axis="columns"),
        "has a confidence outside [0, 1]; divide percentages by 100": (
            ~numbers["confidence"].between(0, 1)
        ),
        "has counts that are not whole numbers": (counts % 1 != 0).any(axis="columns"),
        "needs a scored sample (total of 1 or more)": counts["total"] < 1,
        "has more correct samples than scored ones, or fewer than 0": (
            ~counts["correct"].between(0, counts["total"])
        ),
    }
    for rule, wrong in rules.items():
        if wrong.any():
            row = table[wrong].iloc[0]
            values = ", ".join(f"{name} {sanitize(row[name], 40)!r}" for name in NUMBERS)
            place = f"{'line' if path.name.endswith((*TEXTS, '-')) else 'row'} {row.name}"
            name = sanitize(row["question_id"], 80)
            raise InputError(f"{path}, {place}: question {name!r} {rule}: {values}")
    whole = numbers.astype({"correct": np.int64, "total": np.int64})
    return Counted(whole.set_index(table["question_id"]), notes)


def _read_texts(path: Path, needed: list[str]) -> pd.DataFrame:
    """Read a table as it is written, every cell a text; the index is the line or row."""
    table = pd.DataFrame(stream_rows(path), dtype=object).fillna("").astype(str)
    if table.empty:
        raise InputError(f"{path}: there are no rows")
    plain = table.columns.map(plain_head)
    for wanted in ("question_id", *NUMBERS):
        alike = table.columns[plain == plain_head(wanted)]
        if wanted not in table and len(alike) == 1:  # else there is no one reading
            table = table.rename(columns={alike[0]: wanted})
        if wanted in table:
            table[wanted] = table[wanted].str.strip()
    table.index += 2 if path.name.endswith((*TEXTS, "-")) else 0
    _check_heads(path, table, needed)
    return table


def _check_heads(path: Path, table: pd.DataFrame, needed: list[str]) -> None:
    if lacking := ", ".join(name for name in needed if name not in table):
        found = sanitize(", ".join(map(str, table)))
        wanted = ", ".join(needed)
        raise InputError(f"{path}: no column {lacking}; needed: {wanted}; found: {found}")


def score_table(table: pd.DataFrame) -> pd.DataFrame:
    """Score what a file holds: confidences, or counts alone.

    Returns a table indexed by ``metric``: its ``value`` and, where there is one, the 95 % interval
    ``low`` to ``high`` for questions like these. ``noise`` is the share of the variance of mu_hat
    over questions that comes from few samples, and not from questions that differ; ``best
    constant`` is the corrected score of always saying the mean of the other questions, which a
    confidence has to beat. The corrected scores are those of the questions with two scored samples
    or more."""
    counts = [table[name].to_numpy() for name in NUMBERS[1:]]
    twice = table[table["total"] > 1]
    counts_twice = [twice[name].to_numpy() for name in NUMBERS[1:]]
    scores: dict[str, Any] = {
        "questions": len(table),
        "scored samples": int(table["total"].sum()),
        "accuracy": metrics.mean_interval(table["correct"] / table["total"], bounds=(0, 1)),
    }
    for k in POWERS:
        if k <= table["total"].min():
            passed = pass_at_k(counts[0], counts[1], k)[:, 0]
            scores[f"pass@{k}"] = metrics.mean_interval(passed, bounds=(0, 1))
    if len(twice) > 1:
        spread = float((twice["correct"] / twice["total"]).var())
        floor = metrics.noise_floor(*counts_twice)
        constant = _constant(twice)
        uniform = metrics.uniform_baseline_brier_terms(*counts_twice, corrected=True)
        scores["noise"] = floor / spread if floor < spread else 1.0
        scores["best constant"] = metrics.mean_interval(constant, bounds=(0, 1))
        scores["uniform random"] = metrics.mean_interval(uniform, bounds=(1 / 12, 1 / 3))
    if "confidence" in table:
        triple = [table["confidence"].to_numpy(), *counts]
        known = twice if len(twice) else table
        plug_in = metrics.capability_brier_terms(*triple)
        scores[PLUG_IN] = metrics.mean_interval(plug_in, bounds=(0, 1))
        if len(twice):
            scores[CORRECTED] = metrics.mean_interval(_brier(twice), bounds=(0, 1))
        if len(twice) > 1:
            gain = constant - _brier(twice)
            scores["gain over the best constant"] = metrics.mean_interval(gain, bounds=(-1, 1))
        if len(twice):
            scores["noise floor of the plug-in"] = metrics.noise_floor(*counts_twice)
        parts = metrics.isotonic_split(*(known[name] for name in NUMBERS), corrected=len(twice) > 0)
        loss = metrics.expected_response_loss(*triple, score="log")
        scores["miscalibration"] = parts.miscalibration
        scores["discrimination"] = parts.discrimination
        scores["expected response Brier"] = metrics.expected_response_brier(*triple)
        if len(twice):
            scores["correctness variance"] = metrics.correctness_variance(*counts)
        scores["log loss"] = loss.mean()
        if np.isfinite(loss).all():
            scores["log loss"] = metrics.mean_interval(loss, bounds=(0, max(1, loss.max())))
        scores["ECE, ten bins, plug-in"] = metrics.binned_ece(*triple, corrected=False)
        scores[ECE] = metrics.binned_ece(*triple)
        scores["smooth ECE, plug-in"] = metrics.smooth_ece(*triple)
        scores["AUROC"] = metrics.soft_auroc(*triple)
        scores["Spearman with mu_hat"] = metrics.spearman(*triple)
    rows = [one if isinstance(one, tuple) else (one, np.nan, np.nan) for one in scores.values()]
    names = pd.Index(scores, name="metric")
    limits = pd.DataFrame(rows, names, columns=["value", "low", "high"])
    return limits.assign(value=pd.Series([row[0] for row in rows], names, dtype=object))


def _constant(table: pd.DataFrame) -> Any:
    """Return corrected terms of the best constant: the mean of mu_hat of the other questions."""
    return _brier(table.assign(confidence=others_mean(table["correct"] / table["total"])))


def _brier(table: pd.DataFrame, corrected: bool = True) -> Any:
    triple = (table[name].to_numpy() for name in NUMBERS)
    return metrics.capability_brier_terms(*triple, corrected=corrected)


def compare_files(tables: Mapping[str, pd.DataFrame], against: str) -> pd.DataFrame:
    """Compare every file with one of them, on the questions that both have.

    Tables of confidences are compared by capability Brier score, logs by accuracy; logs without a
    question in common are left out. Returns a row a file, ``against`` aside: ``estimate`` with the
    interval ``low`` to ``high``, positive where the file is better, ``p`` and ``verdict`` as from
    :func:`~capcal_lib.metrics.gains`, the number of ``questions`` that both have, and a
    ``sentence``.

    `InputError` where confidences stand beside logs, and where two files have no question in
    common, count one differently, or give it another answer."""
    logs = [name for name, table in tables.items() if "confidence" not in table]
    if logs and len(logs) < len(tables):
        raise InputError(
            f"{sanitize(logs[0])} is a log without confidences, which cannot be compared with "
            "those of the other files; score it by itself"
        )
    rival = tables[against]
    same, what = (["gold"], "another right answer") if logs else (NUMBERS[1:], "other counts")
    terms = {}
    for name, table in tables.items():
        first, second = sanitize(name), sanitize(against)
        common = table.index.intersection(rival.index)
        if len(common):
            terms[name] = _terms(table)
        elif not logs:
            raise InputError(f"{first} and {second} have no question_id in common")
        unlike = (table.loc[common, same] != rival.loc[common, same]).any(axis="columns")
        if unlike.any():
            question = sanitize(common[unlike][0], 80)
            raise InputError(f"question {question!r} has {what} in {first} than in {second}")
    what = "accuracy of every question" if logs else "confidences"
    return _compare(pd.DataFrame(terms), against, what)


def tell_apart(tables: Mapping[str, pd.DataFrame], against: str) -> dict[str, pd.DataFrame]:
    """Put the file before the ids of logs that ask other questions under the ids of a rival."""
    apart = dict(tables)
    asked = tables[against].get("question")
    for name, table in tables.items():
        if asked is not None and "question" in table:
            common = table.index.intersection(asked.index)
            if len(common) and not (table["question"][common] == asked[common]).any():
                apart[name] = table.set_index(f"{name}: " + table.index.astype(str))
    return apart


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
    return str(_compare(terms, CONSTANT)["sentence"].iloc[0])


def _compare(terms: pd.DataFrame, against: str, what: str = "confidences") -> pd.DataFrame:
    """Test and say by how much each column is better than another."""
    table = metrics.gains(terms, against)
    gaps = terms[table.index].rsub(terms[against], axis="index")
    table["questions"] = gaps.count()
    table["needed"] = np.ceil((Z * gaps.std() / gaps.mean()) ** 2)
    both = "" if against == CONSTANT else " that both have"
    sentences = []
    for name, row in table.iterrows():
        on = f"on {counted(row['questions'], 'question')}{both}"
        gain = _spell(*row[["estimate", "low", "high"]])
        if (gaps[name].dropna().abs() < EQUAL).all():
            sentence = f"{name} and {against} have the same {what} {on}"
        elif row["verdict"] == "better":
            sentence = f"{name} is better than {against} by {gain}, {on}"
        elif row["verdict"] == "worse":
            loss = _spell(*-row[["estimate", "high", "low"]])
            sentence = f"{against} is better than {name} by {loss}, {on}"
        else:
            enough = "over a million"
            if row["needed"] < MOST:
                needed = max(row["needed"], row["questions"] + 1)
                enough = f"about {float(f'{needed:.2g}'):,.0f}"
            sentence = f"these data cannot separate {name} and {against} ({gain}, {on}): "
            sentence += f"{enough} questions would"
        sentences.append(sentence)
    return table.assign(sentence=sentences)


def overview(
    tables: Mapping[str, pd.DataFrame], scores: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Put the scores of files side by side, a row a file, with the interval of the Brier score, or
    of the accuracy of logs.

    The Brier score is the corrected one where all files have it."""
    values = pd.DataFrame({name: known["value"] for name, known in scores.items()}).T
    brier = CORRECTED if CORRECTED in values and values[CORRECTED].notna().all() else PLUG_IN
    shown = brier if brier in values else "accuracy"  # a log has no Brier score
    heads = ["questions", "accuracy", brier, "low", "high", "log loss", ECE, "AUROC"]
    limits = pd.DataFrame({name: known.loc[shown] for name, known in scores.items()}).T
    table = values.join(limits[["low", "high"]]).reindex(columns=heads)
    best = metrics.may_be_best(pd.DataFrame({name: _terms(one) for name, one in tables.items()}))
    table = table.dropna(axis="columns", how="all")
    table = table.rename(columns=lambda head: head.replace("capability ", ""))
    return table.assign(**{"may be best": [name in best for name in tables]})


def in_short(table: pd.DataFrame) -> list[str]:
    """Say what counts say: accuracy and pass@k with their intervals, and how many they are."""
    scored = table.loc[table["total"] > 0, NUMBERS[1:]]
    known = score_table(scored)
    rows = ["accuracy", *known.filter(regex="^pass@", axis="index").index[-1:]]
    samples = " to ".join(map(str, sorted({scored["total"].min(), scored["total"].max()})))
    single = int((scored["total"] == 1).sum())
    return [
        ", ".join(f"{name} {_spell(*known.loc[name])}" for name in rows),
        f"{counted(len(scored), 'question')}; scored samples of each: {samples}",
        *[f"{single} of them with one scored sample, left out of the scores"] * (single > 0),
    ]


def _spell(estimate: float, low: float, high: float) -> str:
    return f"{estimate:z.3f} [{low:z.3f}, {high:z.3f}]"


def spell_cell(cell: Any) -> str:
    """Spell a cell with at most four decimals; whole numbers above 1 have none.

    >>> [spell_cell(cell) for cell in (300.0, 1, 0.25, -0.00001, True, None, "a")]
    ['300', '1', '0.2500', '0.0000', 'yes', '', 'a']
    """
    if isinstance(cell, str):
        return cell
    if pd.isna(cell):
        return ""
    if pd.api.types.is_bool(cell):
        return "yes" if cell else "no"
    whole = not isinstance(cell, float) or (cell > 1 and cell.is_integer())
    return f"{cell:,.0f}" if whole else f"{cell:z,.4f}"


def _terms(table: pd.DataFrame) -> "pd.Series[float]":
    """Return a term a question, lower being better: of the Brier score, or the share of wrong
    samples.
    """
    if "confidence" in table:
        return pd.Series(_brier(table, corrected=False), table.index)
    return 1 - table["correct"] / table["total"]
