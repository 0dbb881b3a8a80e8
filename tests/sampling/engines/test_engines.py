"""Engines of other packages, found by their entry points."""

from pathlib import Path
from typing import Any

import pytest

from capcal_lib.errors import InputError
from capcal_lib.manifests import load_model
from capcal_lib.sampling import draw
from capcal_lib.sampling.engines import (
    ENGINES,
    close_engine,
    engine_sources,
    open_engine,
    question_seed,
)

MODULE = """
from capcal_lib.sampling.engines.simulated import SimulatedEngine


class ParrotEngine(SimulatedEngine):
    family = "parrot"
    is_open = True

    def close(self):
        self.is_open = False
"""


@pytest.fixture
def parrot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package that offers an engine, and another of the name of one of ours."""
    about = tmp_path / "parrot-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\n")
    offered = "parrot = parrot_engine:ParrotEngine\nsimulated = parrot_engine:ParrotEngine\n"
    (about / "entry_points.txt").write_text(f"[capcal.engines]\n{offered}")
    (tmp_path / "parrot_engine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("parrot")
def test_an_engine_of_another_package_draws(tmp_path: Path) -> None:
    model = load_model("simulated")
    assert open_engine(model, "parrot").family == "parrot"
    done = draw.sample(
        "simulated", "mini-exam", k=2, limit=3, engine="parrot", store=tmp_path / "store"
    )
    assert done.new == 6
    assert done.run.identity.engine == "parrot"


@pytest.mark.usefixtures("parrot")
def test_ours_keep_their_names() -> None:
    assert open_engine(load_model("simulated")).family == "simulated"
    assert engine_sources().keys() == ENGINES.keys() | {"parrot"}


@pytest.mark.usefixtures("parrot")
def test_one_model_is_in_memory_at_a_time() -> None:
    model = load_model("simulated")
    close_engine()
    first: Any = open_engine(model, "parrot")
    assert open_engine(model, "parrot") is first
    steps = model.with_settings(prompt_style="steps")
    assert open_engine(steps, "parrot") is first, "a chat in other words"
    assert open_engine(model) is not open_engine(model), "which hold none"
    assert first.is_open
    second: Any = open_engine(model.with_settings(prompt_style="completion"), "parrot")
    assert (first.is_open, second.is_open) == (False, True)
    close_engine()
    assert not second.is_open


def test_without_the_package_the_engine_is_not_known() -> None:
    with pytest.raises(InputError, match="unknown engine 'parrot'; known: "):
        open_engine(load_model("simulated"), "parrot")


def test_the_seed_of_a_question_is_kept_whole_by_every_reader_of_json() -> None:
    """A reader that knows only doubles is exact below 2^53, and a million samples are added."""
    seeds = {question_seed(0, f"question {number}") for number in range(200)}
    assert len(seeds) == 200
    assert 0 <= min(seeds) < max(seeds) < 2**48
