"""The judgements of a run: each distinct short or mathematical answer judged once by a model,
beside the verdicts.

``judgements.parquet`` holds the judgements of all judges; each row names the judge, its weights,
its engine and the digest of the prompt. Pages count the verdicts of the rules, unless they ask for
a judge by name."""

from collections import Counter
from typing import Any, NamedTuple

import pandas as pd

from capcal_lib.errors import InputError, check_known
from capcal_lib.grading.judge import JUDGED_KINDS, judge, judge_prompt_digest
from capcal_lib.grading.verdicts import kinds_of, read_verdicts, run_questions
from capcal_lib.manifests import load_model
from capcal_lib.questions import NOT_STATED
from capcal_lib.runs.artifacts import JUDGEMENTS, VERDICTS
from capcal_lib.runs.files import gather
from capcal_lib.runs.run import Run
from capcal_lib.sampling.draw import Progress
from capcal_lib.sampling.engines import engine_name, open_engine
from capcal_lib.sampling.weights import weights_digest
from capcal_lib.text import counted

PAIR = ["question_id", "extracted"]


class Judged(NamedTuple):
    """What a call to ``judge_run`` did, in distinct answers."""

    new: int  # judged now
    present: int  # judged before
    failed: Counter[str]  # to which the engine gave no reply, by reason; the next call asks again


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

    ``judge_name`` is the name of a model manifest, ``engine`` replaces the manifest's engine,
    ``server`` is passed to `open_engine`, and ``progress`` is called with the numbers of answers
    judged and to judge. `InputError` for an unknown model or engine, a run without verdicts,
    without such answers or without answers to compare with, or a corrupt file."""
    model = load_model(judge_name)
    questions = run_questions(run)
    golds = {one.answer.gold for one in questions.values() if one.answer.kind in JUDGED_KINDS}
    if not golds or NOT_STATED in golds:
        raise InputError(
            "a judge grades short and mathematical answers only, and "
            f"{run.identity.dataset} has none; use the verdicts of the rules"
        )
    answers = _answers(run, read_verdicts(run))
    wanted = answers.assign(
        judge=model.name,
        weights=weights_digest(model, engine),
        engine=engine_name(model, engine),
        prompt=answers["kind"].map({kind: judge_prompt_digest(kind) for kind in JUDGED_KINDS}),
    )
    rows = wanted.merge(_read(run), how="left")
    lacking = rows[rows["verdict"].isna()].to_dict("records")
    if not lacking:
        return Judged(0, len(answers), Counter())
    cases = [(questions[row["question_id"]], row["extracted"]) for row in lacking]
    failed: list[str] = []
    new = 0
    for judgements in gather(judge(open_engine(model, engine, **server), model, cases, failed)):
        fresh = [lacking[place] | judgement._asdict() for place, judgement in judgements]
        run.add(JUDGEMENTS, pd.DataFrame(fresh))
        new += len(judgements)
        if progress:
            progress(new, len(cases))
    return Judged(new, len(answers) - len(lacking), Counter(failed))


def judges(run: Run) -> list[str]:
    """List the judges whose judgements a run has."""
    return sorted(_read(run)["judge"].unique())


def judge_progress(run: Run) -> dict[str, tuple[int, int]]:
    """Count, for each judge of a run, the distinct answers judged and those to judge."""
    if not (run.has(JUDGEMENTS) and run.has(VERDICTS)):
        return {}
    answers = _answers(run, read_verdicts(run))[PAIR]
    judged = Counter(_read(run).merge(answers)["judge"])
    return {name: (number, len(answers)) for name, number in judged.items()}


def read_judgements(run: Run, judge_name: str) -> pd.DataFrame:
    """Read a judge's judgements: one row per distinct answer, with question_id, extracted, verdict
    and words.

    `InputError` if this judge has judged nothing of the run (it names those that have), or if the
    file is corrupt."""
    table = _read(run)
    rows = table.loc[table["judge"] == judge_name, [*PAIR, "verdict", "words"]]
    if rows.empty:
        check_known("judge", judge_name, {*table["judge"]}, _how(run, judge_name))
    return rows.reset_index(drop=True)


def judge_of(by: str) -> str | None:
    """Return the model named by ``judge:MODEL``, or None for ``rules``.

    `InputError` for another word.

    >>> judge_of("judge:gpt-oss-20b"), judge_of("rules")
    ('gpt-oss-20b', None)
    """
    if by == "rules":
        return None
    word, _, model = by.partition(":")
    if word != "judge" or not model:
        raise InputError(
            f"verdicts must be 'rules' or 'judge:MODEL', such as judge:gpt-oss-20b; got {by!r}"
        )
    return model


def verdicts_by(run: Run, by: str = "rules") -> pd.DataFrame:
    """Read the verdicts of a run, like ``read_verdicts``, from the rules or from ``judge:MODEL``.

    A judge's verdict replaces the rules' on short and mathematical answers, and its words become
    the reason. The rules' verdict stays on other answers, and if no answer was extracted.

    `InputError` for another word; or, with the command to give, if the judge has not judged every
    such answer."""
    rows = read_verdicts(run)
    judge_name = judge_of(by)
    if judge_name is None:
        return rows
    answers = _answers(run, rows)[PAIR]
    if answers.empty:
        return rows
    judgements = read_judgements(run, judge_name)
    if lacking := len(answers) - len(answers.merge(judgements)):
        raise InputError(
            f"{run}: {judge_name} has not judged {counted(lacking, 'answer')}; "
            f"{_how(run, judge_name)}"
        )
    judged = rows[PAIR].merge(judgements, how="left")
    rows["verdict"] = judged["verdict"].fillna(rows["verdict"])
    rows["reason"] = ("judge: " + judged["words"]).fillna(rows["reason"])
    return rows


def _answers(run: Run, rows: pd.DataFrame) -> pd.DataFrame:
    """List the distinct answers that a judge judges, among the verdicts of a run, with question_id,
    extracted and kind; those that most samples gave come first.
    """
    rows = rows.assign(kind=kinds_of(run, rows["question_id"]))
    sizes = rows[rows["kind"].isin(JUDGED_KINDS)].groupby([*PAIR, "kind"]).size()
    sizes = sizes.sort_values(ascending=False, kind="stable")
    return sizes.index.to_frame(index=False)


def _read(run: Run) -> pd.DataFrame:
    """Read the judgements of all judges, as they are kept; no row where there are none."""
    table = run.read(JUDGEMENTS) if run.has(JUDGEMENTS) else JUDGEMENTS.schema.empty_table()
    return table.to_pandas()


def _how(run: Run, judge_name: str) -> str:
    return f"judge with: capcal judge {run.options} --judge {judge_name}"
