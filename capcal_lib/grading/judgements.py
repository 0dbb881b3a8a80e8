"""The judgements of a run: each distinct short or mathematical answer judged once by a model,
beside the verdicts.

``judgements.parquet`` holds those of all judges, each row with what decides it: the judge, its
weights, its engine and the digest of the prompt. The verdicts of the rules stay what every page
counts, unless it asks for a judge's by name."""

from collections import Counter
from typing import Any, NamedTuple

import pandas as pd
import pyarrow as pa

from capcal_lib.errors import InputError, unknown
from capcal_lib.grading.judge import JUDGED, judge, judge_prompt_digest
from capcal_lib.grading.verdicts import kinds_of, read_verdicts, run_questions
from capcal_lib.manifests import load_model
from capcal_lib.questions import NOT_STATED
from capcal_lib.runs.artifacts import JUDGEMENTS, VERDICTS
from capcal_lib.runs.files import gather, hold
from capcal_lib.runs.run import Run
from capcal_lib.sampling.draw import Progress
from capcal_lib.sampling.engines import engine_name, open_engine
from capcal_lib.sampling.weights import weights_digest

PAIR = ["question_id", "extracted"]


class Judged(NamedTuple):
    """What a call to ``judge_run`` did, in distinct answers."""

    new: int  # judged now
    present: int  # judged before
    failed: int  # to which the engine gave no reply; the next call asks again
    reason: str = ""  # why, most often


def judge_run(
    run: Run,
    judge_name: str,
    *,
    engine: str | None = None,
    progress: Progress | None = None,
    **server: Any,
) -> Judged:
    """Judge every distinct short or mathematical answer of a graded run that this judge has not
    judged yet.

    The answers that most samples gave come first, so that judging can be stopped at any time and
    taken up again. A judge's rows that were made with other weights, another engine or another
    prompt are replaced.

    ``judge_name`` is a model of the manifests, ``engine`` another than the one that stands there,
    ``server`` how `open_engine` asks one, and ``progress`` is called with the numbers of answers
    judged and to judge. `InputError` for an unknown model or engine, a run without verdicts,
    without such answers or without answers to compare with, or a corrupt file."""
    model = load_model(judge_name)
    questions = run_questions(run)
    if any(question.answer.gold == NOT_STATED for question in questions.values()):
        raise InputError(
            f"{run}: its verdicts came with the samples, without answers: there is nothing to "
            "compare with"
        )
    rows = _judged(run, read_verdicts(run))
    if rows.empty:
        dataset = run.identity.dataset
        raise InputError(f"a judge is for short and mathematical answers, and {dataset} has none")
    made_with = {
        "judge": model.name,
        "weights": weights_digest(model, engine),
        "engine": engine_name(model, engine),
        "prompt": judge_prompt_digest(questions[rows["question_id"].iloc[0]].answer.kind),
    }
    pairs = rows.groupby(PAIR).size().sort_values(ascending=False, kind="stable").index
    present = _current(run, made_with).query("judge == @model.name")
    lacking = pairs[~pairs.isin(pd.MultiIndex.from_frame(present[PAIR]))]
    if lacking.empty:
        return Judged(0, len(pairs), 0)
    cases = [(questions[name], extracted) for name, extracted in lacking]
    failed: list[str] = []
    new = 0
    for told in gather(judge(open_engine(model, engine, **server), model, cases, failed)):
        fresh = [
            made_with | dict(zip(PAIR, lacking[place], strict=True)) | judgement._asdict()
            for place, judgement in told
        ]
        with hold(run.folder):  # another judge may have written meanwhile, and the first stays
            both = pd.concat([_current(run, made_with), pd.DataFrame(fresh)])
            both = both.drop_duplicates([*JUDGEMENTS.key]).sort_values([*JUDGEMENTS.key])
            table = pa.Table.from_pandas(both, JUDGEMENTS.schema, preserve_index=False)
            run.write(JUDGEMENTS, table)
        new += len(told)
        if progress:
            progress(new, len(cases))
    reason = Counter(failed).most_common(1)[0][0] if failed else ""
    return Judged(new, len(pairs) - len(lacking), len(failed), reason)


def judges(run: Run) -> list[str]:
    """List the judges that a run has judgements of."""
    return sorted(_read(run)["judge"].unique())


def judge_progress(run: Run) -> dict[str, tuple[int, int]]:
    """Count of each judge of a run the distinct answers that it has judged, and those to judge."""
    known = _read(run)
    if known.empty or not run.has(VERDICTS):
        return {}
    wanted = _judged(run, read_verdicts(run))[PAIR].dropna().drop_duplicates()
    judged = known.merge(wanted)["judge"].value_counts()
    return {name: (int(judged.get(name, 0)), len(wanted)) for name in judges(run)}


def read_judgements(run: Run, judge_name: str) -> pd.DataFrame:
    """Read a judge's judgements: one row a distinct answer, with question_id, extracted, verdict
    and words.

    `InputError` where the judge has judged nothing of the run (those that have are named), or the
    file is corrupt."""
    table = _read(run)
    if judge_name not in set(table["judge"]):
        raise InputError(f"{unknown('judge', judge_name, judges(run))}; {_how(run, judge_name)}")
    rows = table.loc[table["judge"] == judge_name, [*PAIR, "verdict", "words"]]
    return rows.reset_index(drop=True)


def verdicts_by(run: Run, by: str = "rules") -> pd.DataFrame:
    """Read the verdicts of a run, as ``read_verdicts``, by the rules or by ``judge:MODEL``.

    A judge's are those of short and mathematical answers, its reason what it said; the rules' stay
    elsewhere, and where no answer was extracted.

    `InputError` for another word, or where the judge has not judged every such answer, with the
    command that does."""
    rows = read_verdicts(run)
    if by == "rules":
        return rows
    if not (judge_name := by.removeprefix("judge:")) or judge_name == by:
        raise InputError(
            f"verdicts are by 'rules' or by 'judge:MODEL', such as judge:gpt-oss-20b; got {by!r}"
        )
    judged = _judged(run, rows).dropna(subset="extracted")
    if judged.empty:
        return rows
    told = judged[PAIR].merge(read_judgements(run, judge_name), how="left").set_index(judged.index)
    if lacking := len(told[told["verdict"].isna()].drop_duplicates(PAIR)):
        raise InputError(
            f"{run}: {judge_name} has not judged {lacking} answers; {_how(run, judge_name)}"
        )
    rows.loc[told.index, "verdict"] = told["verdict"]
    rows.loc[told.index, "reason"] = "judge: " + told["words"]
    return rows


def _judged(run: Run, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of which a judge judges the answer, if there is one."""
    kinds = pd.Series(kinds_of(run, rows["question_id"].tolist()), rows.index, dtype=str)
    return rows[kinds.isin(JUDGED)]


def _read(run: Run) -> pd.DataFrame:
    table = run.read(JUDGEMENTS) if run.has(JUDGEMENTS) else JUDGEMENTS.schema.empty_table()
    return table.to_pandas()


def _current(run: Run, made_with: dict[str, str]) -> pd.DataFrame:
    """Read the judgements but for those that this judge has made in another way."""
    rows = _read(run)
    same = (rows[[*made_with]] == pd.Series(made_with)).all(axis=1)
    return rows[same | (rows["judge"] != made_with["judge"])]


def _how(run: Run, judge_name: str) -> str:
    return f"judge with: capcal judge {run.options} --judge {judge_name}"
