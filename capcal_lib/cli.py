"""The ``capcal`` command: one function per command, in the order of the help. A function parses and
prints; it imports what computes from the library when it is called.
"""

import os
import shlex
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table
from typer import Argument, Option
from typer.exceptions import TyperException

from capcal_lib.errors import InputError, not_installed
from capcal_lib.manifests import Kind, dataset_names, load_model, model_names
from capcal_lib.places import LOCAL_RUNS, NOTEBOOKS
from capcal_lib.text import counted, printable, sanitize, spell_cell, spell_time

if TYPE_CHECKING:
    from pandas import DataFrame

    from capcal_lib.runs import Run

SECONDS_BETWEEN_LINES = 10.0
STOPPED = 130  # the exit status of a command that was stopped
STOPS = (signal.SIGINT, signal.SIGTERM)  # Ctrl-C, and what SLURM, docker and timeout send
COLUMNS_IN_A_FILE = 160
SHOWN = 2_000  # characters of a response
OF_RUNS = ("dataset", "verdicts", "store", "choice", "k_eval")  # options of score
OF_FILES = ("key", "drop_missing", "column", "scorer", "regrade")
GONE = {  # what to do in place of an option that score and import had
    "--all": "--json prints every metric",
    "--correct": 'say it in the table: table["verdict"] = table["verdict"] == "pass"',
}
ANOTHER = "Settings that make another run"
SCORE, DRAW, GRADE = "Score what you have", "Draw samples", "From samples"
STORE, NAMES, BOOK = "The store", "Models and data sets", "The book"

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Capability calibration: sample, grade, estimate confidence, score.",
)
IN_TERMINAL = sys.stdout is not None and sys.stdout.isatty()
out = Console(width=None if IN_TERMINAL else COLUMNS_IN_A_FILE, markup=False)
err = Console(stderr=True, markup=False)

_Command = TypeVar("_Command", bound=Callable[..., Any])


def command(panel: str, example: str, name: str | None = None) -> Callable[[_Command], _Command]:
    """Register a command, and end its help with an example."""
    return app.command(name, epilog=f"Example: capcal {example}", rich_help_panel=panel)


ModelName = Annotated[
    str, Option("--model", help="A name from `capcal models`.", autocompletion=model_names)
]
DatasetName = Annotated[
    str, Option("--dataset", help="A name from `capcal datasets`.", autocompletion=dataset_names)
]
OnlyModel = Annotated[
    str | None, Option(help="Only this model's runs.", autocompletion=model_names)
]
OnlyDataset = Annotated[
    str | None, Option(help="Only the runs on this data set.", autocompletion=dataset_names)
]
Models = Annotated[
    list[str] | None,
    Option("--model", help="A name from `capcal models`; repeatable.", autocompletion=model_names),
]
Datasets = Annotated[
    list[str] | None,
    Option("--dataset", help="Use only this data set; repeatable.", autocompletion=dataset_names),
]
SplitName = Annotated[str | None, Option(help="Default: the data set's evaluation split.")]
Limit = Annotated[int | None, Option(help="Use a random subset of this many questions.", min=1)]
Store = Annotated[Path, Option(help="Folder of the run store.", envvar="CAPCAL_STORE")]
Engine = Annotated[str | None, Option(help="Default: the engine of the model's manifest.")]
InFlight = Annotated[int | None, Option(help="Number of parallel requests to the server.", min=1)]
JudgeUrl = Annotated[str | None, Option(help="Address of the judge's server, if it has its own.")]
Seed = Annotated[int, Option(help="Random seed; part of the run's identity.")]
Choice = Annotated[
    str | None,
    Option("--run", help="Choose one run by its key or by settings (seed=1,temperature=0.2)."),
]
Temperature = Annotated[float | None, Option(help="Sampling temperature.", rich_help_panel=ANOTHER)]
TopP = Annotated[float | None, Option(help="Nucleus sampling.", rich_help_panel=ANOTHER)]
MaxTokens = Annotated[
    int | None, Option(help="Maximum number of tokens in an answer.", rich_help_panel=ANOTHER)
]
PromptStyle = Annotated[
    str | None,
    Option(help="Name of a prompt style; short@3 uses 3 of its examples.", rich_help_panel=ANOTHER),
]
Columns = Annotated[
    list[str] | None,
    Option(
        metavar="NAME=COLUMN", help="Read NAME from this column or field, such as gold=doc.answer."
    ),
]
Scorer = Annotated[str | None, Option(help="Scorer or filter to use, if the log has several.")]
Regrade = Annotated[bool, Option("--regrade", help="Ignore the log's verdicts and grade again.")]
AsJson = Annotated[bool, Option("--json", help="Print one JSON object per line.")]
Verdicts = Annotated[
    str, Option(help="Grader: rules, or judge:MODEL for short and mathematical answers.")
]
RunName = Annotated[str, Argument(metavar="[RUN]", help="The run's key, or the beginning of it.")]
ShownStore = Annotated[
    Path | None,
    Option(
        help="Default: the recorded runs.",
        envvar="CAPCAL_STORE",
        exists=True,
        file_okay=False,
        resolve_path=True,
    ),
]
Folder = Annotated[
    Path | None, Option("--out", metavar="DIR", help="Default: build.", resolve_path=True)
]


def _run(model: str, dataset: str, split: str | None, store: Path, choice: str | None) -> "Run":
    from capcal_lib.manifests import load_dataset
    from capcal_lib.runs import find_run

    load_model(model)
    split = split or load_dataset(dataset).evaluation_split
    return find_run(store, model, dataset, split, _parse_choice(choice))


def _parse_choice(text: str | None) -> str | dict[str, Any] | None:
    """Parse the value of --run: the beginning of a key, or settings, numbers among them."""
    import yaml

    if text is None or "=" not in text:
        return text
    settings: dict[str, Any] = {}
    for part in text.split(","):
        name, _, value = part.partition("=")
        settings[name] = yaml.safe_load(value)
    return settings


def _columns(typed: list[str] | None) -> dict[str, str]:
    """Parse the values of --column, each NAME=COLUMN."""
    columns = {}
    for text in typed or ():
        name, _, column = text.partition("=")
        columns[name] = column
    return columns


def _typed(**settings: Any) -> dict[str, Any]:
    """Return the settings that were typed."""
    return {name: value for name, value in settings.items() if value is not None}


def _say(line: object) -> None:
    """Print one line as it is, however long."""
    out.print(printable(line), highlight=False, soft_wrap=True)


def _warn(line: object) -> None:
    err.print(printable(line), highlight=False, soft_wrap=True)


def _say_rows(table: "DataFrame") -> None:
    text = table.to_json(orient="records", lines=True, double_precision=15)
    for row in filter(None, text.replace("\\/", "/").splitlines()):
        _say(row)


def _print_table(table: "DataFrame") -> None:
    shown = Table(*map(printable, table), box=None)
    for row in table.itertuples(index=False):
        shown.add_row(*(printable(spell_cell(cell)) for cell in row))
    out.print(shown)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        _say(f"capcal {version('capcal')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """Read the options that stand before a command."""


@command(SCORE, "score mine.csv --html report.html")
def score(
    typed: typer.Context,
    files: Annotated[
        list[Path] | None,
        Argument(
            metavar="FILE...",
            help="Tables of question_id, confidence, correct, total; or logs. - is CSV on stdin.",
        ),
    ] = None,
    model: Models = None,
    dataset: Datasets = None,
    verdicts: Verdicts = "rules",
    store: Store = LOCAL_RUNS,
    choice: Choice = None,
    k_eval: Annotated[
        int, Option(min=1, help="With --model: count the first N samples of each question.")
    ] = 100,
    key: Annotated[
        Path | None,
        Option(metavar="FILE", help="Read correct and total from this file, by question_id."),
    ] = None,
    drop_missing: Annotated[
        bool, Option("--drop-missing", help="Leave out questions without a confidence.")
    ] = False,
    column: Columns = None,
    scorer: Scorer = None,
    regrade: Regrade = False,
    as_json: AsJson = False,
    html: Annotated[
        Path | None, Option(metavar="OUT", help="Write a report of one HTML page.")
    ] = None,
) -> None:
    """Score and compare confidences, from files or from models' runs.

    Logs of lm-evaluation-harness (samples_*.jsonl) and inspect_ai (.eval, .json) are read as they
    are: you get accuracy, pass@k, and the score that a confidence has to beat. If you give several
    files, each is compared with the first."""
    if bool(files) == bool(model):
        raise InputError(
            "name either files, such as mine.csv (- is standard input), or a --model that has runs"
        )
    mode, others = ("--model", OF_RUNS) if files else ("files", OF_FILES)
    for name in others:
        source = typed.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            option = "--run" if name == "choice" else f"--{name.replace('_', '-')}"
            raise InputError(f"{option} applies to {mode} only")
    inputs = list(files or ())
    if key:
        inputs.append(key)
    if html:
        if html.resolve() in map(Path.resolve, inputs):
            raise InputError(
                f"--html {html} would overwrite a file that is scored; give another name"
            )
        from capcal_lib.book.report import write_report
    if files:
        from capcal_lib.io.score_file import score_files

        scored = score_files(
            files,
            key=key,
            drop_missing=drop_missing,
            columns=_columns(column),
            scorer=scorer,
            regrade=regrade,
        )
    else:
        from capcal_lib.io.score_runs import score_models

        scored = score_models(
            store,
            model or (),
            datasets=dataset,
            verdicts=verdicts,
            choice=_parse_choice(choice),
            k_eval=k_eval,
        )
    for problem in scored.problems:
        _warn(f"capcal: {problem}")
    if as_json:
        for line in (*scored.above, *scored.below):
            _warn(line)
        for rows in scored.rows:
            _say_rows(rows)
    else:
        for line in scored.above:
            _say(line)
        if len(scored.table):
            _print_table(scored.table.reset_index())
        for line in scored.below:
            _say(line)
    if html:
        write_report(html, scored, inputs)
        _warn(f"wrote {html}")


@command(SCORE, "import samples_law.jsonl --model my-model --dataset law", "import")
def import_files(
    files: Annotated[list[Path], Argument(metavar="FILE...", help="All files of a run.")],
    model: Annotated[str, Option(help="Model name, known or new.")],
    dataset: Annotated[str, Option(help="Data set name, known or new.")],
    split: SplitName = None,
    kind: Annotated[Kind | None, Option(help="How to grade a new data set.")] = None,
    column: Columns = None,
    scorer: Scorer = None,
    regrade: Regrade = False,
    store: Store = LOCAL_RUNS,
    temperature: Temperature = None,
    top_p: TopP = None,
    max_tokens: MaxTokens = None,
) -> None:
    """Make a run from samples that you have: lm-evaluation-harness, inspect_ai, batch output,
    JSONL, CSV or parquet.

    A table needs the columns question_id, response, and gold or verdict. It may also have sample,
    question, aliases, choices, subject and temperature."""
    from capcal_lib.io.importing import import_samples

    done = import_samples(
        files,
        model=model,
        dataset=dataset,
        store=store,
        split=split,
        kind=kind,
        columns=_columns(column),
        scorer=scorer,
        regrade=regrade,
        settings=_typed(temperature=temperature, top_p=top_p, max_tokens=max_tokens),
    )
    for note in done.notes:
        _say(note)
    _say(f"{counted(done.new, 'sample')} imported, {done.present} already there; {done.run}")
    if not done.judged:
        _say(f"next: capcal grade {done.run.options}")


@command(SCORE, "grade-file responses.jsonl --out verdicts.jsonl", "grade-file")
def grade_file(
    rows: Annotated[
        Path, Argument(metavar="IN.jsonl", help="Rows {kind, gold, aliases?, response}.")
    ],
    verdicts: Annotated[
        Path, Option("--out", metavar="OUT.jsonl", help="File to write the verdicts to.")
    ],
) -> None:
    """Grade responses from anywhere: read one JSON object per line, write one verdict per line."""
    from capcal_lib.grading import grade_file

    grade_file(rows, verdicts)
    _say(f"wrote {verdicts}")


@command(DRAW, "sample --model smollm2-135m --dataset mini-capitals --k 20 --limit 40")
def sample(
    model: ModelName,
    dataset: DatasetName,
    k: Annotated[int, Option(help="Samples per question.")],
    split: SplitName = None,
    limit: Limit = None,
    ids: Annotated[
        Path | None, Option(metavar="FILE", help="Use only these questions, one id per line.")
    ] = None,
    engine: Engine = None,
    in_flight: InFlight = None,
    store: Store = LOCAL_RUNS,
    seed: Seed = 0,
    temperature: Temperature = None,
    top_p: TopP = None,
    max_tokens: MaxTokens = None,
    prompt_style: PromptStyle = None,
) -> None:
    """Draw the samples that the store lacks. You may stop it; the same command goes on."""
    from capcal_lib.runs.status import cut_answers
    from capcal_lib.sampling.draw import sample as draw

    wanted: int | dict[str, int] = k
    if ids:
        if not ids.exists():
            raise InputError(f"{ids}: there is no such file")
        lines = ids.read_text("utf-8-sig", "replace").splitlines()
        names = {line.strip() for line in lines} - {"", "question_id"}  # a column's heading
        if not names:
            raise InputError(f"{ids}: the file has no ids; write one question id per line")
        wanted = dict.fromkeys(sorted(names), k)
    with _progress(f"{model} on {dataset}") as progress:
        done = draw(
            model,
            dataset,
            k=wanted,
            store=store,
            split=split,
            limit=limit,
            engine=engine,
            in_flight=in_flight,
            seed=seed,
            settings=_typed(
                temperature=temperature,
                top_p=top_p,
                max_tokens=max_tokens,
                prompt_style=prompt_style,
            ),
            progress=progress,
        )
    if done.new or done.present:
        _say(f"{done.new} samples drawn, {done.present} already there; {done.run}")
        if cut := cut_answers(done.run):
            _warn(cut)
    if failed := Counter(done.failed):
        _warn(f"capcal: {failed.total()} samples failed; the same command tries them again")
        for reason, number in failed.most_common(9):
            _warn(f"{number} failed: {reason}")
        raise typer.Exit(1)


@command(DRAW, "reproduce --model smollm2-135m --dataset mini-capitals --limit 20")
def reproduce(
    model: ModelName,
    dataset: Datasets = None,
    recipe: Annotated[
        Literal["lean", "paper"],
        Option(help="lean (20 samples, corrected scores) or paper (100, as in the paper)."),
    ] = "lean",
    limit: Limit = None,
    plan: Annotated[bool, Option("--plan", help="Only print the plan and its cost.")] = False,
    rate: Annotated[
        float | None, Option(help="Tokens per second over all GPUs, to estimate the time.", min=1)
    ] = None,
    engine: Engine = None,
    verdicts: Verdicts = "",
    judge_url: JudgeUrl = None,
    in_flight: InFlight = None,
    part: Annotated[str, Option(help="3/8: do part 3 of 8 (one store per part).")] = "1/1",
    store: Store = LOCAL_RUNS,
    seed: Seed = 0,
) -> None:
    """Do everything that a model's row of the main table needs, by default on the paper's seven
    data sets and with the recipe's verdicts. You may stop it; the same command goes on from there.
    """
    from capcal_lib import reproduce as recipes
    from capcal_lib.grading.judgements import judge_of

    chosen = recipes.RECIPES[recipe]
    if verdicts:
        chosen = replace(chosen, judge=judge_of(verdicts))
    order = recipes.Order(
        model=model,
        store=store,
        datasets=dataset,
        recipe=chosen,
        limit=limit,
        engine=engine,
        judge_url=judge_url,
        in_flight=in_flight,
        part=recipes.Part(*_parse_part(part)),
        seed=seed,
    )
    if plan:
        steps = recipes.make_plan(order, fetch=False)
        table, sums = recipes.show_plan(recipes.time_plan(steps, rate))
        _print_table(table)
        _say(sums)
        if rate is None:
            _say("to estimate the time, give --rate: tokens per second over all GPUs")
        return
    with _progress(f"reproducing {model}", "requests") as progress:
        done = recipes.reproduce(order, progress, _warn)
    for row in done.left.itertuples():
        _warn(f"capcal: not done: {row.step} of {row.dataset} ({row.split}): {row.reason}")
    if order.part != recipes.WHOLE:
        _say(f"part {part} is in {store}; capcal merge all parts, then reproduce without --part")
    elif len(done.scores):
        _print_table(done.scores.reset_index())
        page = ["papermill", NOTEBOOKS / "04_main_table.ipynb", "page.ipynb", "-p", "model", model]
        page += ["-p", "store", store, "-p", "verdicts", chosen.verdicts]
        page += ["-p", "protocol", chosen.protocol]
        _say(f"the page with these numbers: {shlex.join(map(str, page))}")
    if not (done.left["reason"] == recipes.NO_STATES).all():
        _warn(f"capcal: try what failed again with: {_again()}")
        raise typer.Exit(1)


def _parse_part(text: str) -> tuple[int, int]:
    """Parse a part of the questions, such as 3/8."""
    number, _, parts = text.partition("/")
    if not (number.isdecimal() and parts.isdecimal()):
        raise InputError(f"a part is NUMBER/PARTS, such as 3/8; got {sanitize(text, 80)}")
    return int(number), int(parts)


@command(GRADE, "grade --model smollm2-135m --dataset mini-capitals")
def grade(
    model: ModelName,
    dataset: DatasetName,
    split: SplitName = None,
    store: Store = LOCAL_RUNS,
    choice: Choice = None,
) -> None:
    """Grade all samples of a run, if any lacks a verdict from the current grader."""
    from capcal_lib.grading.verdicts import grade_run
    from capcal_lib.results.look import describe_unread_samples

    run = _run(model, dataset, split, store, choice)
    graded = grade_run(run)
    _say(f"{graded.new} samples graded, {graded.again} graded again")
    for (old, new), number in sorted(graded.flipped.items()):
        _say(f"{number} changed from {old} to {new}")
    for line in describe_unread_samples(run):
        _say(line)


@command(GRADE, "judge --model smollm2-135m --dataset triviaqa --judge gpt-oss-20b")
def judge(
    model: ModelName,
    dataset: DatasetName,
    judge: Annotated[str, Option(help="The model that judges, from `capcal models`.")],
    judge_engine: Annotated[
        str | None, Option(help="Default: the engine of the judge's manifest.")
    ] = None,
    judge_url: JudgeUrl = None,
    in_flight: InFlight = None,
    split: SplitName = None,
    store: Store = LOCAL_RUNS,
    choice: Choice = None,
) -> None:
    """Let a model judge the short and mathematical answers of a graded run."""
    from capcal_lib.grading.judgements import judge_run

    run = _run(model, dataset, split, store, choice)
    engine = judge_engine or ("openai" if judge_url else None)
    with _progress(f"{judge} judges {model} on {dataset}", "answers") as progress:
        judged = judge_run(
            run, judge, engine=engine, progress=progress, url=judge_url, in_flight=in_flight
        )
    _say(f"{judged.new} distinct answers judged, {judged.present} already there")
    if judged.failed:
        [(reason, _)] = judged.failed.most_common(1)
        _warn(f"capcal: {judged.failed.total()} answers got no reply ({reason}); try again")
        raise typer.Exit(1)


@command(GRADE, "confidence --model smollm2-135m --dataset mini-capitals --method p-true")
def confidence(
    model: ModelName,
    dataset: DatasetName,
    method: Annotated[
        str | None,
        Option(
            help="verbalized (verbalized confidence), p-true (P(True)), consistency (response "
            "consistency), or an installed method."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        Option("--from", metavar="FILE", help="Table of your own: question_id, confidence."),
    ] = None,
    name: Annotated[str | None, Option(help="Name of your own method.")] = None,
    split: SplitName = None,
    engine: Engine = None,
    store: Store = LOCAL_RUNS,
    choice: Choice = None,
) -> None:
    """Estimate a confidence for each question of a run, and keep it with the run. For response
    consistency the run's samples vote.

    To keep your own: capcal confidence --model M --dataset D --from FILE.csv --name length
    """
    from capcal_lib.confidence.of_run import METHODS, WHY_MISSING, estimate, place_confidence
    from capcal_lib.rows import read_table, take_columns

    run = _run(model, dataset, split, store, choice)
    if file and name and not method:
        table = take_columns(file, read_table(file), ["question_id", "confidence"], ["tokens"])
        confidences = place_confidence(run, name, table.to_dict("records"), file)
    elif not method or file or name:
        raise InputError(
            "use either --method, or --from FILE with --name NAME for a method of your own"
        )
    else:
        confidences = estimate(run, method, engine=engine)
    missing = confidences[confidences["confidence"].isna()]
    line = f"{method or name}: {counted(len(confidences) - len(missing), 'confidence')} kept"
    line += f", {len(missing) or 'none'} missing"
    if tokens := confidences["tokens"].sum():
        line += f"; {tokens:,.0f} tokens"
    _say(line)
    if method not in METHODS or missing.empty:
        return
    unasked = (missing["tokens"] == 0).sum()
    if silent := len(missing) - unasked:
        _warn(f"capcal: {silent} are missing: {WHY_MISSING[method]}")
    if unasked:
        _warn(
            f"{unasked} questions were not answered, for the reason above; once it is solved, give "
            "the same command again"
        )
    if unasked or len(missing) == len(confidences):
        raise typer.Exit(1)


@command(GRADE, "features --model smollm2-135m --dataset mini-capitals")
def features(
    model: ModelName,
    dataset: DatasetName,
    engine: Engine = None,
    layers: Annotated[
        str, Option(help="mean or max over all layers, or the number of one; 0 is the embedding.")
    ] = "mean",
    split: SplitName = None,
    store: Store = LOCAL_RUNS,
    choice: Choice = None,
) -> None:
    """Extract the hidden states that a probe reads, and keep them with the run. You may stop it;
    the same command goes on from there.

    capcal probe reads the mean over layers. In Python, read_features(run, layers) reads others.
    """
    from capcal_lib.probes.features import extract

    run = _run(model, dataset, split, store, choice)
    matrix = extract(run, engine=engine, layers=layers)
    _say(f"{matrix.shape[0]} questions, {matrix.shape[1]} features each")


@command(GRADE, "probe --model smollm2-135m")
def probe(
    model: ModelName,
    dataset: Datasets = None,
    mix: Annotated[
        str, Option(help="Train one probe on several sets, such as triviaqa-1000,gsm8k.")
    ] = "",
    recipe: Annotated[
        Literal["tuned", "paper"], Option(help="How to train: tuned, or as in the paper.")
    ] = "tuned",
    draws: Annotated[
        bool,
        Option("--draws", help="Also train probes on 20 to 1,000 labels, for a learning curve."),
    ] = False,
    verdicts: Verdicts = "rules",
    store: Store = LOCAL_RUNS,
    choice: Choice = None,
) -> None:
    """Train a probe on each training run of a model, or with --mix on several together, and keep
    its predictions on the evaluation splits, of all data sets or of those that you name.

    Run capcal grade and capcal features first. Predictions are made again only if the runs behind
    them have changed.
    """
    from capcal_lib.probes import keep_predictions
    from capcal_lib.probes.draws import keep_draws
    from capcal_lib.runs.run import store_option

    counts = keep_predictions(
        store,
        model,
        datasets=dataset,
        mix=mix.split(",") if mix else (),
        recipe=recipe,
        verdicts=verdicts,
        choice=_parse_choice(choice),
        say=_warn,
    )
    if counts.empty:
        raise InputError(
            f"{store} has no probe of {model}: it needs a run on a training split and one on an "
            "evaluation split, both with verdicts and hidden states; see: "
            f"capcal status{store_option(store)}"
        )
    _print_table(counts.reset_index())
    if draws:
        of_draws = keep_draws(store, model, choice=_parse_choice(choice), say=_warn)
        _print_table(of_draws.reset_index())


@command(STORE, "status --store runs/recorded --model smollm2-135m")
def status(
    store: Store = LOCAL_RUNS,
    model: OnlyModel = None,
    dataset: OnlyDataset = None,
    as_json: AsJson = False,
) -> None:
    """Show what each run of a store has and lacks, and the next command for it."""
    from capcal_lib.grading import GRADER_VERSION
    from capcal_lib.runs.status import SHOWN, survey

    table = survey(store, model, dataset, grader=GRADER_VERSION)
    if as_json:
        _say_rows(table)
        return
    if len(table):
        _print_table(table[SHOWN])
    for run in table.to_dict("records"):
        for problem in run["problems"]:
            _say(f"{run['model']}, {run['dataset']} ({run['split']}), {run['run']}: {problem}")
        if run["cut"]:
            _say(f"{run['model']}, {run['dataset']} ({run['split']}), {run['run']}: {run['cut']}")
        if run["command"]:
            _say(f"next: {run['command']}")


def _named(
    key: str, model: str | None, dataset: str | None, split: str | None, store: Path
) -> "Run":
    from capcal_lib.results.look import named_run

    if model and dataset:
        return _run(model, dataset, split, store, key)
    return named_run(store, key, model=model, dataset=dataset, split=split)


@command(STORE, "show 1f0c2 --question mini-capitals/test/3")
def show(
    run: RunName = "",
    question: Annotated[str | None, Option(help="Show the samples of this question.")] = None,
    model: OnlyModel = None,
    dataset: OnlyDataset = None,
    split: SplitName = None,
    store: Store = LOCAL_RUNS,
) -> None:
    """Show a run's questions with their counts, or one question with its samples and verdicts."""
    from capcal_lib.grading.verdicts import run_questions
    from capcal_lib.results.look import questions_of, samples_of

    named = _named(run, model, dataset, split, store)
    if question is None:
        _print_table(questions_of(named))
        return
    samples = samples_of(named, question)
    try:
        shown = run_questions(named)[question]
    except InputError as error:  # its text may be elsewhere, but its samples are here
        _warn(f"capcal: {error}")
    else:
        _say(shown.text)
        _say(f"right answer: {shown.answer.gold}")
    for row in samples.to_dict("records"):
        line = f"sample {row['sample_index']}: {row['verdict']}"
        if row["extracted"]:
            line += f", extracted {row['extracted']!r}"
        if row["reason"]:
            line += f" ({row['reason']})"
        _say(line)
        _say(f"    {row['response'][:SHOWN]}")


@command(STORE, "rm 1f0c2 --store runs/local --yes")
def rm(
    run: RunName = "",
    yes: Annotated[
        bool, Option("--yes", help="Delete the run; without --yes it is only shown.")
    ] = False,
    model: OnlyModel = None,
    dataset: OnlyDataset = None,
    split: SplitName = None,
    store: Store = LOCAL_RUNS,
) -> None:
    """Show a run, or with --yes delete it and everything that was made from it."""
    from capcal_lib.runs.status import run_status
    from capcal_lib.runs.store import remove_run

    named = _named(run, model, dataset, split, store)
    state = run_status(named)
    _say(f"{named}: {state['samples'] or 0} samples, verdicts: {state['verdicts'] or 'no'}")
    for problem in state["problems"]:
        _say(problem)
    if not yes:
        options = shlex.join([named.folder.name, "--store", str(store), "--yes"])
        _say(f"nothing was removed; to remove it: capcal rm {options}")
        return
    remove_run(named)
    _say(f"removed {named}")


@command(STORE, "merge runs/local shard-1 shard-2")
def merge(
    into: Annotated[Path, Argument(metavar="INTO", help="A run store, existing or not.")],
    sources: Annotated[list[Path], Argument(metavar="FROM...", help="Run stores, or single runs.")],
) -> None:
    """Copy the runs and rows of other stores into one. If any rows conflict, nothing is written."""
    from capcal_lib.runs.merge import merge as merge_stores

    for run in merge_stores(into, sources):
        _say(
            f"{run.rows} samples copied, {run.present} already there; {run.source} into "
            f"{run.target}"
        )
        for note in run.notes:
            _say(note)


@command(STORE, "verify --store runs/recorded")
def verify(
    store: Store = LOCAL_RUNS,
    model: OnlyModel = None,
    dataset: OnlyDataset = None,
) -> None:
    """Check every run of a store, and print one line per run: ok, or everything that is wrong. The
    exit status is 1 if anything is wrong.
    """
    from capcal_lib.grading import GRADER_VERSION
    from capcal_lib.probes.predictions import check_predictions
    from capcal_lib.runs.verify import verify_store
    from capcal_lib.sampling.weights import check_weights

    checks = [check_weights, check_predictions]
    problems: list[str] = []
    for checked in verify_store(store, model, dataset, grader=GRADER_VERSION, checks=checks):
        problems += checked.problems
        _say(checked)
    if problems:
        raise typer.Exit(1)


@command(NAMES, "new dataset law")
def new(
    what: Annotated[Literal["model", "dataset"], Argument()],
    name: Annotated[str, Argument(metavar="NAME", help="Name of the new manifest.")],
) -> None:
    """Write a commented manifest that works as it is, into your own folder or capcal.d."""
    from capcal_lib.manifests import write_new

    for path in write_new(what, name):
        _say(f"wrote {path}")
    pair = {"model": "smollm2-135m", "dataset": "mini-capitals"} | {what: name}
    _say(
        "try it: capcal sample --model {model} --dataset {dataset} --k 4 --limit 3".format_map(pair)
    )


@command(NAMES, "datasets --json")
def datasets(as_json: AsJson = False) -> None:
    """List the data sets."""
    from capcal_lib.manifests import load_dataset

    rows = []
    for one in map(load_dataset, dataset_names()):
        splits = [f"{name} {split.rows or ''}".strip() for name, split in one.splits.items()]
        rows.append([one.name, one.domain, one.kind, ", ".join(splits)])
    _list(["name", "domain", "answers", "questions"], rows, as_json)


@command(NAMES, "models --json")
def models(as_json: AsJson = False) -> None:
    """List the models."""
    rows = []
    for one in map(load_model, model_names()):
        sampling = f"{one.sampling.temperature:g}", f"{one.sampling.top_p:g}"
        rows.append([one.name, one.engine, one.prompt_style, *sampling, one.paper_name or "–"])
    _list(["name", "engine", "prompts", "T", "top-p", "in the paper"], rows, as_json)


def _list(heads: list[str], rows: list[list[str]], as_json: bool) -> None:
    """Print a table of manifests, and why any others cannot be read."""
    from pandas import DataFrame

    from capcal_lib.manifests import manifest_problems

    show = _say_rows if as_json else _print_table
    show(DataFrame(rows, columns=heads))
    for problem in manifest_problems():
        _warn(f"capcal: left out: {problem}")


@command(BOOK, "notebooks --model smollm2-135m --out pages")
def notebooks(
    model: Models = None, store: ShownStore = None, verdicts: Verdicts = "rules", out: Folder = None
) -> None:
    """Execute the notebooks whose inputs have changed: the book's, or with --model all for each
    model."""
    _require("papermill")
    from capcal_lib.book.pipeline import book_pages, execute, model_pages
    from capcal_lib.places import BUILD

    pages = model_pages(model) if model else book_pages()
    folder = out or BUILD / "notebooks"
    failed = execute(pages, folder, store=store, verdicts=verdicts, say=_say)
    _say(f"{len(pages) - len(failed)} of {len(pages)} pages: {folder}")
    _list_failed(failed)


@command(BOOK, "book --model smollm2-135m --store runs/local --out my-book")
def book(
    model: Models = None, store: ShownStore = None, verdicts: Verdicts = "rules", out: Folder = None
) -> None:
    """Execute the notebooks and build the book, or with --model a book of your models."""
    _require("papermill", "jupyter_book")
    from capcal_lib.book.pipeline import build_book

    index, failed = build_book(model or (), store=store, verdicts=verdicts, out=out, say=_say)
    _say(f"the book: {index}")
    _list_failed(failed)


def _require(*packages: str) -> None:
    """Refuse a command that starts other programs, unless they are installed."""
    for package in packages:
        if find_spec(package) is None:
            raise not_installed(ModuleNotFoundError(name=package))


def _list_failed(failed: "Mapping[str, str]") -> None:
    """List the pages that failed, and end with status 1 if there are any."""
    for page, why in failed.items():
        _warn(f"capcal: {page}: {why}")
    if failed:
        raise typer.Exit(1)


def main() -> None:
    """Run the command; bad input ends it with one line and exit status 2."""
    for number in STOPS:
        signal.signal(number, _stop)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # if the encoding lacks a letter
    try:
        if sys.stdout is None:
            raise InputError("standard output is closed; send it somewhere, such as > out.txt")
        status = app(standalone_mode=False)
        sys.stdout.flush()
        sys.exit(status)
    except TyperException as error:  # an unknown, missing or malformed option
        words = sanitize(error.format_message()).rstrip(".")
        remedy = GONE.get(getattr(error, "option_name", ""), "--help lists the options")
        line = f"{words}; {remedy}"
        if not sys.argv[1:]:  # the help has been printed
            sys.exit(2)
    except ModuleNotFoundError as error:
        line = str(not_installed(error))
    except InputError as error:
        line = str(error)
    except BrokenPipeError:  # the reader has closed the pipe
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # such as a full disk
        line = sanitize(error)
    except MemoryError:
        line = (
            "memory ran out; no half-written file is left. Give it less at a time, or more memory"
        )
    except (KeyboardInterrupt, SystemExit) as ended:
        if getattr(ended, "code", STOPPED) != STOPPED:
            raise
        _warn(f"capcal: stopped; finished work is kept. Go on with: {_again()}")
        sys.exit(STOPPED)
    _warn(f"capcal: {line}")
    sys.exit(2)


def _stop(*_: object) -> None:
    """Stop the command; a second signal does not interrupt it while it writes what is finished."""
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _again() -> str:
    return shlex.join(["capcal", *sys.argv[1:]])


@contextmanager
def _progress(what: str, units: str = "samples") -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on a terminal, and elsewhere print a line every ten seconds."""
    last_line = time.monotonic()
    with Progress(console=err, disable=not err.is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def move(done: int, total: int) -> None:
            nonlocal last_line
            bar.update(task, completed=done, total=total)
            waited = time.monotonic() - last_line
            if done and not err.is_terminal and (waited >= SECONDS_BETWEEN_LINES or done == total):
                last_line += waited
                left = bar.tasks[0].time_remaining  # from the pace of the new ones
                ahead = f", {spell_time(left)} to go" if left else ""
                _warn(f"{what}: {done} of {total} {units}{ahead}")

        yield move


if __name__ == "__main__":
    main()
