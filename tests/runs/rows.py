"""A run of a few rows, to write, to damage and to find again. Processes that tests kill import it
too, each anew: it needs only `runs`.
"""

from pathlib import Path

import pytest

from capcal_lib.manifests import Sampling
from capcal_lib.runs import Run
from capcal_lib.runs import store as store_module
from capcal_lib.runs.run import Identity, Record, run_of
from capcal_lib.runs.store import Sample, open_writer, read_samples

IDENTITY = Identity(
    model="m",
    weights="w",
    dataset="d",
    split="test",
    questions="q",
    prompt_style="short",
    prompt_template="t",
    chat_template={},
    sampling=Sampling(temperature=1.0, max_tokens=8, context_tokens=64),
    engine="simulated",
    seed=0,
)
RECORD = Record(identity=IDENTITY, made_with={"capcal": "test"})


def row(question: str, index: int, response: str = "Paris") -> Sample:
    return Sample(question, index, response, None, "stop", 10, 2)


def keys(folder: Path) -> list[tuple[str, int]]:
    samples = read_samples(Run(folder))
    return list(zip(samples["question_id"], samples["sample_index"], strict=True))


def shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int = 3) -> Path:
    """Make a run of a few parts with two rows each."""
    monkeypatch.setattr(store_module, "ROWS", 2)
    with open_writer(tmp_path, RECORD) as writer:
        for index in range(2 * number):
            writer.append([row("a", index, f"answer {index}")])
    return run_of(tmp_path, IDENTITY).folder


def flip(path: Path, place: int) -> None:
    content = bytearray(path.read_bytes())
    content[place % len(content)] ^= 1 << place % 7
    path.write_bytes(bytes(content))
