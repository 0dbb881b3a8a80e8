"""The paper's experiment, whole and small: seven sets, a server of the paper's model that fails now
and then, hidden states from elsewhere, and a kill."""

import base64
import csv
import hashlib
import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from nbformat import NotebookNode

from capcal_lib.book.pipeline import book_pages
from capcal_lib.manifests import load_dataset
from capcal_lib.places import MANIFESTS, NOTEBOOKS, ROOT
from capcal_lib.reported import load_reported
from capcal_lib.sampling.engines.simulated import true_mu
from tests.pages import Run, one_kernel
from tests.sampling.chat_server import ChatServer, Fault, cut, status

pytestmark = pytest.mark.slow

MODEL = "gpt-oss-20b"
TEST, TRAINING = 6, 12  # questions of a split
LETTERS = "ABCD"
HEAD = ["<|channel|>", "analysis", "<|message|>", "Hm", "<|end|>", "<|start|>", "assistant"]
HEAD += ["<|channel|>", "final", "<|message|>"]


def words(dataset: str, split: str, number: int) -> str:
    return f"What is number {number} of the {split} questions of {dataset}?"


def row(dataset: str, split: str, number: int) -> dict[str, Any]:
    """A row in the columns of the hub; the answer follows from the number."""
    text, answer = words(dataset, split, number), str(number + 100)
    if dataset == "triviaqa-1000":
        given = {"value": f"City {answer}", "aliases": [f"Town {answer}"]}
        return {"question": text, "question_id": f"tc_{split}_{number}", "answer": given}
    if dataset == "simpleqa-verified":
        place = {"original_index": number, "topic": "Art"}
        return {"problem": text, "answer": f"City {answer}"} | place
    if dataset == "gsm8k":
        return {"question": text, "answer": f"So\n#### {answer}"}
    if dataset == "math500":
        place = {"subject": "Algebra", "level": 1, "unique_id": f"{split}/algebra/{number}.json"}
        return {"problem": text, "answer": answer} | place
    if dataset == "aime25":
        return {"id": str(number), "problem": text, "answer": answer}
    if dataset == "mmlu":
        options = [f"option {number} {letter}" for letter in LETTERS]
        subject = ["anatomy", "virology"][number % 2]
        answer = number % 4  # type: ignore[assignment]
        return {"question": text, "choices": options, "answer": answer, "subject": subject}
    names = ["Correct Answer", *(f"Incorrect Answer {place}" for place in (1, 2, 3))]
    named = {name: f"{name} {number}" for name in names}
    return {"Record ID": f"rec{number}", "Question": text, "Subdomain": "Genetics"} | named


@pytest.fixture(scope="module")
def laboratory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with manifests whose questions are stand-ins, and what makes python take them."""
    folder = tmp_path_factory.mktemp("laboratory")
    shutil.copytree(MANIFESTS, folder / "data_manifests")
    for path in (folder / "data_manifests" / "datasets").glob("*.yaml"):
        manifest = yaml.safe_load(path.read_text())
        if not manifest.get("reported_as"):
            continue
        for split, entry in manifest["splits"].items():
            more = path.stem == "math500"  # so that its probe is nearest to AIME25, as in fact
            number = TEST if split == manifest["evaluation_split"] else TRAINING + more
            rows = [row(path.stem, split, each) for each in range(number)]
            file = folder / f"{path.stem}-{split}.{'csv' if path.stem == 'gpqa' else 'jsonl'}"
            with file.open("w") as lines:
                if file.suffix == ".csv":
                    writer = csv.DictWriter(lines, list(rows[0]))
                    writer.writeheader()
                    writer.writerows(rows)
                else:
                    lines.writelines(json.dumps(each) + "\n" for each in rows)
            select = entry.get("select", {}).get("unique")
            entry.clear()
            entry |= {"file": str(file), "rows": number}
            if select:
                entry["select"] = {"unique": select}
        manifest.pop("paper_training", None)
        if path.stem in ("triviaqa-1000", "gsm8k", "math500"):
            manifest["paper_training"] = TRAINING
        path.write_text(yaml.safe_dump(manifest))
    place = str(folder / "data_manifests")
    (folder / "sitecustomize.py").write_text(
        "from pathlib import Path\n"
        "from capcal_lib import places\n"
        f"places.MANIFESTS = Path({place!r})\n"
    )
    return folder


class Model(ChatServer):
    """A stand-in for the paper's model: it reasons, and is right as often as `true_mu` says."""

    def __init__(self, folder: Path) -> None:
        super().__init__(models=(MODEL,), fault=self.misbehave)
        self.questions = json.loads((folder / "questions.json").read_text())
        self.stop_at: int | None = None
        self.reached = threading.Event()

    def misbehave(self, number: int, body: dict[str, Any]) -> Fault | None:
        if self.stop_at is not None and number >= self.stop_at:
            self.reached.set()
        faults = {7: status(500, "overloaded"), 19: status(503, "busy"), 31: cut}
        return faults.get(number % 200)

    def reply(self, body: dict[str, Any]) -> dict[str, Any]:
        asked = body["messages"][-1]["content"]
        rng = random.Random(hashlib.sha256(repr((asked, body["seed"])).encode()).digest())
        if "Proposed answer:" in asked:
            golds, proposed = re.findall(r"answers?: (.+)", asked)
            said = "CORRECT" if proposed in golds.split(" or ") else "INCORRECT"
            return self._message(said)
        [found] = [each for each in self.questions if each["text"] in asked]
        mu = true_mu(found["id"])
        if body.get("logprobs"):
            said = "Yes" if mu > 0.5 else "No"
            tops = [{"token": "Yes", "logprob": -0.1}, {"token": "No", "logprob": -2.4}]
            if said == "No":
                tops = [top | {"logprob": -2.5 - top["logprob"]} for top in tops]
            places = [{"token": piece, "top_logprobs": []} for piece in HEAD]
            places.append({"token": said, "top_logprobs": tops})
            return self._message(said) | {"logprobs": {"content": places}}
        if "How likely are you" in asked:
            return self._message(f"\\boxed{{{min(0.95, mu + 0.1):.2f}}}")
        wrong = rng.choice(["7", "9"]) if found["kind"] != "choice" else "Z"
        if found["kind"] == "choice":
            wrong = rng.choice([letter for letter in LETTERS if letter != found["gold"]])
        given = found["gold"] if rng.random() < mu else wrong
        return self._message(f"It must be \\boxed{{{given}}}.")

    def _message(self, said: str) -> dict[str, Any]:
        message = {"role": "assistant", "content": said, "reasoning": "Let me think."}
        return {"message": message, "finish_reason": "stop"}


def command(*words: str) -> list[str]:
    return [sys.executable, "-W", "error", "-m", "capcal_lib.cli", *words]


def environment(folder: Path, server: ChatServer) -> dict[str, str]:
    path = os.pathsep.join([str(folder), str(ROOT)])
    return os.environ | {"PYTHONPATH": path, "OPENAI_BASE_URL": server.url, "COLUMNS": "200"}


@pytest.fixture(scope="module")
def model(laboratory: Path) -> Iterator[Model]:
    listing = (
        "import json\n"
        "from capcal_lib.manifests import dataset_names, load_dataset\n"
        "from capcal_lib.questions import load_questions\n"
        "found = [(name, split) for name in dataset_names() if load_dataset(name).reported_as\n"
        "         for split in load_dataset(name).splits]\n"
        "rows = [{'id': one.id, 'text': one.text, 'gold': one.answer.gold,\n"
        "         'kind': one.answer.kind} for place in found for one in load_questions(*place)]\n"
        "print(json.dumps(rows))"
    )
    path = os.pathsep.join([str(laboratory), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", listing],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    (laboratory / "questions.json").write_text(done.stdout)
    with Model(laboratory) as server:
        yield server


def reproduce(folder: Path, server: Model, *options: str) -> subprocess.CompletedProcess[str]:
    asked = ["reproduce", "--model", MODEL, "--engine", "openai", *options]
    return subprocess.run(
        command(*asked),
        env=environment(folder, server),
        capture_output=True,
        text=True,
        check=False,
    )


def kill_on_the_way(folder: Path, server: Model, requests: int, *options: str) -> None:
    """Kill the command after so many more requests."""
    server.reached.clear()
    server.stop_at = len(server.asked) + requests
    asked = ["reproduce", "--model", MODEL, "--engine", "openai", *options]
    with subprocess.Popen(
        command(*asked),
        env=environment(folder, server),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert server.reached.wait(60)
        process.kill()
    assert process.returncode < 0
    server.stop_at = None


def table(printed: str) -> pd.DataFrame:
    """Read the table that the command prints."""
    lines = [re.split(r"\s{2,}", line.strip()) for line in printed.splitlines()]
    start = next(place for place, line in enumerate(lines) if line[0] == "dataset")
    rows = [line[:3] for line in lines[start + 1 :] if len(line) >= 5]
    found = pd.DataFrame(rows, columns=["dataset", "method", "measured"])
    return found.astype({"measured": float}).set_index(["dataset", "method"])["measured"]


READ = """
import sys
from capcal_lib.probes.features import extract
from capcal_lib.runs import find_run
_, store, model, *places = sys.argv
for place in places:
    extract(find_run(store, model, *place.split(":")), engine="simulated")
"""


def read_what_is_left(laboratory: Path, model: Model, said: str) -> None:
    """Read the hidden states that a reproduction says are not done, as where the weights are."""
    left = [line for line in said.splitlines() if line.startswith("capcal: not done:")]
    places = []
    for line in left:
        assert line.endswith("capcal features --engine transformers does")
        places += re.findall(r"hidden states of (\S+) \((\S+)\)", line)
    assert len(places) == len(left) > len(DATASETS)
    subprocess.run(
        [sys.executable, "-c", READ, laboratory / "runs", MODEL, *map(":".join, places)],
        env=environment(laboratory, model),
        check=True,
    )


DATASETS = ["aime25", "gpqa", "gsm8k", "math500", "mmlu", "simpleqa-verified", "triviaqa-1000"]


@pytest.fixture(scope="module")
def done(laboratory: Path, model: Model) -> str:
    """What the command prints in the end, after a kill and without the hidden states."""
    options = ["--recipe", "paper", "--store", str(laboratory / "runs")]
    kill_on_the_way(laboratory, model, 200, *options)
    sampled = reproduce(laboratory, model, *options)
    assert (sampled.returncode, "Traceback" in sampled.stderr) == (0, False), sampled.stderr
    read_what_is_left(laboratory, model, sampled.stderr)
    done = reproduce(laboratory, model, *options)
    assert (done.returncode, "not done" in done.stderr) == (0, False), done.stderr
    return done.stdout


def test_the_experiment_comes_out_of_one_command(laboratory: Path, model: Model, done: str) -> None:
    found = table(done)
    assert list(found.index.unique("dataset")) == DATASETS
    named = {"triviaqa-1000": "triviaqa", "simpleqa-verified": "simpleqa"}
    printed = load_reported("main").query("model == @MODEL")
    for dataset in DATASETS:
        own = printed[printed["dataset"] == named.get(dataset, dataset)]
        assert set(own["method"]) <= set(found[dataset].index), "every cell of the paper's table"
        beside = [line for line in done.splitlines() if line.split()[:1] == [dataset]]
        assert sum(bool(re.search(r"\b(yes|no)\b", line)) for line in beside) >= len(own)

    asked = len(model.asked)
    again = reproduce(laboratory, model, "--recipe", "paper", "--store", str(laboratory / "runs"))
    assert again.stdout == done
    assert len(model.asked) == asked


# Pages with tables that have the numbers of the paper's tables and figures.
PAGES: list[tuple[str, dict[str, str]]] = [
    ("01_targets_divergence", {}),
    ("04_main_table", {}),
    ("05_pass_at_k", {"dataset": "math500"}),
    ("05_pass_at_k", {"dataset": "aime25"}),
    ("06_budget_allocation", {"dataset": "aime25"}),
    ("07_response_consistency", {}),
]


def shown_table(page: NotebookNode, label: str) -> pd.DataFrame:
    """Read a table that a page shows with a mark, from what it offers as CSV, in all its digits."""
    [cell] = [each for each in page["cells"] if each["metadata"].get("label") == label]
    outputs = json.dumps(cell["outputs"])
    assert 'class=\\"evidence measured\\"' in outputs
    rows, *_ = re.findall(r"data:text/csv;base64,([\w+/=]+)", outputs)
    return pd.read_csv(io.BytesIO(base64.b64decode(rows)))


def shown_scores(page: NotebookNode, label: str) -> dict[tuple[str, str], float]:
    """Read a table of scores, by data set and method, of which a page shows three decimals."""
    wide = shown_table(page, label).set_index("method")
    titles = {name: load_dataset(name).title for name in DATASETS}
    return {
        (name, str(method)): float(re.findall(r"\d*\.\d+", str(cell))[0])
        for name, title in titles.items()
        for method, cell in wide[title].dropna().items()
    }


def rows_of(store: Path, dataset: str, name: str) -> pd.DataFrame:
    """Read a file beside the samples of an evaluation split."""
    split = load_dataset(dataset).evaluation_split
    [file] = (store / MODEL).glob(f"{dataset}-{split}/*/{name}.parquet")
    return pd.read_parquet(file)


def accuracy_of(store: Path, dataset: str) -> "pd.Series[float]":
    """Return the share of right samples of each question of an evaluation split."""
    verdicts = rows_of(store, dataset, "verdicts")
    return (verdicts["verdict"] == "correct").groupby(verdicts["question_id"]).mean()


def check_tables(store: Path, pages: dict[str, NotebookNode]) -> None:
    """Ask each table of the paper for its rows, its cells, and one value by another way."""
    rows, accuracy = partial(rows_of, store), partial(accuracy_of, store)

    def error(said: "pd.Series[float]", dataset: str) -> float:
        mu = accuracy(dataset)
        return float(((said.reindex(mu.index).fillna(0.5) - mu) ** 2).mean())

    def p_true(dataset: str) -> "pd.Series[float]":
        return rows(dataset, "confidence-p-true").set_index("question_id")["confidence"]

    mixed = "Probe (TriviaQA + GSM8K)"
    probes = ["Probe (TriviaQA)", "Probe (GSM8K)", "Probe (MATH)", mixed]
    asked = ["Verbalized confidence", "P(True)", "Response consistency"]
    main = shown_scores(pages["04_main_table"], "main-scores")  # table 2
    methods = {"Uniform random", "Best constant", *asked, *probes[:3], "Oracle RC", "Oracle CC"}
    assert {*main} == {(name, method) for name in DATASETS for method in methods}
    assert main["gsm8k", "P(True)"] == pytest.approx(error(p_true("gsm8k"), "gsm8k"), abs=1e-3)
    table = shown_table(pages["04_main_table"], "main-overview").set_index("dataset")  # table 4
    assert len(table) == len(DATASETS)
    assert table.loc["GSM8K", "mean μ"] == pytest.approx(accuracy("gsm8k").mean())

    for dataset in ("math500", "aime25"):  # tables 3 and 8, figure 9
        table = shown_table(pages[f"05_pass_at_k {dataset}"], "passk-errors-paper")
        table = table.set_index("dataset").loc[load_dataset(dataset).title].set_index("method")
        oracles = [f"Oracle {target} (in sample)" for target in ("CC", "RC")]
        assert {*table.index} == {*oracles, "Probe (MATH)", *asked[:2]}
        assert table.notna().all(axis=None)
        kept = rows(dataset, "predictions-paper*").query("training == 'math500'")
        five = [
            error(one["confidence"], dataset)
            for _, one in kept.set_index("question_id").groupby("split")
        ]
        assert len(five) == 5
        shown = table.loc["Probe (MATH)", "pass@1"]
        assert shown == pytest.approx(sum(five) / 5, rel=1e-5)
    found = error(p_true("aime25"), "aime25")
    assert table.loc["P(True)", "pass@1"] == pytest.approx(found)

    table = shown_table(pages["07_response_consistency"], "consistency-table")  # table 6
    table = table.set_index("dataset")[[f"{votes} votes" for votes in (5, 10, 20)]]
    assert table.notna().all(axis=None)
    assert len(table) == len(DATASETS)
    first = rows("gsm8k", "verdicts").query("sample_index < 5").groupby("question_id")["extracted"]
    share = first.agg(lambda votes: votes.value_counts().iloc[0] / 5)
    assert table.loc["GSM8K", "5 votes"] == pytest.approx(error(share, "gsm8k"))
    voted = main["gsm8k", "Response consistency"]
    assert table.loc["GSM8K", "10 votes"] == pytest.approx(voted, abs=1e-3)

    table = shown_table(pages["06_budget_allocation aime25"], "budget-success")  # figures 5 and 10
    table = table.set_index(["dataset", "rule"])["B = 1"]
    for dataset in ("aime25", "math500"):
        even = table[load_dataset(dataset).title, "Even spending"]
        assert even == pytest.approx(accuracy(dataset).mean())
    table = shown_table(pages["01_targets_divergence"], "targets-distance")  # figures 2 and 11
    mu = accuracy("gsm8k")
    distance = table.set_index("dataset").loc["GSM8K", "mean distance"]
    assert distance == pytest.approx((2 * mu * (1 - mu)).mean())


@pytest.fixture(scope="module")
def run(laboratory: Path, model: Model) -> Iterator[Run]:
    with one_kernel(**environment(laboratory, model)) as run:
        yield run


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_pages_measure_the_tables_and_figures_of_the_paper(
    laboratory: Path, done: str, run: Run
) -> None:
    store = laboratory / "runs"
    said = dict(re.findall(r"-p (\w+) (\S+)", done))  # how the command opens its page
    assert said["model"] == MODEL
    assert said["store"] == str(store)
    pages: dict[str, NotebookNode] = {}
    for page, parameters in PAGES:
        declared = (NOTEBOOKS / f"{page}.py").read_text(encoding="utf-8")
        given = {name: value for name, value in said.items() if f"\n{name}: str" in declared}
        executed = run(page, **given | parameters)
        pages[" ".join([page, *parameters.values()])] = executed
        assert "has no samples of this model" not in json.dumps(executed)
    check_tables(store, pages)


@pytest.mark.usefixtures("done")
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning")
def test_every_page_is_executed_on_the_experiment(laboratory: Path, run: Run) -> None:
    """By our protocol, each table's numbers from the rows of the store."""
    store = laboratory / "runs"
    pages = {name: run(name, model=MODEL, store=str(store)) for name in book_pages()}

    titles = {name: load_dataset(name).title for name in DATASETS}
    mu = {name: accuracy_of(store, name) for name in DATASETS}
    noise = {name: share * (1 - share) / 99 for name, share in mu.items()}  # of 100 samples
    distances = shown_table(pages["01_targets_divergence"], "targets-distance")
    distances = distances.set_index("dataset")["mean distance"]
    scores = shown_scores(pages["04_main_table"], "main-scores")
    means = shown_table(pages["04_main_table"], "main-overview")
    means = means.set_index("dataset")["mean μ"]
    constants = shown_table(pages["07_response_consistency"], "consistency-table")
    constants = constants.set_index("dataset")["best constant"]
    for name, title in titles.items():
        said = rows_of(store, name, "confidence-p-true").set_index("question_id")["confidence"]
        terms = (said.reindex(mu[name].index) - mu[name]) ** 2 - noise[name]
        others = (mu[name].sum() - mu[name]) / (len(mu[name]) - 1)
        constant = (others - mu[name]) ** 2 - noise[name]
        assert len(said) == len(mu[name]) == TEST
        assert means[title] == pytest.approx(mu[name].mean())
        assert scores[name, "P(True)"] == pytest.approx(terms.mean(), abs=1e-3)
        assert constants[title] == pytest.approx(constant.mean())
        assert distances[title] == pytest.approx(2 * 100 * noise[name].mean())
