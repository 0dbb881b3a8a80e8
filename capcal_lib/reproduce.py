"""Everything that one model needs for its row of the main table: as a plan with its cost, and its
execution.

For each data set: samples of the evaluation split, their verdicts, the two confidences that ask the
model, and hidden states; of the training split samples, verdicts and hidden states, which probes
are trained on. Every step takes up what is there, so a second call after a stop goes on, and the
engine is opened once for all of them."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from capcal_lib.confidence.consistency import mean_tokens
from capcal_lib.confidence.of_run import TITLES, confidence_file, estimate
from capcal_lib.errors import InputError, unknown
from capcal_lib.grading.verdicts import grade_run
from capcal_lib.manifests import dataset_names, load_dataset, load_model
from capcal_lib.metrics.validation import check_int
from capcal_lib.probes import predict
from capcal_lib.probes.features import FEATURES, extract
from capcal_lib.questions import load_questions
from capcal_lib.reported import load_reported
from capcal_lib.results import load_results, score
from capcal_lib.results.results import ORACLE_CC, ORACLE_RC, UNIFORM
from capcal_lib.runs.store import KEY, find_run, list_fitting, read_samples
from capcal_lib.sampling.draw import Progress, sample
from capcal_lib.sampling.engines import check_engine, engine_name, engines_stay_open, open_engine

STEPS = ("samples", "verbalized", "p-true", "hidden states")  # that need the model; verdicts do not
CALIBRATION = 16, 24  # questions, and at most so many samples of each
TOKENS = {
    "verbalized": 10.0,
    "p-true": 1.0,
    "hidden states": 0.0,
}  # an answer, where nothing is known


class Sizes(NamedTuple):
    """Samples a question that define mu_hat, that vote, and that a probe learns from."""

    k_eval: int
    k_c: int
    k_train: int


RECIPES = {
    "lean": Sizes(10, 10, 4),  # corrected scores of 10 samples do nearly the work of 100
    "paper": Sizes(100, 10, 10),
}


def paper_datasets() -> list[str]:
    """List the data sets that are those of the paper's tables."""
    return [name for name in dataset_names() if load_dataset(name).reported_as]


def make_plan(
    model: str,
    *,
    store: Path,
    datasets: Iterable[str] | None = None,
    recipe: str = "lean",
    limit: int | None = None,
    engine: str | None = None,
    seed: int = 0,
) -> pd.DataFrame:
    """Plan what reproducing a model takes that the store does not have yet; nothing is drawn.

    `InputError` for unknown names or a limit below 1. No engine is opened, and none has to be here.

    ``datasets`` are names, and None takes the seven of the paper; ``recipe`` is one of ``RECIPES``;
    ``limit`` takes at most so many questions of each split. Returns one row a step that needs the
    model: ``dataset``, ``split``, ``step``, ``questions``, requests for ``each``, ``requests`` that
    are lacking, ``tokens`` that they write, and the ``basis`` of that number: measured in this
    store, read off the paper's figures, or at most (the model's limit)."""
    engine_name(load_model(model), engine)
    if limit is not None:
        check_int("limit", limit, least=1)
    if recipe not in RECIPES:
        raise unknown("recipe", recipe, RECIPES)
    rows = []
    for dataset, split, k, steps in _splits(
        paper_datasets() if datasets is None else datasets, RECIPES[recipe]
    ):
        rows_there = load_dataset(dataset).splits[split].rows or len(load_questions(dataset, split))
        questions = min(limit or rows_there, rows_there)
        place = store, model, dataset, split, f"seed={seed}"
        run = find_run(*place) if list_fitting(*place) else None
        for step in steps:
            each = k if step == "samples" else 1
            requests = questions * each - min(questions * each, _there(run, step, each))
            length, basis = _tokens(model, dataset, run, step)
            rows.append(
                (dataset, split, step, questions, each, requests, round(requests * length), basis)
            )
    rows.sort(
        key=lambda row: row[2] == "hidden states"
    )  # last, for vLLM is opened anew for them, and is slower then
    columns = ["dataset", "split", "step", "questions", "each", "requests", "tokens", "basis"]
    return pd.DataFrame(rows, columns=columns)


def time_requests(
    model: str, plan: pd.DataFrame, *, engine: str | None = None, seed: int = 0
) -> pd.DataFrame:
    """Estimate what a plan takes, by carrying out a small part of it in a store that is thrown
    away.

    Returns the plan with ``tokens`` as measured, ``bytes`` of disk, and ``seconds``, the first
    step's with those that loading the model takes."""
    timed, (questions, most), kept = plan.assign(bytes=0.0, seconds=0.0), CALIBRATION, 0
    with TemporaryDirectory() as folder, engines_stay_open():
        started = time.monotonic()
        open_engine(load_model(model), engine)
        loading = time.monotonic() - started
        for place, row in plan.to_dict("index").items():
            limit, k = min(questions, row["questions"]), min(most, row["each"])
            started = time.monotonic()
            run = _do(Path(folder), model, row, k=k, limit=limit, engine=engine, seed=seed)
            share = row["requests"] / (limit * k)
            seconds, loading = loading + (time.monotonic() - started) * share, 0.0
            size = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
            timed.loc[place, ["bytes", "seconds"]], kept = (
                [round((size - kept) * share), seconds],
                size,
            )
            if row["step"] == "samples":
                timed.loc[place, ["tokens", "basis"]] = [
                    round(mean_tokens(run) * row["requests"]),
                    "measured",
                ]
    return timed


def reproduce(
    model: str,
    *,
    store: Path,
    datasets: Sequence[str] | None = None,
    recipe: str = "lean",
    limit: int | None = None,
    engine: str | None = None,
    seed: int = 0,
    verdicts: str = "rules",
    progress: Progress | None = None,
) -> pd.DataFrame:
    """Carry out what :func:`make_plan` plans, and return it as :func:`beside_printed` does.

    ``verdicts`` are whose are scored, as for ``load_results``; ``progress`` is called with the
    requests done and to do. `InputError` as the plan, and where a step fails; what was done is
    kept."""
    check_engine(load_model(model), engine)
    names = list(paper_datasets() if datasets is None else datasets)
    plan = make_plan(
        model, store=store, datasets=names, recipe=recipe, limit=limit, engine=engine, seed=seed
    )
    sizes, total, done = RECIPES[recipe], int(plan["requests"].sum()), 0
    with engines_stay_open():
        for row in plan.to_dict("records"):
            _do(store, model, row, k=row["each"], limit=limit, engine=engine, seed=seed)
            done += row["requests"]
            if progress:
                progress(done, total)
    asked: dict[str, Any] = {
        "datasets": names,
        "k_eval": sizes.k_eval,
        "k_c": sizes.k_c,
        "run": f"seed={seed}",
    }
    return beside_printed(store, model, **asked, verdicts=verdicts)


def beside_printed(
    store: Path,
    model: str,
    *,
    datasets: Iterable[str] | None = None,
    k_eval: int = 100,
    k_c: int = 10,
    verdicts: str = "rules",
    run: str | None = None,
) -> pd.DataFrame:
    """Set measured scores beside the paper's printed ones.

    Returns a table indexed by (dataset, method): the corrected score ``measured`` with its interval
    ``low`` to ``high``; ``printed``, less the noise of 100 samples that the plug-in score holds;
    their ``difference``; and whether the printed one lies ``within`` the interval. NaN and missing
    where the paper prints nothing."""
    asked: dict[str, Any] = {"verdicts": verdicts, "run": run}
    results = load_results(store, model, datasets=datasets, k_eval=k_eval, k_c=k_c, **asked)
    results = results.join(
        predict(store, model, datasets=list(results.index.unique("dataset")), **asked)
    )
    table = score(results)[["brier", "low", "high"]].rename(columns={"brier": "measured"})
    main = load_reported("main").query("model == @model")
    known = dict(zip(zip(main["dataset"], main["method"], strict=True), main["value"], strict=True))
    printed = []
    for dataset, method in table.index.tolist():
        name = load_dataset(dataset).reported_as
        noise = (
            1 / 3 - known.get((name, UNIFORM), np.nan)
        ) / 99  # mean of mu_hat (1 - mu_hat), over 100 - 1 samples
        sign = {UNIFORM: -1, ORACLE_RC: -1, ORACLE_CC: 0}.get(method, 1)
        printed.append(known.get((name, method), np.nan) - sign * noise)
    table["printed"] = printed
    table["difference"] = table["measured"] - table["printed"]
    within = (table["low"] <= table["printed"]) & (table["printed"] <= table["high"])
    table["within"] = within.astype("boolean").mask(table["printed"].isna())
    return table


def _splits(datasets: Iterable[str], sizes: Sizes) -> Iterator[tuple[str, str, int, Sequence[str]]]:
    """Yield (data set, split, samples a question, steps): the evaluation split, and the one that
    probes learn from.
    """
    for name in datasets:
        evaluation, training = (
            load_dataset(name).evaluation_split,
            load_dataset(name).training_split,
        )
        yield name, evaluation, sizes.k_eval + sizes.k_c, STEPS
        if training not in (None, evaluation):
            yield name, str(training), sizes.k_train, ("samples", "hidden states")


def _do(
    store: Path,
    model: str,
    row: Mapping[Any, Any],
    *,
    k: int,
    limit: int | None,
    engine: str | None,
    seed: int,
) -> Path:
    """Carry out a step of a plan, as far as it is not done, and return its run."""
    dataset, split = row["dataset"], row["split"]
    if row["step"] != "samples":
        run = find_run(store, model, dataset, split, f"seed={seed}")
        if row["step"] == "hidden states":
            extract(run, engine=engine)
        elif not estimate(run, row["step"], engine=engine).tokens.all():
            raise InputError(
                f"{row['step']} confidences of {model} on {dataset} failed; the same command asks "
                "again"
            )
        return run
    drawn = sample(
        model, dataset, split=split, k=k, store=store, limit=limit, engine=engine, seed=seed
    )
    grade_run(drawn.folder)
    if drawn.failed:
        reason, number = max(drawn.failed.items(), key=lambda item: item[1])
        raise InputError(
            f"{sum(drawn.failed.values())} samples of {model} on {dataset} ({split}) failed, "
            f"{number} of them for: "
            f"{reason}; the same command tries them again"
        )
    return drawn.folder


def _there(run: Path | None, step: str, each: int) -> int:
    """Return how many requests of a step are done, as far as files tell."""
    if run is None:
        return 0
    if step == "samples":
        return int((read_samples(run, KEY)["sample_index"] < each).sum())
    path = run / FEATURES if step == "hidden states" else confidence_file(run, step)
    import pyarrow.parquet as pq

    return int(pq.read_metadata(path).num_rows) if path.exists() else 0


def _tokens(model: str, dataset: str, run: Path | None, step: str) -> tuple[float, str]:
    """Return the mean tokens of a reply as far as they are known, and how."""
    if step == "samples" and run is not None and len(read_samples(run, KEY)):
        return mean_tokens(run), "measured"
    read = load_reported("tokens", source="reference code").set_index(
        ["model", "dataset", "method"]
    )
    key = (
        model,
        load_dataset(dataset).reported_as or dataset,
        {"samples": "Response", **TITLES}.get(step),
    )
    if key in (known := read["value"].to_dict()):
        return float(known[key]), "read off"
    if step == "samples":
        return float(load_model(model).for_dataset(dataset).sampling.max_tokens), "at most"
    return TOKENS[step], ""
