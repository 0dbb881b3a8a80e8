import pytest

from capcal_lib.errors import InputError
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.results.look import named_run


def test_a_run_is_named_by_what_it_is_of_or_by_its_key() -> None:
    run = named_run(RECORDED_RUNS, "", model="smollm2-135m", dataset="gsm8k", split="test")
    assert run.place == {"model": "smollm2-135m", "dataset": "gsm8k", "split": "test"}
    assert named_run(RECORDED_RUNS, run.folder.name[:6], model="smollm2-135m") == run
    assert named_run(RECORDED_RUNS, run.folder.name) == run
    with pytest.raises(InputError, match=r"2 runs match, .*; choose one with"):
        named_run(RECORDED_RUNS, "", model="smollm2-135m", dataset="gsm8k")  # of two splits
    with pytest.raises(InputError, match=r"no run that fits simulated, .*; see: capcal status"):
        named_run(RECORDED_RUNS, run.folder.name, model="simulated")
