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
from capcal_lib.errors import InputError, counted, sanitize
from capcal_lib.grading.core import grade_many
from capcal_lib.questions import NOT_STATED, Answer, plain_head, stream_rows
from capcal_lib.results.logs import kind_of, read_log

COUNTS = ["correct", "total"]
NUMBERS = ["confidence", *COUNTS]
POWERS = (2, 4, 8, 16, 32, 64)  # the k of pass@k, as far as ten questions have samples, or all
MOST = 1_000_000  # questions, more of which are not counted
EQUAL = 1e-9  # confidences of two files are the same, but for rounding
CORRECTED = "capability Brier, corrected"
PLUG_IN = "capability Brier, plug-in"
ECE = "ECE, ten bins, corrected"
CONSTANT = "the best constant"
Z = 1.96 + 0.84  # a difference is found by a 95 % interval in four of five studies
MISSING = {"", "nan", "none", "null", "na", "n/a"}
BEST = "may be best: no other is significantly better on questions that both have"
SENTENCES = {
    "better": "{file} is better than {rival} by {gain}, on {both}",
    "worse": "{rival} is better than {file} by {loss}, on {both}",
    "inconclusive": "these data cannot separate {file} and {rival} ({gain}, on {both}): "
    "about {needed:,.0f} questions or more would",
    "same": "{file} and {rival} have the same confidences, or accuracies, on {both}",
    "apart": "{file} and {rival} ask different questions: not compared",
    "one question": "one question says nothing of others: scores and intervals take two or more",
    "one sample": "with one scored sample a question, questions that differ and the noise of "
    "sampling cannot be told apart: draw two or more of each",
    "no confidence": "{0[noise]:.0%} of the spread over questions is noise of sampling; a "
    "confidence has to beat {0[best constant]:z.3f}, the score of always saying {0[accuracy]:.2f}",
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
    "miscalibration": "what recalibration can remove of the score",
    "discrimination": "how far confidences tell questions apart; higher is better",
    "ECE, ten bins": "the mean distance of confidence and mu_hat in ten bins; corrected for noise, "
    "or plug-in, as it is usually reported",
    "may be best": "no other is significantly better on the questions that both have",
}


class Counted(NamedTuple):
    """What a file holds: a row a question, indexed by question_id, and how it was read.

    The table has ``correct``, ``total`` and ``confidence``; that of a log has the right answer,
    ``gold``, in place of a confidence, and its questions are those of one id and ``question``."""

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


def score_files(files: Sequence[Path], **options: Any) -> Scored:
    """Score files, and compare the others with the first.

    ``options`` are those of :func:`read_file`. `InputError` for whatever reading and comparing
    refuse."""
    notes: list[str] = []
    tables, scores, parts, shown = {}, {}, {}, {}
    for name in map(str, files):
        table, of_file = read_file(Path(name), **options)
        notes += [f"{name}: {note}" for note in of_file]
        tables[name] = table
        scores[name] = score_table(table)
        parts[name] = scores[name], table
        shown[name] = scores[name].apply(
            lambda row: spell_cell(row["value"]) if pd.isna(row["low"]) else spell(*row),
            axis="columns",
        )
    rival = str(files[0])
    rows = [pd.concat(scores, names=["file"]).reset_index()]
    if len(tables) == 1:
        above = [f"{rival}: 95 % intervals for questions like these"]
        below = [*notes, in_words(rival, table, scores[rival])]
        return Scored(above, scores[rival], below, rows, parts)
    found = compare_files(tables, rival)
    rows.append(found.rename_axis("file").reset_index().assign(against=rival))
    best = metrics.may_be_best(_terms(tables))
    notes.append(f"{' and '.join(filter(best.__contains__, tables))} {BEST}")
    overview = pd.concat(shown, axis="columns").fillna("")
    return Scored([], overview, [*notes, *found["sentence"]], rows, parts)


def read_file(
    path: Path, *, key: Path | None = None, drop_missing: bool = False, **of_log: Any
) -> Counted:
    """Read what is to be scored: :func:`read_confidences`, or :func:`read_counts` of a log."""
    if key is None and str(path) != "-":
        is_log = path.suffix == ".eval" or isdir(path)
        heads = [] if is_log else next(stream_rows(path), NUMBERS)
        if {*map(plain_head, heads)}.isdisjoint(NUMBERS):
            return read_counts(path, **of_log)
    return read_confidences(path, key=key, drop_missing=drop_missing)


def read_counts(path: Path, *, scorer: str | None = None, regrade: bool = False) -> Counted:
    """Count the verdicts of a log, see :func:`~capcal_lib.results.logs.read_log`, or those of the
    rules where it has none.

    `InputError` where no sample of it has a verdict."""
    samples, items, judged, notes = read_log([path], scorer=scorer, regrade=regrade)
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


def read_confidences(path: Path, *, key: Path | None = None, drop_missing: bool = False) -> Counted:
    """Read and check confidences and counts: a row a question, indexed by question_id as it is
    written.

    The file is one of :func:`~capcal_lib.questions.stream_rows`; heads may be in capitals and with
    spaces, confidences percentages with their sign; without a ``total`` each row is one sample, and
    those of one question and confidence are counted. The counts are those of a ``key`` where one is
    given. Rows without a confidence are left out with ``drop_missing``. Notes say so.

    `InputError` for a file that cannot be read, columns that are missing (those found are listed),
    or a value that is not allowed; the row is named by its place and id.
    """
    notes: list[str] = []
    columns = ["question_id", "confidence"]
    if key is None:
        table = _read_texts(path, [*columns, "correct"])
    else:
        kept = ["question_id", *COUNTS]
        counts = _read_texts(key, kept)[kept].drop_duplicates("question_id")
        table = _read_texts(path, columns)[columns].merge(counts, "left")
        notes.append(f"counts of {key}: {len(table)} of its {counted(len(counts), 'question')}")
    twice = table.duplicated("question_id")
    if "total" not in table:
        table["total"] = "1"
        twice &= ~table.duplicated(columns)
        questions = counted(table["question_id"].nunique(), "question")
        notes.append(f"no total: {counted(len(table), 'row')} counted as samples of {questions}")
    missing = table["confidence"].str.lower().isin(MISSING)
    few = f"{missing.sum()} of {counted(len(table), 'question')}"
    if drop_missing:
        notes.append(f"{few} without a confidence left out")
        table = table[~missing]
    if table.empty:
        raise InputError(f"{path}: no question has a confidence")
    cells = table["confidence"]
    plain = table[NUMBERS].apply(lambda column: column.str.lower())
    plain = plain.replace({"false": "0", "true": "1"})
    plain["confidence"] = cells.str.replace(",", ".").str.rstrip("% ")  # decimal commas
    numbers = plain.apply(pd.to_numeric, errors="coerce")
    numbers["confidence"] /= cells.str.endswith("%").map({True: 100, False: 1})
    confidence, correct, total = (numbers[name] for name in NUMBERS)
    whole = (numbers[COUNTS] % 1 == 0).all(axis="columns")
    rules = {
        f"has no confidence, as {few}; --drop-missing leaves them out": missing[table.index],
        "has no question_id": table["question_id"] == "",
        "stands in two rows; give its counts in one": twice[table.index],
        f"is not in the key {key}": table["total"].isna(),
        "has a confidence outside [0, 1]; divide percentages by 100": ~confidence.between(0, 1),
        "needs whole counts, of 1 scored sample or more and no more correct ones": ~(
            whole & (total >= 1) & correct.between(0, total)
        ),
    }
    for rule, wrong in rules.items():
        for place, row in table[wrong].iterrows():
            name, values = sanitize(row["question_id"], 80), sanitize(row[NUMBERS].to_dict())
            raise InputError(f"{path}, row {place}: question {name!r} {rule}: {values}")
    sums = {"confidence": "first", "correct": "sum", "total": "sum"}
    found = numbers.groupby(table["question_id"], sort=False).agg(sums)
    found = found.astype(dict.fromkeys(COUNTS, np.int64))
    if single := (found["total"] == 1).sum():
        notes.append(f"no corrected score of {counted(single, 'question')}: one scored sample")
    infinite = found["confidence"].isin([0, 1])
    infinite &= found["correct"] / found["total"] != found["confidence"]
    if sure := infinite.sum():
        notes.append(
            f"log loss is infinite: {counted(sure, 'question')} with a confidence of 0 or 1 and "
            "samples to the contrary"
        )
    return Counted(found, notes)


def _read_texts(path: Path, columns: list[str]) -> pd.DataFrame:
    """Read a table as it is written, every cell a text; the index is the row."""
    table = pd.DataFrame(stream_rows(path), dtype=object).fillna("")
    if table.empty:
        raise InputError(f"{path}: there are no rows")
    heads = {plain_head(name): name for name in ("question_id", *NUMBERS)}
    names = [heads.get(plain_head(head), head) for head in map(str, table)]
    if not {*columns} <= {*names} or len({*names}) < len(names):
        found = sanitize(", ".join(names))
        raise InputError(
            f"{path}: one column each is needed of {', '.join(columns)}; found: {found}"
        )
    return table.set_axis(names, axis="columns").map(lambda cell: str(cell).strip())


def score_table(table: pd.DataFrame) -> pd.DataFrame:
    """Score what a file holds: confidences, or counts alone.

    Returns a table indexed by ``metric``: its ``value`` and, where there is one, the 95 % interval
    ``low`` to ``high`` for questions like these. ``noise`` is the share of the variance of mu_hat
    over questions that comes from few samples, and not from questions that differ; ``best
    constant`` is the corrected score of always saying the mean of the other questions, which a
    confidence has to beat. The corrected scores are those of the questions with two scored samples
    or more."""
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
            scores[f"pass@{k}"] = pass_at_k(counts[0], counts[1], k)[:, 0]
    scores["noise"] = 1.0 if spread <= floor else floor / spread
    scores["best constant"] = constant
    if corrected:
        scores["uniform random"] = metrics.uniform_baseline_brier_terms(
            *known[COUNTS].to_numpy().T, corrected=True
        )
    bounds = {"uniform random": (1 / 12, 1 / 3), "gain over the best constant": (-1, 1)}
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
            "expected response Brier": metrics.expected_response_brier(*triple),
            "correctness variance": metrics.correctness_variance(*counts) if corrected else None,
            "log loss": loss if np.isfinite(loss).all() else np.inf,
            "ECE, ten bins, plug-in": metrics.binned_ece(*triple, corrected=False),
            ECE: metrics.binned_ece(*triple),
            "smooth ECE, plug-in": metrics.smooth_ece(*triple),
            "AUROC": metrics.soft_auroc(*triple),
            "Spearman with mu_hat": metrics.spearman(*triple),
        }
    rows = [
        metrics.mean_interval(terms, bounds=bounds.get(name, (0, 1)))
        if np.ndim(terms)
        else (terms, np.nan, np.nan)
        for name, terms in scores.items()
    ]
    table = pd.DataFrame(rows, [*scores], ["value", "low", "high"], dtype=object)
    return table.rename_axis("metric").dropna(subset="value")


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
    file is better, ``p`` and ``verdict`` as from :func:`~capcal_lib.metrics.gains`, or ``same`` or
    ``apart``; the number of ``questions`` that both have and of those ``needed``; a ``sentence``.

    `InputError` where confidences stand beside logs, and where two files count a question
    differently, or give it another answer."""
    kinds = {"confidence" in table for table in tables.values()}
    if len(kinds) > 1:
        raise InputError("logs without confidences are not compared with files that have them")
    same = COUNTS if True in kinds else ["gold"]
    facts = pd.concat(table[same] for table in tables.values())
    unlike = facts[~facts.reset_index().duplicated().to_numpy()].index
    for question in unlike[unlike.duplicated()].get_level_values(0):
        what = f"other {' and '.join(same)} in one file than in another"
        raise InputError(f"question {sanitize(question, 80)!r} has {what}")
    return _compare(_terms(tables), against)


def _compare(terms: pd.DataFrame, against: str) -> pd.DataFrame:
    """Test and say by how much each column is better than another."""
    table = metrics.gains(terms, against)
    gaps = terms[table.index].rsub(terms[against], axis="index")
    table["questions"] = gaps.count()
    table["verdict"] = (
        table["verdict"]
        .mask(gaps.abs().max() < EQUAL, "same")
        .mask(table["questions"] == 0, "apart")
    )
    needed = np.ceil((Z * gaps.std() / gaps.mean()) ** 2)
    table["needed"] = np.clip(needed, table["questions"] + 1, MOST)
    sentences = [
        SENTENCES[row["verdict"]].format(
            file=name,
            rival=against,
            both=counted(row["questions"], "question") + " that both have" * (against != CONSTANT),
            gain=spell(*row[["estimate", "low", "high"]]),
            loss=spell(*-row[["estimate", "high", "low"]]),
            needed=row["needed"],
        )
        for name, row in table.iterrows()
    ]
    return table.assign(sentence=sentences)


def in_words(name: str, table: pd.DataFrame, scores: pd.DataFrame) -> str:
    """Say in a sentence what a file's score says."""
    value = scores["value"]
    if len(table) < 2:
        return SENTENCES["one question"]
    if "best constant" not in value:
        return SENTENCES["one sample"]
    if "confidence" not in table:
        return SENTENCES["no confidence"].format(value)
    columns = {name: question_terms(table["confidence"], table), CONSTANT: _constant(table)}
    return str(_compare(pd.DataFrame(columns), CONSTANT)["sentence"].iloc[0])


def spell(estimate: float, low: float, high: float) -> str:
    """Spell an estimate with its interval.

    >>> spell(0.25, -0.0001, 0.5)
    '0.250 [0.000, 0.500]'
    """
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
