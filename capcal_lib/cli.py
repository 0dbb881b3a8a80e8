"""The ``capcal`` command."""

import os
import shlex
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn, cast, get_args

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from capcal_lib.errors import InputError, unknown
from capcal_lib.manifests import LOCAL_RUNS, OWN_MANIFESTS

SECONDS_BETWEEN_LINES = 10.0
STOPPED = 130  # the exit status of a command that Ctrl-C ended
COLUMNS_IN_A_FILE = 160

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Capability calibration: sample, grade, estimate confidence, score.",
)
out = Console(width=None if sys.stdout.isatty() else COLUMNS_IN_A_FILE)
err = Console(stderr=True)

ModelName = Annotated[str, typer.Option("--model", help="A model of `capcal models`.")]
DatasetName = Annotated[str, typer.Option("--dataset", help="A data set of `capcal datasets`.")]
SplitName = Annotated[str | None, typer.Option("--split", help="Default: the data set's evaluation split.")]
Store = Annotated[Path, typer.Option("--store", help="Folder of the run store.")]
Engine = Annotated[str | None, typer.Option("--engine", help="Default: the engine of the model's manifest.")]
Seed = Annotated[int, typer.Option("--seed", help="Decides the rows; another seed is another run.")]


@app.callback()
def options(
    manifests: Annotated[
        Path | None, typer.Option("--manifests", metavar="DIR", help="Your own models/, datasets/ and prompts/.")
    ] = None,
) -> None:
    if manifests:
        os.environ[OWN_MANIFESTS] = str(manifests.absolute())


@app.command()
def sample(
    model: ModelName,
    dataset: DatasetName,
    k: Annotated[int, typer.Option("--k", help="Samples a question.")],
    split: SplitName = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Only a random subset, the same each time.")] = None,
    precision: Annotated[
        float | None,
        typer.Option("--precision", help="Stop a question once its 95 % interval reaches this far to either side."),
    ] = None,
    engine: Engine = None,
    store: Store = LOCAL_RUNS,
    seed: Seed = 0,
) -> None:
    """Draw the samples that the store lacks. Stop it at any time; the same command goes on."""
    from capcal_lib.grading.adaptive import sample_until
    from capcal_lib.sampling.draw import sample as draw

    def say(line: str) -> None:
        out.print(line, markup=False, highlight=False, soft_wrap=True)

    with _progress(f"{model} on {dataset}") as progress:
        settings = {"split": split, "limit": limit, "engine": engine, "seed": seed, "progress": progress, "say": say}
        if precision is None:
            drawn = draw(model, dataset, k=k, store=store, **settings)
            done = f"{drawn.new} samples drawn, {drawn.present} were there"
            folder, failed = drawn.folder, drawn.failed
        else:
            stopped = sample_until(model, dataset, k=k, precision=precision, store=store, **settings)
            most = stopped.questions * k
            done = (
                f"{stopped.new} samples drawn; {stopped.early} of {stopped.questions} questions stopped before {k}, "
                f"which saved {stopped.saved} of {most} samples ({stopped.saved / most:.0%})"
            )
            folder, failed = stopped.folder, stopped.failed
    say(f"{done}; {folder}")
    if failed:
        err.print(f"capcal: {sum(failed.values())} samples failed; the same command tries them again")
        for reason, number in sorted(failed.items(), key=lambda item: -item[1]):
            err.print(f"{number} failed: {reason}", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1)


@app.command()
def grade(
    model: ModelName,
    dataset: DatasetName,
    split: SplitName = None,
    store: Store = LOCAL_RUNS,
    audit: Annotated[
        Path | None, typer.Option("--audit", metavar="OUT.html", help="Page of what a second grader disputes.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Decides which agreements the page shows.")] = 0,
    labels: Annotated[
        Path | None, typer.Option("--labels", metavar="LABELS.jsonl", help="What a person said on that page.")
    ] = None,
) -> None:
    """Grade the samples that have no verdict by the current grader."""
    from capcal_lib.grading.verdicts import grade_run

    run = _run(store, model, dataset, split)
    graded = grade_run(run)
    out.print(f"{graded.new} samples graded, {graded.again} graded again")
    for (old, new), number in sorted(graded.flipped.items()):
        out.print(f"{number} flipped from {old} to {new}")
    if audit:
        from capcal_lib.grading.cross_check import second_look
        from capcal_lib.grading.page import write_page

        look = second_look(run, seed=seed)
        listed = write_page(look, audit)
        share = look.by_sample
        out.print(
            f"two graders disagree on {share.estimate:.2%} [{share.low:.2%}, {share.high:.2%}] of samples; "
            f"{audit} lists {listed} answers to settle",
            soft_wrap=True,
        )
    if labels:
        from capcal_lib.grading.cross_check import agreement, corrected_accuracy, read_labels
        from capcal_lib.grading.error import error_from_labels

        table = read_labels(labels)
        error, accuracy = error_from_labels(table), corrected_accuracy(run, table)
        for what, estimate, low, high in (
            ("agreement with the labels", *agreement(table)),
            ("sensitivity", *error.sensitivity),
            ("specificity", *error.specificity),
            ("expected accuracy, corrected for these", *accuracy[:3]),
        ):
            out.print(f"{what} {estimate:.2%} [{low:.2%}, {high:.2%}]", highlight=False)


@app.command()
def judge(
    model: ModelName,
    dataset: DatasetName,
    judge: Annotated[str, typer.Option("--judge", help="The model that judges, of `capcal models`.")],
    judge_engine: Annotated[
        str | None, typer.Option("--judge-engine", help="Default: the engine of the judge's manifest.")
    ] = None,
    split: SplitName = None,
    store: Store = LOCAL_RUNS,
) -> None:
    """Let a model judge the short answers of a graded run, and compare it with the rules, whose verdicts stay."""
    import numpy as np

    from capcal_lib.grading.agreement import judge_agreement
    from capcal_lib.grading.judgements import judge_run

    folder = _run(store, model, dataset, split)
    with _progress(f"{judge} judges {model} on {dataset}", "answers") as progress:
        judged = judge_run(folder, judge, engine=judge_engine, progress=progress)
    out.print(f"{judged.new} distinct answers judged, {judged.present} were there")
    if judged.failed:
        out.print(f"{judged.failed} got no reply; the same command asks again")
    for what, found in judge_agreement(folder, judge, rng=np.random.default_rng(0)).items():
        table = Table(f"{what}: by the rules", *(f"judge: {name}" for name in found.table.columns))
        for name, row in found.table[found.table.any(axis=1)].iterrows():
            table.add_row(str(name), *(f"{number:,}" for number in row))
        out.print(table)
        rate = found.rate
        out.print(
            f"agreement on what is correct {rate.estimate:.3f}, 95 % interval {rate.low:.3f} to {rate.high:.3f}; "
            f"Cohen's kappa {found.kappa:.3f}; not scored {found.left_out:,}",
            highlight=False,
            soft_wrap=True,
        )


@app.command("grade-file")
def grade_file(
    rows: Annotated[Path, typer.Argument(metavar="IN.jsonl", help="Rows {kind, gold, aliases?, response}.")],
    verdicts: Annotated[Path, typer.Option("--out", metavar="OUT.jsonl", help="Where the verdicts go.")],
) -> None:
    """Grade responses from anywhere: one JSON object a line in, one verdict a line out."""
    from capcal_lib.grading.file import grade_file

    grade_file(rows, verdicts)
    out.print(f"wrote {verdicts}", soft_wrap=True)


@app.command()
def confidence(
    model: ModelName,
    dataset: DatasetName,
    method: Annotated[str, typer.Option("--method", help="verbalized, p-true or consistency.")],
    split: SplitName = None,
    engine: Engine = None,
    store: Store = LOCAL_RUNS,
    seed: Seed = 0,
) -> None:
    """Estimate a confidence for each question of a run, and keep it; consistency follows from spare samples."""
    from capcal_lib.confidence.of_run import METHODS, estimate
    from capcal_lib.results.evaluation import vote

    if method not in (*METHODS, "consistency"):
        raise unknown("method", method, (*METHODS, "consistency"))
    run = _run(store, model, dataset, split)
    found = vote(run) if method == "consistency" else estimate(run, method, engine=engine, seed=seed)
    if not len(found):
        raise InputError("no question has the 10 spare samples that vote; draw them with: capcal sample --k 110")
    counted = ", ".join(f"{number} {status}" for status, number in found.status_counts().items())
    out.print(f"{method}: {counted}; {found.tokens.sum()} tokens")


@app.command()
def features(
    model: ModelName,
    dataset: DatasetName,
    layers: Annotated[str, typer.Option("--layers", help="mean or max over the layers, or all of them.")] = "mean",
    split: SplitName = None,
    engine: Engine = None,
    store: Store = LOCAL_RUNS,
) -> None:
    """Extract the hidden states that a probe reads, and keep them with the run. Stopped, it goes on from there."""
    from capcal_lib.probes.features import extract
    from capcal_lib.sampling.engines import Layers

    if layers not in get_args(Layers):
        raise unknown("layers", layers, get_args(Layers))
    matrix = extract(_run(store, model, dataset, split), layers=cast(Layers, layers), engine=engine)
    out.print(f"{matrix.shape[0]} questions, {' x '.join(map(str, matrix.shape[1:]))} features each")


@app.command()
def coordinates(model: ModelName, dataset: DatasetName, engine: Engine = None, store: Store = LOCAL_RUNS) -> None:
    """Keep where the questions of a data set's two splits lie in all layers: what the kernel probe reads."""
    from capcal_lib.manifests import load_dataset
    from capcal_lib.probes.coordinates import keep_coordinates

    training = load_dataset(dataset).training_split
    if training is None:
        raise InputError(f"{dataset} has no training split, so there is nothing to learn from")
    keep_coordinates(_run(store, model, dataset, training), _run(store, model, dataset, None), engine=engine)
    out.print(f"coordinates of {dataset} kept with its two runs")


@app.command()
def exact(
    model: ModelName,
    dataset: DatasetName,
    split: SplitName = None,
    engine: Engine = None,
    epsilon: Annotated[float, typer.Option("--epsilon", help="Leave out answers less likely than this.")] = 1e-3,
    store: Store = LOCAL_RUNS,
) -> None:
    """Compute expected accuracy from the probabilities of whole answers, where these are short; no sampling."""
    from capcal_lib.results.exact import enumerate_answers

    found = enumerate_answers(_run(store, model, dataset, split), engine=engine, epsilon=epsilon)
    known = sum(mu == mu for mu in found.mu)  # NaN is not equal to itself
    out.print(f"{known} of {len(found)} known to within 0.05; {found.passes.mean():.0f} passes a question")


@app.command()
def score(
    file: Annotated[Path, typer.Argument(metavar="FILE.csv", help="question_id, confidence, correct, total.")],
) -> None:
    """Score your own confidences against your own counts."""
    from capcal_lib.results.tables import score_file

    table = Table("", "value", "95 % interval")
    for row in score_file(file):
        table.add_row(*row)
    out.print(table)


@app.command()
def status(
    store: Store = LOCAL_RUNS,
    model: Annotated[str | None, typer.Option("--model", help="Only this model's runs.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only the runs on this data set.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a run and line.")] = False,
) -> None:
    """Show what each run of a store has, what it lacks, what it took, and how long a drawing still takes."""
    from capcal_lib.results.status import as_row, line, spell_lacking, spell_pace, survey

    runs = survey(store, model, dataset)
    if as_json or not out.is_terminal:
        for run in runs:
            out.print(as_row(run) if as_json else line(run), markup=False, highlight=False, soft_wrap=True)
        return
    table = Table(
        "run", "samples", "a question", "of those asked for", "tokens", "pace", "verdicts", "confidences", "features"
    )
    for run in runs:
        what = f"{run.identity.model}\n{run.identity.dataset}-{run.identity.split}\n{run.identity.key}"
        each = " to ".join(map(str, sorted(set(run.each))))
        methods = "\n".join(f"{method}: {covered}" for method, covered in run.confidences.items()) or "no"
        lacking = f"{run.asked}: {spell_lacking(run)}"
        numbers = (f"{run.samples:,}", each, lacking, f"{run.tokens:,}", spell_pace(run).replace(", ", "\n"))
        table.add_row(what, *numbers, run.graded, methods, run.features)
    out.print(table)


@app.command()
def merge(
    into: Annotated[Path, typer.Argument(metavar="INTO", help="A run store, existing or not.")],
    sources: Annotated[list[Path], typer.Argument(metavar="FROM...", help="Run stores, or single runs.")],
) -> None:
    """Take over the runs and rows of other stores. Conflicting rows are refused, and nothing is written then."""
    from capcal_lib.results.merging import merge as merge_stores

    for run in merge_stores(into, sources):
        lines = [f"{run.rows} samples taken over, {run.present} were there; {run.source} into {run.target}", *run.notes]
        for line in lines:
            out.print(line, markup=False, highlight=False, soft_wrap=True)


@app.command()
def verify(
    store: Store = LOCAL_RUNS,
    model: Annotated[str | None, typer.Option("--model", help="Only this model's runs.")] = None,
    dataset: Annotated[str | None, typer.Option("--dataset", help="Only the runs on this data set.")] = None,
) -> None:
    """Check every run of a store: one line a run, ok or all that is wrong with it; exit status 1 where anything is."""
    from capcal_lib.results.verify import verify_store

    wrong = False
    for checked in verify_store(store, model, dataset):
        wrong |= bool(checked.problems)
        out.print(str(checked), markup=False, highlight=False, soft_wrap=True)
    if wrong:
        raise typer.Exit(1)


@app.command()
def datasets() -> None:
    """List the data sets."""
    from capcal_lib.manifests import dataset_names, load_dataset

    table = Table("name", "title", "domain", "answers", "splits", "from")
    for dataset in map(load_dataset, dataset_names()):
        splits = ", ".join(f"{name} {split.rows:,}" if split.rows else name for name, split in dataset.splits.items())
        entry = dataset.splits[dataset.evaluation_split]
        source = "built in" if dataset.builtin else entry.file or "hub or CAPCAL_DATA_DIR"
        table.add_row(dataset.name, dataset.title, dataset.domain, dataset.kind, splits, source)
    out.print(table)
    _say_malformed()


@app.command()
def models() -> None:
    """List the models."""
    from capcal_lib.manifests import load_model, model_names

    table = Table("name", "title", "engine", "prompts", "temperature", "top-p", "in the paper")
    for model in map(load_model, model_names()):
        sampling = (f"{model.sampling.temperature:g}", f"{model.sampling.top_p:g}")
        table.add_row(model.name, model.title, model.engine, model.prompt_style, *sampling, model.paper_name or "no")
    out.print(table)
    _say_malformed()


@app.command()
def notebooks(
    model: Annotated[list[str] | None, typer.Option("--model", help="Default: the pages of the book.")] = None,
    store: Annotated[Path | None, typer.Option("--store", help="Default: the recorded runs.")] = None,
    folder: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Default: build/notebooks.")] = None,
) -> None:
    """Execute the notebooks in order, those whose inputs have changed."""
    from capcal_lib.book.pipeline import book_pages, execute, model_pages
    from capcal_lib.manifests import BUILD

    pages = model_pages(model) if model else book_pages()
    execute(pages, folder or BUILD / "notebooks", store=_folder(store), say=out.print)


@app.command()
def book(
    model: Annotated[list[str] | None, typer.Option("--model", help="Default: the book's own.")] = None,
    store: Annotated[Path | None, typer.Option("--store", help="Default: the recorded runs.")] = None,
    folder: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Default: build.")] = None,
) -> None:
    """Execute the notebooks and build the book."""
    from capcal_lib.book.pipeline import build_book

    index = build_book(model or (), store=_folder(store), out=folder and folder.resolve(), say=out.print)
    out.print(f"the book: {index}", soft_wrap=True)


def _folder(store: Path | None) -> Path | None:
    """Return the whole path of a run store that exists; none stays none."""
    if store is not None and not store.is_dir():
        raise InputError(f"{store} is not a folder; name a run store, such as one that `capcal sample` made")
    return store and store.resolve()


def _say_malformed() -> None:
    from capcal_lib.manifests import manifest_problems

    for problem in manifest_problems():
        err.print(f"capcal: left out: {problem}", markup=False, highlight=False, soft_wrap=True)


def main() -> None:
    """Run the command; bad input ends it with one line and exit status 2."""
    try:
        app()
    except InputError as error:
        err.print(f"capcal: {error}", markup=False, highlight=False, soft_wrap=True)
        sys.exit(2)
    except KeyboardInterrupt:
        _stopped()
    except SystemExit as ended:
        if ended.code == STOPPED:
            _stopped()
        raise


def _stopped() -> NoReturn:
    """Say how to go on after a Ctrl-C; whoever presses again finds everything done already."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    command = shlex.join(["capcal", *sys.argv[1:]])
    err.print(f"capcal: stopped; what was done is kept. Go on with: {command}", markup=False, soft_wrap=True)
    sys.exit(STOPPED)


def _run(store: Path, model: str, dataset: str, split: str | None) -> Path:
    from capcal_lib.manifests import load_dataset, load_model
    from capcal_lib.sampling.store import find_run

    load_model(model)
    return find_run(store, model, dataset, split or load_dataset(dataset).evaluation_split)


@contextmanager
def _progress(what: str, units: str = "samples") -> Iterator:  # type: ignore[type-arg]
    """Show one bar on a terminal, and a plain line now and then elsewhere."""
    from capcal_lib.results.status import duration

    if err.is_terminal:
        columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[rate]}"))
        with Progress(*columns, TimeRemainingColumn(), console=err) as bar:
            task = bar.add_task(what, total=None, rate="starting")

            def move(done: int, total: int) -> None:
                speed = bar.tasks[0].speed
                bar.update(task, completed=done, total=total, rate=f"{speed:,.1f}/s" if speed else "")

            yield move
        return
    started = said = time.monotonic()

    def line(done: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if done and (now - said >= SECONDS_BETWEEN_LINES or done == total):
            said = now
            rate = done / max(now - started, 1e-9)
            left = duration((total - done) / rate)
            err.print(f"{what}: {done} of {total} {units}, {rate:,.1f}/s, {left} to go", highlight=False)

    yield line


if __name__ == "__main__":
    main()
