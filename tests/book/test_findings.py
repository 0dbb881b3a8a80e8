"""The comparisons behind the claims, each against its naive definition, on runs made by hand."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from capcal_lib.applications.budget import allocate, success_rate
from capcal_lib.book import figures, findings
from capcal_lib.book.findings import P_TRUE, VERBALIZED
from capcal_lib.confidence.consistency import Answers, vote_terms
from capcal_lib.metrics.intervals import Interval
from capcal_lib.reported import load_reported
from capcal_lib.results import tables
from capcal_lib.results.evaluation import CONSISTENCY, Evaluation
from capcal_lib.results.tables import UNIFORM
from tests.results.test_tables import EDGES, FOUR, NAN, evaluation, rng

N, K = 40, 30
MU = np.linspace(0, 1, N)
OWN, NEAR, FAR = "Probe (Mini exam)", "Probe (Mini capitals)", "Probe (GSM8K)"


def answered(one: Evaluation) -> Answers:
    """Let each question's correct samples come in an order of chance and agree, and the wrong ones differ."""
    c, n, width = one.counts.correct, one.counts.total, max(1, int(one.counts.total.max()))
    drawn = np.arange(width) < n[:, None]
    right = np.where(drawn, np.arange(width) < c[:, None], np.nan)
    for row, size in enumerate(n):
        right[row, :size] = rng(row).permutation(right[row, :size])
    names = np.array([[f"wrong {place}" for place in range(width)]] * len(n), object)
    names[right == 1] = "right"
    names[~drawn] = None
    return Answers(one.counts.question_ids, names, right, drawn, 20.0)


def world(*, total: int = K, **changed: list[float]) -> tuple[Evaluation, Answers]:
    correct = rng(1).binomial(total, MU).tolist()
    found = {
        VERBALIZED: (1 - MU).tolist(),
        P_TRUE: [NAN if row % 4 == 0 else float(MU[row]) for row in range(N)],
        OWN: MU.tolist(),
        NEAR: [1.0] * N,
    }
    one = replace(evaluation(correct, [total] * N, found | changed), prompt_style="short", k_eval=100)
    return one, answered(one)


def test_comparisons_are_differences_in_the_scores_of_the_main_table() -> None:
    one, answers = world()
    table = findings.comparisons(one, answers, rng())
    scores = tables.main_table([one], rng()).set_index("method")["brier"]
    row = table.set_index(["item", "method"])
    for item, method in [(findings.OWN, OWN), (findings.AWAY, NEAR), (findings.SAID, VERBALIZED)]:
        assert row.loc[(item, method), "difference"] == pytest.approx(scores[method] - scores[UNIFORM])
        assert row.loc[(item, method), "questions"] == N
    assert row.loc[(findings.OWN, OWN), "verdict"] == "holds"
    assert row.loc[(findings.SAID, VERBALIZED), "verdict"] == "the other way"
    assert row.loc[(findings.P_YES, P_TRUE), "questions"] == 30
    assert set(table["prompts"]) == {"short"}
    assert set(table["evidence"]) == {"measured"}


def test_the_cheapest_holds_only_against_every_rival() -> None:
    def verdict(**changed: list[float]) -> "pd.Series[str]":
        table = findings.comparisons(*world(**changed), rng())
        (row,) = [row for _, row in table[table["item"] == findings.CHEAPEST].iterrows()]
        return row[["method", "against", "verdict"]]

    # P(True) knows mu as well as the probe does, on the questions that have it
    assert verdict().tolist() == [OWN, P_TRUE, "cannot be told"]
    assert verdict(**{OWN: (1 - MU).tolist()})["verdict"] == "the other way"
    assert verdict(**{P_TRUE: (1 - MU).tolist()})["verdict"] == "holds"


def test_consistency_votes_in_blocks_where_there_are_enough_samples() -> None:
    one, answers = world()
    assert CONSISTENCY not in one.confidences  # no spare samples after k_eval
    table = findings.comparisons(one, answers, rng()).set_index("item")
    votes = vote_terms(answers, 10).groupby("row")["disjoint"].mean().mean()
    probe = tables.main_table([one], rng()).set_index("method").loc[OWN, "brier"]
    assert table.loc[findings.VOTE, "difference"] == pytest.approx(probe - votes)
    few = findings.comparisons(*world(total=8), rng())
    assert findings.VOTE not in set(few["item"])
    costs = findings.relative_costs(*world(total=8))
    assert np.isnan(costs[CONSISTENCY].iloc[0])
    assert findings.relative_costs(one, answers)[[CONSISTENCY, P_TRUE]].iloc[0].tolist() == [10, 3 / 20]


def naive_pass(samples: list[int], k: int) -> float:
    return float(np.mean([any(chosen) for chosen in combinations(samples, k)]))


def test_pass_at_k_is_judged_against_the_other_questions_and_against_one_response() -> None:
    s = [0.3, 0.1, 0.9]
    given = {VERBALIZED: s}
    one = replace(evaluation([2, 0, 4], [5, 5, 5], given), prompt_style="short")
    table = findings.comparisons(one, answered(one), rng()).set_index(["item", "at"])
    for k in (5,):  # fewer than 10 samples: as many as there are
        actual = np.array([naive_pass([1] * c + [0] * (5 - c), k) for c in (2, 0, 4)])
        said = 1 - (1 - np.array(s)) ** k
        others = [(actual.sum() - each) / 2 for each in actual]
        expected = np.mean((said - actual) ** 2 - (others - actual) ** 2)
        assert table.loc[(findings.PASSK_ASKED, f"k = {k}"), "difference"] == pytest.approx(expected)
    assert (findings.RC_ASKED, "k = 5") not in table.index  # no sample is left beside five others
    said = 1 - (1 - np.array(s)) ** 2
    terms = findings._against_one_response(said, one.counts.correct, one.counts.total, 2)
    for row, c in enumerate((2, 0, 4)):
        samples = [1] * c + [0] * (5 - c)
        losses = []
        for place, response in enumerate(samples):
            truth = naive_pass(samples[:place] + samples[place + 1 :], 2)
            losses.append((said[row] - truth) ** 2 - (response - truth) ** 2)
        assert terms[row] == pytest.approx(np.mean(losses))


def test_both_ks_are_there_where_the_samples_suffice() -> None:
    table = findings.comparisons(*world(), rng())
    rows = table[table["item"] == findings.PASSK_PROBE]
    assert rows["at"].tolist() == ["k = 10", "k = 30"]
    assert rows["method"].unique().tolist() == [OWN]


def test_budgets_count_what_is_left_unsolved() -> None:
    one, answers = world()
    table = findings.comparisons(one, answers, rng(), budgets=(2,)).set_index(["item", "method"])
    c, n = one.counts.correct, one.counts.total
    even = success_rate(np.full(N, 2), c, n)
    for method, item in ((OWN, findings.BUDGET_PROBE), (P_TRUE, findings.BUDGET_ASKED)):
        s = np.nan_to_num(one.confidences[method].values, nan=0.5)
        solved = success_rate(allocate(s, 2 * N, max_per_question=n), c, n)
        assert table.loc[(item, method), "difference"] == pytest.approx(even - solved)


def test_skill_is_the_share_of_the_baseline_that_is_won() -> None:
    one, answers = world()
    table = findings.skills(one, answers, rng()).set_index("method")
    scores = tables.main_table([one], rng()).set_index("method")["brier"]
    assert table.loc[OWN, "skill"] == pytest.approx(1 - scores[OWN] / scores[UNIFORM])
    assert table.loc[OWN, "kind"] == "Own probe"
    terms = tables.brier_terms(one)  # the interval is near that of the ratio itself
    drawn = rng(2).integers(N, size=(4000, N))
    ratios = 1 - terms[NEAR].to_numpy()[drawn].mean(axis=1) / terms[UNIFORM].to_numpy()[drawn].mean(axis=1)
    np.testing.assert_allclose(
        table.loc[NEAR, ["low", "high"]].to_list(), np.quantile(ratios, [0.025, 0.975]), atol=0.08
    )


def test_another_seed_gives_other_intervals_and_no_other_differences() -> None:
    one, answers = world()
    first, same, other = (findings.comparisons(one, answers, rng(seed)) for seed in (0, 0, 1))
    pd.testing.assert_frame_equal(first, same)
    assert (first["low"] != other["low"]).any()
    pd.testing.assert_series_equal(first["difference"], other["difference"])


def test_whole_groups_are_drawn() -> None:
    one, answers = world()
    grouped = replace(one, groups=np.repeat(["a", "b", "c", "d"], N // 4))
    alone, together = (findings.comparisons(each, answers, rng()) for each in (one, grouped))
    assert (alone["low"] != together["low"]).any()


def test_the_papers_numbers_are_compared_as_printed() -> None:
    table = findings.reported_comparisons()
    main = load_reported("main").set_index(["model", "method", "dataset"])["value"]
    rows = table[(table["model"] == "gpt-oss-20b") & (table["data set"] == "MATH-500")]
    own = rows[(rows["item"] == findings.OWN) & (rows["method"] == "Probe (MATH)")]
    less = main["gpt-oss-20b", "Probe (MATH)", "math500"] - main["gpt-oss-20b", UNIFORM, "math500"]
    assert own["difference"].tolist() == [pytest.approx(less)]
    passk = load_reported("passk_math500").set_index(["model", "method", "k"])["value"]["gpt-oss-20b"]
    at = rows[(rows["item"] == findings.RC_PROBE) & (rows["at"] == "k = 4")].iloc[0]
    assert at["difference"] == pytest.approx(passk["Probe (MATH)", 4] - passk["Oracle RC", 4])
    budget = (
        load_reported("budget", source="reference code")
        .set_index(["model", "dataset", "method", "k"])["value"]
        .sort_index()
    )
    spent = budget["gpt-oss-20b", "math500"]
    at = rows[(rows["item"] == findings.BUDGET_PROBE) & (rows["at"] == "B = 2")].iloc[0]
    assert at["difference"] == pytest.approx(spent["Uniform allocation", 2] - spent["Probe (MATH)", 2])
    assert set(table["evidence"]) == {"reported"}
    assert table["low"].isna().all()
    wanted = np.where(
        table["difference"] < 0, "holds", np.where(table["difference"] > 0, "the other way", "cannot be told")
    )
    alone = table["item"] != findings.CHEAPEST
    assert (table["verdict"] == wanted)[alone].all()


def test_a_tally_adds_up_and_keeps_models_prompts_and_evidence_apart() -> None:
    one, answers = world()
    short = findings.comparisons(one, answers, rng())
    steps = short.assign(prompts="steps")
    table = findings.gather([short, steps, findings.reported_comparisons(), pd.DataFrame()])
    tally = findings.tally(table)
    assert (tally[list(findings.VERDICTS)].sum(axis=1) == tally["of"]).all()
    assert tally["of"].sum() == len(table)
    assert tally["claim"].is_monotonic_increasing
    assert {"short", "steps", "paper"} == set(tally["prompts"])
    assert not (tally.groupby("prompts")["evidence"].nunique() > 1).any()
    for claim in (1, 2, 3, 4):
        assert set(findings.of_claim(tally, claim)["claim"]) == {claim}
    assert findings.counted(table, findings.OWN) == (2, 0, 0, 2)  # the paper's are not measured
    assert findings.counted(pd.DataFrame(), findings.OWN) == (0, 0, 0, 0)


def test_mean_skills_have_a_row_a_model_and_form_of_prompt() -> None:
    one, answers = world()
    table = findings.gather([findings.skills(one, answers, rng()), findings.reported_skills()])
    means = findings.mean_skills(table.assign(parameters=table["parameters"].fillna(1e8)))
    assert means["model"].tolist()[0] == one.model.title
    assert means["parameters"].is_monotonic_increasing
    assert means["data sets"].tolist() == [1, 7, 7, 7]
    assert means.loc[means["model"] == "gpt-oss-20b", "parameters"].item() == pytest.approx(20.9, abs=0.05)


@pytest.mark.parametrize("one", [FOUR, *EDGES.values()], ids=["four", *EDGES])
def test_nothing_stumbles_over_an_edge(one: Evaluation) -> None:
    one = replace(one, prompt_style="short")
    answers = answered(one)
    made = findings.comparisons(one, answers, rng())
    skill = findings.skills(one, answers, rng())
    for table in (made, findings.tally(made), findings.relative_costs(one, answers), findings.mean_skills(skill)):
        tables.show(table, "Edge.").to_html()
    figures.findings(findings.tally(made))
    figures.skills(skill)


def test_figures_show_every_model_and_method() -> None:
    one, answers = world()
    table = findings.gather([findings.comparisons(one, answers, rng()), findings.reported_comparisons()])
    (axes,) = figures.findings(findings.tally(table)).axes
    assert axes.get_xticklabels()[0].get_text().split("\n")[0] == one.model.title
    assert sum(int(text.get_text()) for text in axes.texts) == len(table)
    skills = findings.gather([findings.skills(one, answers, rng()), findings.reported_skills()])
    panels = figures.skills(skills).axes[: len(findings.KINDS)]
    assert [axes.get_title() for axes in panels] == list(findings.KINDS)
    bottom = min(axes.get_ylim()[0] for axes in panels)
    assert bottom < min(skills["skill"].min(), skills["low"].min())  # no point lies outside


def test_a_verdict_needs_the_whole_interval() -> None:
    assert [findings.judge(Interval(0, *limits)) for limits in ((-1, 0), (0, 1), (-2, -1), (1, 2))] == [
        "cannot be told",
        "cannot be told",
        "holds",
        "the other way",
    ]
