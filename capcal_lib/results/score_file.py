"""Score one's own files: tables of question_id, confidence, correct, total, and logs of others as
they are.

A log of lm-evaluation-harness (``samples_*.jsonl``) or inspect_ai (``.eval``, ``.json``) has counts
and no confidences: it is scored by its accuracy, and says what a confidence would have to beat."""

import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from capcal_lib import metrics
from capcal_lib.applications import others_mean, pass_at_k
from capcal_lib.errors import InputError, sanitize
from capcal_lib.grading import grade_many
from capcal_lib.grading.counts import UNSCORED, accuracy_bounds, count_verdicts
from capcal_lib.grading.verdicts import NOT_STATED
from capcal_lib.metrics.intervals import variance_of_mean
from capcal_lib.metrics.validation import Floats
from capcal_lib.questions import Answer, stream_rows
from capcal_lib.results.logs import items_of, kind_of, read_log
from capcal_lib.results.scores import may_be_best

NUMBERS = ["confidence", "correct", "total"]
POWERS = (2, 4, 8, 16, 32, 64)  # the k of pass@k, as far as every question has samples
MOST = 1_000_000  # questions; where it takes more, no number is said
CORRECTED = "capability Brier, corrected"
PLUG_IN = "capability Brier, plug-in"
CONSTANT = "the best constant"
Z = 1.96 + 0.84  # a difference is found by a 95 % interval in four of five studies


@dataclass(frozen=True, slots=True)
class Counted:
    """What a file holds: a row a question, indexed by question_id, and what was left out of it.

    The table has ``correct``, ``total`` and ``confidence``; that of a log has the right answer,
    ``gold``, in place of a confidence."""

    table: pd.DataFrame
    notes: tuple[str, ...] = ()


def read_file(path: Path, *, scorer: str | None = None, regrade: bool = False) -> Counted:
    """Read what is to be scored, see :func:`read_confidences` and :func:`read_counts`."""
    rows = path.name.endswith((".json", ".jsonl", ".jsonl.gz", ".parquet"))
    if path.suffix == ".eval" or path.is_dir():
        return read_counts(path, scorer=scorer, regrade=regrade)
    if rows and "confidence" not in next(iter(stream_rows(path)), {"confidence": None}):
        return read_counts(path, scorer=scorer, regrade=regrade)
    table = read_confidences(path)
    single = int((table["total"] == 1).sum())
    note = f"{single} of {len(table)} questions have one scored sample: no corrected score"
    return Counted(table, (note,) * (single > 0))


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
    notes = list(log.notes)
    if not log.judged and len(scored) < len(samples):
        notes.append(f"{len(samples) - len(scored)} samples that could not be graded left out")
    if lost := len(items) - len(table):
        notes.append(f"{lost} questions without a scored sample left out")
    if (samples["verdict"] == "not_scored").mean() > UNSCORED:
        low, high = accuracy_bounds(count_verdicts(samples.assign(sample_index=0), k=1))
        notes.append(f"accuracy {low:.3f} if all not scored were wrong, {high:.3f} if right")
    return Counted(table, tuple(notes))


def read_confidences(path: Path) -> pd.DataFrame:
    """Read and check confidences and counts: a row a question, indexed by question_id as it is
    written.

    The file is JSONL or parquet by its name, else CSV; ``-`` is CSV from standard input.

    `InputError` for a file that cannot be read, columns that are missing (those found are listed),
    rows with too many fields, or a value that is not allowed; the row is named by its place and id.
    """
    table = _read_texts(path)
    missing = [name for name in ("question_id", *NUMBERS) if name not in table]
    if missing:
        found = sanitize(", ".join(map(str, table)))
        raise InputError(
            f"{path}: no column {', '.join(missing)}; needed: question_id, {', '.join(NUMBERS)}; "
            f"found: {found}"
        )
    if table.empty:
        raise InputError(f"{path}: there are no rows")
    numbers = table[NUMBERS].apply(pd.to_numeric, errors="coerce")
    for rule, wrong in _rules(table["question_id"], numbers).items():
        if wrong.any():
            raise _row_error(path, table, int(wrong.to_numpy().argmax()), rule)
    return numbers.astype({"correct": np.int64, "total": np.int64}).set_index(table["question_id"])


def _is_csv(path: Path) -> bool:
    return not path.name.endswith((".jsonl", ".jsonl.gz", ".parquet"))


def _read_texts(path: Path) -> pd.DataFrame:
    """Read a table as it is written, every cell a text."""
    try:
        if not _is_csv(path):
            return pd.DataFrame(stream_rows(path), dtype=object).fillna("").astype(str)
        source = sys.stdin if str(path) == "-" else path
        with warnings.catch_warnings():
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(source, dtype=str, keep_default_na=False, index_col=False)
    except pd.errors.ParserWarning:
        raise InputError(
            f"{path}: rows have more fields than the header; quote fields that hold a comma"
        ) from None
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = sanitize(str(error).splitlines()[0])
        raise InputError(f"{path}: cannot be read as CSV: {reason}") from None


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
        "has a confidence outside [0, 1]": ~confidence.between(0, 1),
        "has counts that are not whole numbers": ~whole | ~np.isfinite(total),
        "needs a scored sample (total of 1 or more)": total < 1,
        "has more correct samples than scored ones, or fewer than 0": ~correct.between(0, total),
    }


def _row_error(path: Path, table: pd.DataFrame, row: int, rule: str) -> InputError:
    """Build the error for a row: its place, its question, the rule, and what it says."""
    cells = table.iloc[row]
    values = ", ".join(f"{name} {sanitize(cells[name], 40)!r}" for name in NUMBERS)
    name = sanitize(cells["question_id"], 80)
    place = f"line {row + 2}" if _is_csv(path) else f"row {row}"
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
    scores["ECE, ten bins"] = metrics.binned_ece(*triple)
    scores["smooth ECE"] = metrics.smooth_ece(*triple)
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
    for name in tables:
        if name != against:
            _check_pair(tables, name, against, same=["gold"] if logs else ["correct", "total"])
    return _gains(pd.DataFrame({name: _terms(table) for name, table in tables.items()}), against)


def _gains(terms: pd.DataFrame, against: str) -> pd.DataFrame:
    found = metrics.gains(terms, against)
    differences = [(terms[against] - terms[name]).dropna().to_numpy() for name in found.index]
    return found.assign(
        questions=[len(each) for each in differences],
        needed=[_needed(each) for each in differences],
    )


def overview(
    tables: Mapping[str, pd.DataFrame], scores: Mapping[str, pd.DataFrame]
) -> pd.DataFrame:
    """Put the scores of files side by side, a row a file, with the interval of the Brier score, or
    of the accuracy of logs.

    ``may be best`` says that no other file is significantly better on the questions that both
    have."""
    rows = {}
    for name, known in scores.items():
        value = known["value"]
        brier = CORRECTED if CORRECTED in known.index else PLUG_IN
        shown = brier if brier in known.index else "accuracy"  # a log has no Brier score
        rows[name] = {
            "questions": value["questions"],
            "accuracy": value["accuracy"],
            "Brier": value.get(brier),
            "low": known["low"][shown],
            "high": known["high"][shown],
            "log loss": value.get("log loss"),
            "ECE, ten bins": value.get("ECE, ten bins"),
            "AUROC": value.get("AUROC"),
        }
    best = may_be_best(pd.DataFrame({name: _terms(table) for name, table in tables.items()}))
    table = pd.DataFrame.from_dict(rows, orient="index").dropna(axis="columns", how="all")
    return table.assign(**{"may be best": [name in best for name in tables]})


def report_parts(
    tables: Mapping[str, pd.DataFrame], scores: Mapping[str, pd.DataFrame]
) -> dict[str, tuple[pd.DataFrame, pd.DataFrame]]:
    """Return scores and questions as a report takes them: confidences of several files together."""
    if len(tables) == 1 or any("confidence" not in table for table in tables.values()):
        return {
            name: (scores[name], table.drop(columns="gold", errors="ignore"))
            for name, table in tables.items()
        }
    counts = pd.concat([table[["correct", "total"]] for table in tables.values()])
    questions = counts[~counts.index.duplicated()]
    said = {name: table["confidence"] for name, table in tables.items()}
    return {" and ".join(tables): (overview(tables, scores), questions.assign(**said))}


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
            f"has to beat {value['best constant']:.3f}, the score of always saying "
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
    return f"{estimate:.3f} [{low:z.3f}, {high:z.3f}]"


def _check_pair(
    tables: Mapping[str, pd.DataFrame], name: str, against: str, same: list[str]
) -> None:
    """Refuse files that have no question in common, or whose questions are not the same."""
    common = tables[name].index.intersection(tables[against].index)
    if common.empty:
        raise InputError(f"{sanitize(name)} and {sanitize(against)} have no question_id in common")
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
