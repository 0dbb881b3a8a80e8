"""Data sets that are topped up to a precision."""

from pathlib import Path

import pandas as pd

from capcal_lib.reproduce import make_plan, reproduce, top_up
from capcal_lib.results import load_results
from capcal_lib.runs.run import find_run
from capcal_lib.runs.store import read_samples
from tests.reproduce.orders import small


def test_a_precision_tops_up_once_and_a_second_call_finds_nothing_to_do(tmp_path: Path) -> None:
    order = small(tmp_path, limit=100, precision=0.04)
    expected = make_plan(order).query("step == 'top up'")
    assert expected[["basis", "engine"]].to_numpy().tolist() == [["at most", "simulated"]]
    assert expected["requests"].tolist() == [100 * (top_up.MOST - 20)]
    first = reproduce(order).scores.loc["mini-exam"]
    run = find_run(tmp_path, "simulated", "mini-exam", "test")
    each = read_samples(run, ["question_id"]).groupby("question_id").size()
    assert each.min() == 20 < each.max() <= top_up.MOST
    assert make_plan(order)["requests"].sum() == 0
    pd.testing.assert_frame_equal(reproduce(order).scores.loc["mini-exam"], first)
    assert load_results(tmp_path, "simulated")["total"].max() == each.max(), "all of them count"
