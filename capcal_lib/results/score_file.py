"""Score one's own files: tables of question_id, confidence, correct, total, and logs of others as
they are.

A log of lm-evaluation-harness (``samples_*.jsonl``) or inspect_ai (``.eval``, ``.json``) has counts
and no confidences: it is scored by its accuracy, and says what a confidence would have to beat."""

from collections.abc import Mapping, Sequence
from os.path import isdir
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import deep_samples, others_mean, pass_at_k
from capcal_lib.errors import InputError
from capcal_lib.grading.core import grade_many
from capcal_lib.grading.unread import describe_unread
from capcal_lib.questions import NOT_STATED, Answer
from capcal_lib.results.logs import WORDS, kind_of, read_log
from capcal_lib.rows import MISSING, plain_head, read_columns, read_share, stream_rows
from capcal_lib.text import counted, sanitize, spell

COUNTS = ["correct", "total"]
NUMBERS = ["confidence", *COUNTS]
POWERS = (2, 4, 8, 16, 32, 64)  # the k of pass@k, as far as ten questions have samples, or all
FEWEST = 10  # questions of which an interval or a comparison says anything
MOST = 1_000_000  # questions, more of which are not counted
EQUAL = 1e-9  # confidences of two files are the same, but for rounding
CORRECTED = "capability Brier, corrected"
PLUG_IN = "capability Brier, plug-in"
ECE = "ECE, ten bins, corrected"
CONSTANT = "the best constant"
RESPONSE = "expected response Brier"
SIZES = "questions, scored samples"
SPLIT = "miscalibration, discrimination (in sample)"
SUMMARY = ["accuracy", CORRECTED, "best constant", "gain over the best constant", SPLIT, "AUROC"]
CLUSTERS = ["cluster", "subject"]  # columns of which questions belong together
WEIGHT = "weight"  # a column that is refused
ABOUT_QUESTIONS = ["total", *CLUSTERS, WEIGHT]  # columns that a file may have
NO_COUNTS = "; --key FILE takes correct and total from another file, or a log"
NO_TOTAL = "; without a column total each row is one sample"
BEST = "may be best: no other is significantly better on questions that both have"
SENTENCES = {
    "better": "{file} is better than {rival} by {gain}, on {both}",
    "worse": "{rival} is better than {file} by {loss}, on {both}",
    "inconclusive": "these data cannot tell {file} and {rival} apart ({gain}, on {both}): about "
    "{needed:,.0f} questions or more would",
    "unplanned": "these data cannot tell {file} and {rival} apart ({gain}, on {both}), and are too "
    "few to say how many would",
    "too few": "too few to tell {file} and {rival} apart: {both}",
    "same": "{file} and {rival} have the same confidences, or accuracies, on {both}",
    "apart": "{file} and {rival} ask different questions: not compared",
    "one question": "one question says nothing of others: scores and intervals take two or more",
    "one sample": "with one scored sample a question, questions that differ and the noise of "
    "sampling cannot be told apart: draw two or more of each",
    "no confidence": "{noise:.0%} of the spread over questions is noise of sampling; a confidence "
    "has to beat {constant}, the score of always saying {accuracy}",
    "few counts": "too few to say what a confidence has to beat: {questions}",
    "no spread": "these samples show no difference between questions beyond the noise of sampling: "
    "they can show of no confidence that it is better than the best constant",
}
MEANINGS = {
    "accuracy": "the mean of mu_hat, the share of a question's scored samples that are correct",
    "pass@k": "the chance that one of k samples is correct, without bias, of the questions with k",
    "noise": "the share of the spread of mu_hat over questions that is noise of sampling",
    "best constant": "the corrected Brier score of always saying the mean of the other questions",
    "uniform random": "the corrected Brier score of uniform random numbers",
    PLUG_IN: "the mean of (confidence - mu_hat)^2; lower is better",
    CORRECTED: "the same less what the noise of mu_hat adds, so that it may fall below 0",
    "gain over the best constant": "by which the corrected score is lower than the best constant's",
    "miscalibration": "what recalibration can remove of the score, as fitted to these questions",
    "discrimination": "how far confidences tell questions apart, as fitted to these questions; "
    "higher is better",
    "ECE, ten bins": "the mean distance of confidence and mu_hat in ten bins; corrected for noise, "
    "or plug-in, as it is usually reported",
    "may be best": "no other is significantly better on the questions that both have",
}


class Counted(NamedTuple):
    """What a file holds: a row a question, indexed by question_id, and how it was read.

    The table has ``correct``, ``total`` and ``confidence``, and ``cluster`` where the file says
    which questions belong together; that of a log has the right answer, ``gold``, in place of a
    confidence, and its questions are those of one id and ``question``."""

    table: pd.DataFrame
    notes: list[str]


class Scored(NamedTuple):
    """What is shown of scores: a table, with what is said above and below it."""

    above: list[str]
    table: pd.DataFrame
    below: list[str]
    rows: list[pd.DataFrame]  # the same for programs
    parts: dict[str, tuple[pd.DataFrame, pd.DataFrame]]  # of a report: scores, and their questions
    problems: Sequence[str] = ()  # what is damaged


def score_files(files: Sequence[Path], *, every: bool = False, **options: Any) -> Scored:
    """Score files, and compare the others with the first.

    What is shown are the metrics that matter most, or ``every`` one; the rows for programs always
    have all. The other ``options`` are those of :func:`read_file`. `InputError` for whatever
    reading and comparing refuse."""
    notes: list[str] = []
    tables, scores, parts, shown = {}, {}, {}, {}
    for name in map(str, files):
        table, of_file = read_file(Path(name), **options)
        notes += [f"{name}: {note}" for note in of_file]
        tables[name] = table
        scores[name] = score_table(table)
        shown[name] = spell_scores(scores[name]) if every else summarize(scores[name])
        parts[name] = shown[name].to_frame("value"), table
        notes += [f"{name}: {note}" for note in _notes_on(scores[name], table, every)]
    rival = str(files[0])
    rows = [pd.concat(scores, names=["file"]).reset_index()]
    if len(tables) == 1:
        above = [f"{rival}: {intervals_of(len(table))}"]
        below = [*notes, in_words(rival, table, scores[rival])]
        return Scored(above, parts[rival][0], below, rows, parts)
    found = compare_files(tables, rival)
    rows.append(found.rename_axis("file").reset_index().assign(against=rival))
    best = metrics.may_be_best(_terms(tables), labels_of(tables))
    notes.append(f"{' and '.join(filter(best.__contains__, tables))} {BEST}")
    overview = pd.concat(shown, axis="columns").fillna("")
    return Scored([], overview, [*notes, *found["sentence"]], rows, parts)


def intervals_of(questions: int) -> str:
    """Say of what the intervals are, or why there are none."""
    if questions < FEWEST:
        return f"{counted(questions, 'question')}, too few for intervals"
    return "95 % intervals for questions like these"


def _notes_on(scores: pd.DataFrame, table: pd.DataFrame, every: bool) -> list[str]:
    """Say what scores mean that no true one can have."""
    notes = []
    value = scores["value"]
    if min(value.get(CORRECTED, 0.0), value.get("best constant", 0.0)) < 0:
        notes.append("a corrected score below 0 is noise of sampling: the true one is 0 or more")
    if every and np.isinf(value.get("log loss", 0.0)):
        unlike = table["correct"] / table["total"] != table["confidence"]
        sure = int((unlike & table["confidence"].isin([0, 1])).sum())
        notes.append(
            f"log loss is infinite: {counted(sure, 'question')} with a confidence of 0 or 1 and "
            "samples to the contrary"
        )
    return notes


def read_file(
    path: Path, *, key: Path | None = None, drop_missing: bool = False, **of_log: Any
) -> Counted:
    """Read what is to be scored: :func:`read_confidences`, or :func:`read_counts` of a log.

    `InputError` also for an option that has nothing to do: of logs for a table, or of tables for a
    log."""
    if key is None and is_log(path):
        if drop_missing:
            raise InputError(f"{path} is a log, which has no confidences to miss")
        return read_counts(path, **of_log)
    if any(of_log.values()) and (key is None or not is_log(key)):
        raise InputError(
            f"{key or path} is a table of counts, no log: --scorer and --regrade are for logs"
        )
    return read_confidences(path, key=key, drop_missing=drop_missing, **of_log)


def is_log(path: Path) -> bool:
    """Tell a log of samples from a table of confidences or counts.

    `InputError` for a table that is neither."""
    if str(path) == "-":
        return False
    if path.suffix == ".eval" or isdir(path):
        return True
    heads = [str(head) for head in next(stream_rows(path), NUMBERS)]
    plain = {*map(plain_head, heads)}
    if not plain.isdisjoint(NUMBERS):
        return False
    if path.suffix not in (".jsonl", ".json", ".gz") and "response" not in plain:
        raise InputError(
            f"{path}: confidences are needed in columns {', '.join(['question_id', *NUMBERS])}, or "
            "samples in columns question_id, response, and gold or verdict; found: "
            f"{sanitize(', '.join(heads))}"
        )
    return True


def read_counts(path: Path, *, scorer: str | None = None, regrade: bool = False) -> Counted:
    """Count the verdicts of a log, see :func:`~capcal_lib.results.logs.read_log`, or those of the
    rules where it has none.

    `InputError` where no sample of it has a verdict."""
    samples, items, judged, notes, _ = read_log([path], scorer=scorer, regrade=regrade)
    if not judged:
        if NOT_STATED in {*items["gold"]}:
            raise InputError(f"{path}: the samples have neither answers nor a verdict each")
        kind = kind_of(items)
        answers = {
            name: Answer(kind, gold, aliases) for name, _, gold, aliases, _ in items.itertuples()
        }
        cases = zip(samples["response"], samples["question_id"].map(answers), strict=True)
        samples["verdict"] = [one.verdict for one in grade_many(list(cases))]
    lost = samples["verdict"] == "not_scored"
    silent = samples.loc[~lost, "verdict"] == "no_answer"
    notes += describe_unread(samples.loc[~lost, "response"], silent)
    outcomes = {"correct": samples["verdict"] == "correct", "total": ~lost, "not_scored": lost}
    counts = pd.DataFrame(outcomes).groupby(samples["question_id"]).sum()
    table = counts.loc[counts["total"] > 0, COUNTS].join(items[["gold", "question"]])
    if table.empty:
        raise InputError(f"{path}: no sample has a verdict, nor an answer that could be graded")
    if lost.any():
        low, high = accuracy_bounds(counts)
        notes.append(
            f"{counted(lost.sum(), 'sample')} not scored: accuracy {low:.3f} with them wrong, "
            f"{high:.3f} right"
        )
    return Counted(table.set_index("question", append=True), notes)


def accuracy_bounds(counts: pd.DataFrame) -> tuple[float, float]:
    """Bound mean expected accuracy by counts: with all samples that are not scored wrong, and with
    all of them right.

    >>> counts = pd.DataFrame({"correct": [1, 2], "total": [2, 4], "not_scored": [2, 0]})
    >>> accuracy_bounds(counts)
    (0.375, 0.625)
    """
    samples = counts["total"] + counts["not_scored"]
    most = (counts["correct"] + counts["not_scored"]) / samples
    return float((counts["correct"] / samples).mean()), float(most.mean())


def read_confidences(
    path: Path, *, key: Path | None = None, drop_missing: bool = False, **of_log: Any
) -> Counted:
    """Read and check confidences and counts: a row a question, indexed by question_id as it is
    written.

    The file is one of :func:`~capcal_lib.rows.read_columns`; a confidence is read by
    :func:`~capcal_lib.rows.read_share`. Without a ``total`` each row is one sample, and those of
    one question are counted. The counts are those of a ``key`` where one is given, see
    :func:`read_key`. Rows without a confidence are left out with ``drop_missing``. Notes say so.

    `InputError` for a file that cannot be read, a column that lacks, a question with two
    confidences, or a value that is not allowed; the row is named by its place and id, and the rule
    that it breaks."""
    if key is None:
        table = read_columns(
            path, ["question_id", "confidence", "correct"], ABOUT_QUESTIONS, NO_COUNTS
        )
        notes = _note_samples(table)
    else:
        table = read_columns(path, ["question_id", "confidence"], [*CLUSTERS, WEIGHT])
        counts, notes = read_key(key, **of_log)
        inside = table["question_id"].isin(counts.index)
        example = sanitize(counts.index[0], 80)
        _refuse(path, table, ~inside, f"is not in the key {key}, whose ids look like {example!r}")
        notes.append(f"counts of {key}: {len(table)} of its {counted(len(counts), 'question')}")
        for name in COUNTS:
            table[name] = table["question_id"].map(counts[name])
    missing = table["confidence"].str.lower().isin(MISSING)
    few = f"{missing.sum()} of {counted(len(table), 'row')}"
    if drop_missing:
        notes.append(f"{few} without a confidence left out")
        table = table[~missing]
    else:
        rule = f"has no confidence, as {few}; --drop-missing leaves them out"
        _refuse(path, table, missing, rule)
    if table.empty:
        raise InputError(f"{path}: no question has a confidence")
    numbers = _check_counts(path, table) if key is None else table[COUNTS]
    numbers = numbers.assign(confidence=_check_shares(path, table))
    names = table["question_id"]
    if "total" in table:
        _refuse(
            path,
            table,
            names.duplicated(),
            "stands in two rows; give its counts in one, and another model or method a file of its "
            "own",
        )
    else:
        again = names.duplicated() & ~numbers.assign(name=names).duplicated(["name", "confidence"])
        _refuse(
            path,
            table,
            again,
            "has two confidences; one is for all its samples, so give another model or method a "
            "file of its own",
        )
    sums = {"confidence": "first", "correct": "sum", "total": "sum"}
    found = numbers.groupby(names, sort=False).agg(sums)
    found = found.astype(dict.fromkeys(COUNTS, np.int64))
    clusters = _read_clusters(path, table)
    if clusters is None and key is not None:
        clusters = counts.get("cluster")  # its questions may be more
    if clusters is not None:
        found = _with_clusters(found, clusters)
        notes.append(f"whole {clusters.name}s vary: {found['cluster'].nunique()} of them")
    if single := (found["total"] == 1).sum():
        notes.append(f"no corrected score of {counted(single, 'question')}: one scored sample")
    return Counted(found, notes)


def read_key(path: Path, **of_log: Any) -> Counted:
    """Read counts alone, indexed by question_id: of a log, or of a table with ``correct`` and, if
    its rows are no single samples, ``total``.

    A question may come again with equal counts, as in a table of several methods. `InputError` for
    two unlike rows of a question, one text of a log under two ids, and whatever reading refuses."""
    if is_log(path):
        counts, notes = read_counts(path, **of_log)
        counts = counts[COUNTS].droplevel("question")
        if counts.index.has_duplicates:
            name = sanitize(counts.index[counts.index.duplicated()][0], 80)
            raise InputError(f"{path}: question {name!r} has two texts; give a log of one task")
        return Counted(counts, notes)
    table = read_columns(path, ["question_id", "correct"], ABOUT_QUESTIONS)
    numbers = _check_counts(path, table).assign(question_id=table["question_id"])
    notes = _note_samples(table)
    clusters = _read_clusters(path, table)
    if "total" not in table:
        summed = numbers.groupby("question_id", sort=False).sum()
        return Counted(_with_clusters(summed, clusters), notes)
    # Equal rows of one sample each may be two samples as well as one that is said twice.
    same = numbers.duplicated() & (numbers["total"] > 1)
    unlike = numbers["question_id"].duplicated() & ~same
    _refuse(path, table, unlike, "stands in two rows; give its counts in one")
    first = numbers.drop_duplicates("question_id").set_index("question_id")
    return Counted(_with_clusters(first, clusters), notes)


def _read_clusters(path: Path, table: pd.DataFrame) -> "pd.Series[str] | None":
    """Read which questions belong together, a label a question; None where no column says it.

    `InputError` for a column of weights, for two columns of labels, and for a question without a
    label or with two."""
    if WEIGHT in table:
        raise InputError(
            f"{path}: a column {WEIGHT} is not used, as every question counts alike; leave it out"
        )
    names = [name for name in CLUSTERS if name in table]
    if not names:
        return None
    if len(names) > 1:
        raise InputError(f"{path}: columns {' and '.join(names)} say it twice; keep one of them")
    name = names[0]
    _refuse(path, table, table[name] == "", f"has no {name}")
    labels = table[["question_id", name]].drop_duplicates()
    again = table["question_id"].isin(labels["question_id"][labels["question_id"].duplicated()])
    _refuse(path, table, again, f"has more than one {name}")
    return labels.set_index("question_id")[name]


def _with_clusters(counts: pd.DataFrame, clusters: "pd.Series[str] | None") -> pd.DataFrame:
    """Return counts with the label of each question where there is one."""
    return counts if clusters is None else counts.assign(cluster=clusters)


def _note_samples(table: pd.DataFrame) -> list[str]:
    """Say that rows are samples where there is no total."""
    if "total" in table:
        return []
    questions = counted(table["question_id"].nunique(), "question")
    return [f"no total: {counted(len(table), 'row')} counted as samples of {questions}"]


def _check_counts(path: Path, table: pd.DataFrame) -> pd.DataFrame:
    """Return ``correct`` and ``total`` of texts as whole numbers; without a total each row is one
    sample, whose ``correct`` may be a word of a verdict.
    """
    _refuse(path, table, table["question_id"] == "", "has no question_id")
    correct = pd.to_numeric(table["correct"], errors="coerce").astype(float)
    words = table["correct"][correct.isna()].str.lower().map(WORDS)
    correct = correct.fillna(words.map({"correct": 1.0, "incorrect": 0.0}))
    whole = (correct % 1 == 0) & (correct >= 0)
    _refuse(path, table, ~whole, "has a number of correct samples that is not whole, or below 0")
    if "total" not in table:
        _refuse(path, table, correct > 1, f"has more than one correct in a row{NO_TOTAL}")
        return pd.DataFrame({"correct": correct, "total": 1}, dtype=np.int64)
    total = pd.to_numeric(table["total"], errors="coerce").astype(float)
    whole = (total % 1 == 0) & (total >= 0)
    _refuse(path, table, ~whole, "has a total that is no whole number, or below 0")
    _refuse(path, table, total == 0, "has no scored sample; leave it out")
    _refuse(path, table, correct > total, "has more correct samples than its total")
    return pd.DataFrame({"correct": correct, "total": total}, dtype=np.int64)


def _check_shares(path: Path, table: pd.DataFrame) -> "pd.Series[float]":
    """Return the confidences of texts, each in [0, 1]."""
    texts = table["confidence"]
    shares = pd.to_numeric(texts, errors="coerce").astype(float)
    others = []  # than plain numbers: decimal commas, percentages
    for text in texts[shares.isna()]:
        try:
            others.append(read_share(text))
        except ValueError:
            others.append(np.nan)
    shares = shares.mask(shares.isna(), pd.Series(others, texts.index[shares.isna()]))
    _refuse(path, table, shares.isna(), "has a confidence that is no number")
    _refuse(path, table, shares < 0, "has a confidence below 0")
    percent = "; divide percentages by 100, or write them with %" if shares.max() > 2 else ""
    _refuse(path, table, shares > 1, f"has a confidence above 1{percent}")
    return shares


def _refuse(path: Path, table: pd.DataFrame, wrong: "pd.Series[bool]", rule: str) -> None:
    """Refuse a table for the first row that breaks a rule, if there is one."""
    if wrong.any():
        place = int(wrong.to_numpy().argmax())
        row = table.iloc[place]
        name = sanitize(row["question_id"], 80)
        values = sanitize(row[row.index.intersection(NUMBERS)].to_dict())
        raise InputError(f"{path}, row {table.index[place]}: question {name!r} {rule}: {values}")


def score_table(table: pd.DataFrame) -> pd.DataFrame:
    """Score what a file holds: confidences, or counts alone.

    Returns a table indexed by ``metric``: its ``value``, where there is one the 95 % interval
    ``low`` to ``high`` for questions like these, and the number of ``questions`` that it rests on.
    Fewer than ten questions have no interval. A corrected score may fall below 0, where no true
    one lies, so that its interval begins at 0 and may leave it out. ``noise`` is the share of the
    variance of mu_hat over questions that comes from few samples, and not from questions that
    differ; ``best constant`` is the corrected score of always saying the mean of the other
    questions, which a confidence has to beat. The corrected scores are those of the questions with
    two scored samples or more. Where the table has a ``cluster``, whole clusters vary."""
    counts = table[COUNTS].to_numpy().T
    mu_hat = table["correct"] / table["total"]
    twice = table["total"] > 1
    corrected = bool(twice.any())
    known = table[twice] if corrected else table
    constant = _constant(table)
    floor = -question_terms(mu_hat, table).mean()
    spread = mu_hat[twice].var()
    scores: dict[str, Any] = {  # numbers, and terms whose mean has an interval
        "questions": len(table),
        "scored samples": int(table["total"].sum()),
        "accuracy": mu_hat,
    }
    deep = deep_samples(table["total"])
    for k in POWERS:
        if k <= deep:
            scores[f"pass@{k}"] = pd.Series(pass_at_k(counts[0], counts[1], [k])[:, 0], table.index)
    if spread > 0:
        scores["noise"] = min(1.0, floor / spread)
    scores["best constant"] = constant
    if corrected:
        uniform = metrics.uniform_baseline_brier_terms(*known[COUNTS].to_numpy().T, corrected=True)
        scores["uniform random"] = pd.Series(uniform, known.index)
    bounds = {"uniform random": (1 / 12, 1 / 3), "gain over the best constant": _bounds(known)}
    if "confidence" in table:
        brier = question_terms(table["confidence"], table)
        triple = table[NUMBERS].to_numpy().T
        parts = metrics.isotonic_split(*known[NUMBERS].to_numpy().T, corrected=corrected)
        loss = metrics.expected_response_loss(*triple, score="log")
        bounds["log loss"] = (0, max(1, loss.max()))
        scores |= {
            PLUG_IN: question_terms(table["confidence"], table, corrected=False),
            CORRECTED: brier,
            "gain over the best constant": constant - brier,
            "noise floor of the plug-in": floor,
            "miscalibration": parts.miscalibration,
            "discrimination": parts.discrimination,
            RESPONSE: metrics.expected_response_brier(*triple),
            "correctness variance": metrics.correctness_variance(*counts) if corrected else None,
            "log loss": pd.Series(loss, table.index) if np.isfinite(loss).all() else np.inf,
            "ECE, ten bins, plug-in": metrics.binned_ece(*triple, corrected=False),
            ECE: metrics.binned_ece(*triple),
            "AUROC": metrics.soft_auroc(*triple),
            "Spearman with mu_hat": metrics.spearman(*triple),
        }
    few = dict.fromkeys(["miscalibration", "discrimination", "correctness variance"], len(known))
    rows = {}
    for name, value in scores.items():
        if isinstance(value, pd.Series):
            limits = _limits(value, table.get("cluster"), bounds.get(name, (0, 1)))
            rows[name] = [*limits, int(value.count())]
        else:
            rows[name] = [value, np.nan, np.nan, few.get(name, len(table))]
    result = pd.DataFrame(rows, ["value", "low", "high", "questions"], dtype=object).T
    return result.rename_axis("metric").dropna(subset="value")


def _limits(
    terms: "pd.Series[float]",
    clusters: "pd.Series[str] | None",
    bounds: tuple[float, float],
) -> tuple[float, float, float]:
    """Return a mean with its limits, none of which lies where no true mean can; NaN where there are
    too few questions for any.
    """
    if clusters is not None:
        clusters = clusters[terms.index]
    estimate, low, high = metrics.mean_interval(terms, clusters=clusters, bounds=bounds)
    bottom, top = bounds
    if terms.count() < FEWEST or high <= bottom:
        return estimate, np.nan, np.nan
    return estimate, max(low, bottom), min(high, top)


def _bounds(counts: pd.DataFrame) -> tuple[float, float]:
    """Return the bounds of any gain over the best constant."""
    return metrics.bounds_over_constant(float((counts["correct"] / counts["total"]).mean()))


def question_terms(
    confidence: "pd.Series[float]", counts: pd.DataFrame, *, corrected: bool = True
) -> "pd.Series[float]":
    """Return the Brier term of each question; NaN without a confidence, or with too few samples."""
    known = counts[COUNTS].assign(confidence=confidence)[NUMBERS].dropna()
    known = known[known["total"] > corrected]
    if known.empty:
        return pd.Series(np.nan, counts.index)
    terms = metrics.capability_brier_terms(*known.to_numpy().T, corrected=corrected)
    return pd.Series(terms, known.index).reindex(counts.index)


def _constant(table: pd.DataFrame) -> "pd.Series[float]":
    """Return the corrected terms of the best constant: mean mu_hat of the other questions."""
    mu_hat = (table["correct"] / table["total"]).where(table["total"] > 1)
    return question_terms(others_mean(mu_hat), table)


def _terms(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return a term of each question by each file, lower being better: of the plug-in Brier score,
    or the share of wrong samples.
    """
    terms = {
        name: question_terms(table["confidence"], table, corrected=False)
        if "confidence" in table
        else 1 - table["correct"] / table["total"]
        for name, table in tables.items()
    }
    return pd.DataFrame(terms)


def compare_files(tables: Mapping[str, pd.DataFrame], against: str) -> pd.DataFrame:
    """Compare every file with one of them, on the questions that both have.

    Tables of confidences are compared by capability Brier score, logs by accuracy. Returns a row a
    file, ``against`` aside: ``estimate`` with the interval ``low`` to ``high``, positive where the
    file is better, ``p`` and ``verdict`` as from :func:`~capcal_lib.metrics.gains`, or ``same``,
    ``apart``, or, below ten questions, ``too few``; the number of ``questions`` that both have and,
    where inconclusive, of those ``needed``, see :func:`~capcal_lib.metrics.questions_needed`; a
    ``sentence``.

    `InputError` where confidences stand beside logs, and where two files count a question
    differently, give it another answer, or group it otherwise."""
    kinds = {"confidence" in table for table in tables.values()}
    if len(kinds) > 1:
        raise InputError("logs without confidences are not compared with files that have them")
    clusters = labels_of(tables)
    same = [*COUNTS] if True in kinds else ["gold"]
    if clusters is not None:
        same.append("cluster")
    facts = pd.concat(table[same] for table in tables.values())
    unlike = facts[~facts.reset_index().duplicated().to_numpy()].index
    for question in unlike[unlike.duplicated()].get_level_values(0):
        what = f"other {' and '.join(same)} in one file than in another"
        raise InputError(f"question {sanitize(question, 80)!r} has {what}")
    return _compare(_terms(tables), against, clusters)


def labels_of(tables: Mapping[str, pd.DataFrame]) -> "pd.Series[str] | None":
    """Return which questions of all tables belong together; None where no table says it.

    `InputError` where only some do."""
    labels = [table["cluster"] for table in tables.values() if "cluster" in table]
    if not labels:
        return None
    if len(labels) < len(tables):
        raise InputError(
            f"some files have a column {' or '.join(CLUSTERS)} and others none; give it in all, or "
            "in the --key"
        )
    joined = pd.concat(labels)
    return joined[~joined.index.duplicated()]


def _compare(
    terms: pd.DataFrame,
    against: str,
    clusters: "pd.Series[str] | None" = None,
    bounds: tuple[float, float] = (-1.0, 1.0),
) -> pd.DataFrame:
    """Test and say by how much each column is better than another."""
    if clusters is not None:
        clusters = clusters.reindex(terms.index)
    table = metrics.gains(terms, against, clusters=clusters, bounds=bounds)
    gaps = terms[table.index].rsub(terms[against], axis="index")
    table["questions"] = gaps.count()
    few = table["questions"] < FEWEST
    table.loc[few, ["low", "high", "p"]] = np.nan
    table["verdict"] = (
        table["verdict"]
        .mask(few, "too few")
        .mask(gaps.abs().max() < EQUAL, "same")
        .mask(table["questions"] == 0, "apart")
    )
    table["needed"] = np.nan
    for name in table.index[(table["verdict"] == "inconclusive") & table["p"].notna()]:
        needed = np.ceil(metrics.questions_needed(gaps[name], clusters=clusters, bounds=bounds))
        table.loc[name, "needed"] = np.clip(needed, table.loc[name, "questions"] + 1, MOST)
    sentences = [_sentence(name, against, row) for name, row in table.iterrows()]
    return table.assign(sentence=sentences)


def _sentence(name: Any, against: str, row: "pd.Series[Any]") -> str:
    """Say what came of one comparison."""
    verdict = row["verdict"]
    if verdict == "inconclusive" and np.isnan(row["needed"]):
        verdict = "unplanned"
    both = counted(row["questions"], "question")
    if against != CONSTANT:
        both += " that both have"
    decimals = decimals_of(row["questions"])
    estimate, low, high = row["estimate"], row["low"], row["high"]
    return SENTENCES[verdict].format(
        file=name,
        rival=against,
        both=both,
        gain=spell(estimate, low, high, decimals),
        loss=spell(-estimate, -high, -low, decimals),
        needed=row["needed"],
    )


def in_words(name: str, table: pd.DataFrame, scores: pd.DataFrame) -> str:
    """Say in a sentence what a file's score says."""
    value = scores["value"]
    if len(table) < 2:
        return SENTENCES["one question"]
    if "best constant" not in value:
        return SENTENCES["one sample"]
    known = table[table["total"] > 1]
    flat = len(known) >= FEWEST and value["best constant"] <= 0
    if "confidence" not in table:
        return SENTENCES["no spread"] if flat else _words_on_counts(scores)
    columns = {name: question_terms(table["confidence"], known), CONSTANT: _constant(known)}
    found = _compare(pd.DataFrame(columns), CONSTANT, known.get("cluster"), _bounds(known)).iloc[0]
    if flat and found["verdict"] == "inconclusive":
        return SENTENCES["no spread"]
    return str(found["sentence"])


def _words_on_counts(scores: pd.DataFrame) -> str:
    """Say what counts without confidences say."""
    value = scores["value"]
    questions = scores["questions"]["best constant"]
    if questions < FEWEST:
        return SENTENCES["few counts"].format(questions=counted(questions, "question"))
    decimals = decimals_of(questions)
    return SENTENCES["no confidence"].format(
        noise=value["noise"],
        constant=f"{value['best constant']:z.{decimals}f}",
        accuracy=f"{value['accuracy']:.2f}",
    )


def spell_scores(scores: pd.DataFrame) -> "pd.Series[str]":
    """Spell each score with its interval, with as many decimals as the number of questions is
    worth; what rests on fewer questions than the file has says so.
    """
    most = scores["questions"].max()
    texts = {}
    for name, questions in scores["questions"].items():
        text = spell_score(scores, str(name))
        texts[name] = text if questions == most else f"{text} on {counted(questions, 'question')}"
    return pd.Series(texts).rename_axis("metric")


def spell_score(scores: pd.DataFrame, metric: str) -> str:
    """Spell a row of :func:`score_table`."""
    row: Any = scores.loc[metric]
    if isinstance(row["value"], int):
        return f"{row['value']:,}"
    return spell(row["value"], row["low"], row["high"], decimals_of(row["questions"]))


def summarize(scores: pd.DataFrame) -> "pd.Series[str]":
    """Spell what matters most of scores: seven rows, or fewer where something is not known.

    Counts alone have pass@k and the noise; single samples the Brier score of responses."""
    texts = spell_scores(scores)
    texts[SIZES] = f"{texts['questions']}, {texts['scored samples']}"
    names = [SIZES, *SUMMARY]
    if "miscalibration" in texts:
        parts = spell_score(scores, "miscalibration"), texts["discrimination"]
        texts[SPLIT] = ", ".join(parts)
        if CORRECTED not in texts:
            names.insert(2, RESPONSE)
    else:
        names[2:2] = [*texts.filter(regex="^pass@").index[-1:], "noise"]
    return texts[[name for name in names if name in texts]]


def decimals_of(questions: int) -> int:
    """Return how many decimals of a mean over questions say anything: two of fewer than ten, three
    below a thousand, then four.

    >>> [decimals_of(number) for number in (3, 60, 999, 5000)]
    [2, 3, 3, 4]
    """
    if questions < FEWEST:
        return 2
    return 3 if questions < 1000 else 4
