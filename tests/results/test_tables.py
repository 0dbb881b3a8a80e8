"""Each table against its naive definition, on evaluations of two to four questions."""

import math
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.confidence import estimated
from capcal_lib.grading.counts import Counts
from capcal_lib.manifests import load_dataset, load_model
from capcal_lib.metrics.intervals import binomial_interval
from capcal_lib.reported import load_reported
from capcal_lib.results import tables
from capcal_lib.results.evaluation import CONSISTENCY, Evaluation, Evidence
from capcal_lib.results.tables import ORACLE_CC, ORACLE_RC, UNIFORM

NAN = float("nan")
IN_PAPER = ("gpt-oss-20b", "qwen3-8b", "olmo-3-7b-instruct")


def evaluation(
    correct: list[int],
    total: list[int],
    confidences: Mapping[str, list[float]] | None = None,
    *,
    dataset: str = "mini-exam",
    evidence: Evidence = "measured",
    no_answer: list[int] | None = None,
    not_scored: list[int] | None = None,
) -> Evaluation:
    """Put together an evaluation by hand."""
    ids, zeros = [f"q{row}" for row in range(len(correct))], [0] * len(correct)
    counts = Counts(np.array(ids), *(np.array(given or zeros) for given in (correct, total, no_answer, not_scored)))
    return Evaluation(
        model=load_model("simulated"),
        dataset=load_dataset(dataset),
        evidence=evidence,
        sampled=True,
        source="by hand",
        counts=counts,
        answer_tokens=20.0,
        confidences={name: estimated(ids, values, tokens=3) for name, values in (confidences or {}).items()},
    )


FOUR = evaluation(
    [2, 4, 0, 3],
    [4, 4, 4, 6],
    {"P(True)": [0.5, 0.9, 0.2, NAN], "Verbalized confidence": [0.9, 0.9, 0.9, 0.6], "Probe (Mini exam)": [NAN] * 4},
)
# What nothing may stumble over.
EDGES = {
    "one question": evaluation([1], [2], {"P(True)": [0.5]}),
    "one question, one sample": evaluation([1], [1], {"P(True)": [0.5]}),
    "a question that is not scored": evaluation([1, 0], [2, 0], {"P(True)": [0.5, 0.5]}, not_scored=[0, 2]),
    "nothing scored": evaluation([0, 0], [0, 0], {"P(True)": [0.5, NAN]}, not_scored=[3, 3]),
    "nothing at all": evaluation([0], [0]),
    "no confidences": evaluation([1, 2], [4, 4]),
    "all confidences missing": evaluation([1, 2], [4, 4], {"P(True)": [NAN, NAN]}),
    "confidences only where nothing is scored": evaluation([1, 0], [4, 0], {"P(True)": [NAN, 0.5]}),
    "one sample each": evaluation([1, 0], [1, 1], {"P(True)": [0.5, 0.5]}),
}


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mean(values: list[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else NAN


def rows(one: Evaluation) -> list[tuple[int, int]]:
    return list(zip(one.counts.correct.tolist(), one.counts.total.tolist(), strict=True))


def test_overview() -> None:
    one = evaluation([2, 3, 0], [4, 4, 0], no_answer=[1, 0, 0], not_scored=[0, 0, 4])
    table = tables.overview([one, FOUR], rng())
    first = table.iloc[0]
    assert first[["data set", "questions", "samples"]].tolist() == ["Mini exam", 3, 12]
    assert first["each"] == "0 to 4"
    assert first["mean mu_hat"] == pytest.approx((0.5 + 0.75) / 2)
    assert first["95 % interval"] == "[0.500,\u00a00.750]"
    assert first["no answer"] == pytest.approx(1 / 12)
    assert first["not scored"] == pytest.approx(4 / 12)
    assert table["evidence"].tolist() == ["measured", "measured"]


def test_targets() -> None:
    one = evaluation([2, 4, 1, 0, 1], [4, 4, 2, 0, 1])
    row = tables.targets([one]).iloc[0]
    distances = [  # of each sample of each question, one by one
        mean([abs(sample - c / n) for sample in [1] * c + [0] * (n - c)]) for c, n in rows(one) if n
    ]
    assert row["mean |C − mu|"] == pytest.approx(mean(distances))
    assert row["0.1 < mu < 0.9"] == pytest.approx(2 / 4)  # the question that is not scored is not a quarter
    unbiased = [np.var([1] * c + [0] * (n - c), ddof=1) for c, n in rows(one) if n > 1]
    assert row["correctness variance"] == pytest.approx(mean(unbiased))
    assert row["questions"] == 5


counted = st.integers(0, 6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
stated = st.one_of(st.just(NAN), st.floats(0, 1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(counted, stated), min_size=1, max_size=4))
def test_theorem_2_holds_to_rounding(drawn: list[tuple[tuple[int, int], float]]) -> None:
    one = evaluation([c for (c, _), _ in drawn], [n for (_, n), _ in drawn], {"P(True)": [s for _, s in drawn]})
    table = tables.theorem_2(one)
    there = [(c, n, s) for (c, n), s in drawn if n and not math.isnan(s)]
    if not there:
        assert table.empty
        return
    assert abs(table["gap"][0]) < 1e-12
    assert table["capability Brier"][0] == pytest.approx(mean([(s - c / n) ** 2 for c, n, s in there]))
    response = mean([mean([(s - z) ** 2 for z in [1] * c + [0] * (n - c)]) for c, n, s in there])
    assert table["expected response Brier"][0] == pytest.approx(response)


def naive_terms(one: Evaluation, corrected: bool, fallback: float | None) -> dict[str, list[float]]:
    terms: dict[str, list[float]] = {name: [] for name in (UNIFORM, *one.confidences, ORACLE_RC, ORACLE_CC)}
    for row, (c, n) in enumerate(rows(one)):
        if n < 2:
            for column in terms.values():
                column.append(NAN)
            continue
        mu = c / n
        off = mu * (1 - mu) / (n - 1) if corrected else 0.0
        terms[UNIFORM].append(1 / 3 - mu + mu**2 - off)
        terms[ORACLE_RC].append(mean([(z - mu) ** 2 - off for z in [1] * c + [0] * (n - c)]) + 2 * off * corrected)
        terms[ORACLE_CC].append(0.0)
        for name, found in one.confidences.items():
            s = found.values[row]
            s = fallback if math.isnan(s) and fallback is not None else s
            terms[name].append((s - mu) ** 2 - off)
    return terms


@pytest.mark.parametrize("corrected", [True, False])
@pytest.mark.parametrize("fallback", [None, 0.5])
@pytest.mark.parametrize("one", [FOUR, *EDGES.values()], ids=["four", *EDGES])
def test_brier_terms(one: Evaluation, corrected: bool, fallback: float | None) -> None:
    found = tables.brier_terms(one, corrected=corrected, fallback=fallback)
    expected = pd.DataFrame(naive_terms(one, corrected, fallback), index=one.counts.question_ids)
    assert found.columns.tolist() == expected.columns.tolist()
    np.testing.assert_allclose(found.to_numpy(float), expected.to_numpy(float), atol=1e-12)


def test_oracles_are_exact_expectations() -> None:
    """Oracle RC knows one sample: its unbiased score against an independent mu_hat is the unbiased variance."""
    terms = tables.brier_terms(FOUR)
    for term, (c, n) in zip(terms[ORACLE_RC], rows(FOUR), strict=True):
        samples = [1] * c + [0] * (n - c)
        pairs = [(a - b) ** 2 / 2 for i, a in enumerate(samples) for j, b in enumerate(samples) if i != j]
        assert term == pytest.approx(mean(pairs))


def test_main_table() -> None:
    table = tables.main_table([FOUR], rng()).set_index("method")
    terms, plugin = naive_terms(FOUR, True, None), naive_terms(FOUR, False, None)
    assert table.index.tolist() == [UNIFORM, *FOUR.confidences, ORACLE_RC, ORACLE_CC]
    for method in table.index:
        np.testing.assert_allclose(table.loc[method, "brier"], mean(terms[method]), atol=1e-12)
        np.testing.assert_allclose(table.loc[method, "plug-in"], mean(plugin[method]), atol=1e-12)
        if method in FOUR.confidences and method != "Probe (Mini exam)":
            assert table.loc[method, "low"] <= table.loc[method, "brier"] <= table.loc[method, "high"]
    assert table["missing"].to_dict() == dict.fromkeys(table.index, 0) | {"P(True)": 1, "Probe (Mini exam)": 4}
    assert table.loc["P(True)", "tokens"] == 3
    assert np.isnan(table.loc[UNIFORM, "tokens"])
    assert table.loc["P(True)", "rank"] == pytest.approx(1.0)
    assert np.isnan(table.loc["Probe (Mini exam)", ["brier", "low", "high", "rank"]].astype(float)).all()
    assert set(table["questions"]) == {4}


def test_a_fallback_fills_what_is_missing_and_still_counts_it() -> None:
    plain = tables.main_table([FOUR], rng()).set_index("method")
    filled = tables.main_table([FOUR], rng(), fallback=0.5).set_index("method")
    assert filled.loc["P(True)", "plug-in"] == pytest.approx(mean(naive_terms(FOUR, False, 0.5)["P(True)"]))
    assert filled.loc["P(True)", "plug-in"] != plain.loc["P(True)", "plug-in"]
    assert filled.loc["Verbalized confidence", "brier"] == plain.loc["Verbalized confidence", "brier"]
    assert filled["missing"].tolist() == plain["missing"].tolist()
    assert not np.isnan(filled.loc["Probe (Mini exam)", "brier"])


def best(confidences: dict[str, list[float]], correct: list[int], total: list[int]) -> set[str]:
    table = tables.main_table([evaluation(correct, total, confidences)], rng())
    return set(table["method"][table["best"]])


def test_best_is_the_lowest_and_what_is_not_worse() -> None:
    n = 40
    correct, total = [10] * n, [100] * n
    near, same, far = [0.1] * n, [0.1] * n, [0.6] * n
    assert best({"a": near, "b": far}, correct, total) == {"a"}
    assert best({"a": near, "b": same, "c": far}, correct, total) == {"a", "b"}
    noisy = [0.05, 0.15] * (n // 2)
    assert best({"a": near, "b": noisy}, correct, total) == {"a"}  # worse by 0.0025 on every question
    crossing = [0.2] * 3 + [0.1] * (n - 3)
    off = [0.1] * (n - 3) + [0.2] * 3
    assert best({"a": crossing, "b": off, "c": far}, correct, total) == {"a", "b"}


def second(confidences: dict[str, list[float]], correct: list[int], total: list[int]) -> set[str]:
    table = tables.main_table([evaluation(correct, total, confidences)], rng())
    return set(table["method"][table["second"]])


def test_second_needs_a_sure_best_and_to_be_sure_itself() -> None:
    n = 40
    correct, total = [10] * n, [100] * n
    first, next_, far = [0.1] * n, [0.3] * n, [0.9] * n
    assert second({"a": first, "b": next_, "c": far}, correct, total) == {"b"}
    assert second({"a": first, "b": first, "c": next_}, correct, total) == set()  # a tie for the best
    twin = [0.29] * (n // 2) + [0.31] * (n // 2)
    assert second({"a": first, "b": next_, "c": twin}, correct, total) == set()  # a tie for the second
    # Uniform random competes: it is worse here than 0.3, and better than 0.9
    assert second({"a": first, "b": far}, correct, total) == {UNIFORM}


GROUPS = np.repeat(["a", "b", "c", "d"], 10)


def test_groups_are_drawn_whole_in_scores_and_in_comparisons() -> None:
    """What differs between subjects alone is told apart by many questions, and not by few subjects."""
    confidences = {"a": [0.5] * 40, "b": [0.46] * 10 + [0.56] * 30}
    alone = evaluation([50] * 40, [100] * 40, confidences)
    whole = replace(alone, groups=GROUPS)
    assert set(tables.main_table([alone], rng()).query("best")["method"]) == {"a"}
    by_hand = evaluation([30] * 20 + [70] * 20, [100] * 40, {"a": [0.5] * 40})
    widths = [
        (table["high"] - table["low"]).loc["a"]
        for one in (by_hand, replace(by_hand, groups=GROUPS), replace(by_hand, groups=np.arange(40).astype(str)))
        for table in [tables.main_table([replace(one, counts=SKEWED)], rng()).set_index("method")]
    ]
    assert widths[1] > 2 * widths[0]
    assert widths[2] == pytest.approx(widths[0], rel=0.1)
    overview = [tables.overview([replace(one, counts=SKEWED)], rng())["95 % interval"][0] for one in (alone, whole)]
    assert overview[0] != overview[1]


SKEWED = evaluation([10] * 10 + [30] * 10 + [50] * 10 + [90] * 10, [100] * 40).counts


def test_floor_and_spread_are_those_of_a_perfect_estimator() -> None:
    table = tables.main_table([evaluation([50, 20, 90], [100, 50, 100])], rng())
    mu, n = np.array([0.5, 0.4, 0.9]), np.array([100, 50, 100])
    assert table["floor"][0] == pytest.approx(np.mean(mu * (1 - mu) / (n - 1)))
    drawn = rng(1).binomial(n, mu, size=(20_000, 3))
    scores = ((mu - drawn / n) ** 2 - drawn / n * (1 - drawn / n) / (n - 1)).mean(axis=1)
    assert table["spread"][0] == pytest.approx(scores.std(), rel=0.06)


def test_a_cell_says_what_is_missing_or_filled() -> None:
    def cells(fallback: float | None) -> list[str]:
        page = Cells(tables.show_main(tables.main_table([FOUR], rng(), fallback=fallback), "Scores.").to_html())
        return [content.strip() for _, content in page.cells]

    plain, filled = cells(None), cells(0.5)
    row = plain.index("P(True)")
    assert plain[row + 1].endswith("25.0%\u00a0missing")
    assert filled[row + 1].endswith("25.0%\u00a0filled")
    assert not any("missing" in cell for cell in filled)
    assert "missing" not in plain[plain.index("Verbalized confidence") + 1]


def test_show_main_marks_ties_and_underlines_a_sure_second() -> None:
    n = 30
    low, high, middle = [0.1] * n, [0.9] * n, [0.3] * n

    def classes(confidences: dict[str, list[float]], s: float) -> set[str]:
        one = evaluation([10] * n, [100] * n, confidences)
        page = Cells(tables.show_main(tables.main_table([one], rng()), "Scores.").to_html())
        mine = [(c, t.strip()) for c, t in page.cells if t.strip().startswith(f"{(s - 0.1) ** 2 - 0.09 / 99:.4f}")]
        assert all(("tie" in t) == ("tied" in c) for c, t in mine)
        [found] = {frozenset(set(c.split()) & {"best", "tied", "second"}) for c, _ in mine}
        return set(found)

    assert classes({"a": low, "b": middle, "c": high}, 0.1) == {"best"}
    assert classes({"a": low, "b": middle, "c": high}, 0.3) == {"second"}
    assert classes({"a": low, "b": middle, "c": high}, 0.9) == set()
    assert classes({"a": low, "b": low, "c": high}, 0.1) == {"tied"}


def test_show_main_says_what_is_special_about_a_data_set() -> None:
    plain = evaluation([1, 2], [4, 4], dataset="mini-exam")
    special = replace(evaluation([1, 2], [4, 4], dataset="gsm8k"), k_eval=100, prompt_style="paper")
    html = tables.show_main(tables.main_table([plain, special], rng()), "Scores.").to_html()
    assert "† GSM8K: 4 samples a question, fewer than k_eval = 100; no spare samples for a vote; paper prompts." in html
    heads = [content.strip() for _, content in Cells(html).cells][:3]
    assert heads == ["method", "GSM8K\u00a0†", "Mini exam"]


def test_best_on_shared_questions() -> None:
    """A method that answers only the hard questions is compared there, not by its mean over other questions."""
    n = 40
    correct, total = [50] * n, [100] * n
    partial = [NAN] * (n // 2) + [0.55] * (n // 2)
    lowest = [0.5] * (n // 2) + [0.62] * (n // 2)
    assert best({"partial": partial, "whole": lowest}, correct, total) == {"partial"}
    flat = [0.5] * 30 + [0.58] * 10
    some = [NAN] * 30 + [0.55] * 10  # lower on its questions, higher on average
    assert best({"some": some, "flat": flat}, correct, total) == {"some", "flat"}


def test_a_single_question_ranks_nobody() -> None:
    table = tables.main_table([EDGES["one question"]], rng()).set_index("method")
    assert np.isnan(table.loc["P(True)", "low"])
    assert table["best"].to_dict() == {UNIFORM: True, "P(True)": True, ORACLE_RC: False, ORACLE_CC: False}


def test_the_same_seed_gives_the_same_intervals() -> None:
    one, again, other = (tables.main_table([FOUR], rng(seed)) for seed in (1, 1, 2))
    pd.testing.assert_frame_equal(one, again)
    wide = evaluation(list(range(20)), [40] * 20, {"P(True)": [0.3] * 20})
    one, other = (tables.main_table([wide], rng(seed)) for seed in (1, 2))
    assert (one["low"] != other["low"]).any()


def test_k_eval_table() -> None:
    one = evaluation([2, 4, 0, 3, 1], [4, 4, 4, 6, 3])
    table = tables.k_eval_table(one, [1, 2, 4, 6, 8], rng()).set_index("k")
    assert table.index.tolist() == [2, 4, 6]  # the fourth question alone has six
    variance = np.var([1, 1, 1, 0, 0, 0], ddof=1)
    for k in (2, 4, 6):
        assert table.loc[k, "standard error"] == pytest.approx(math.sqrt(variance / k))
    low, high = binomial_interval([3], [6])[0]
    assert table.loc[6, "half-width"] == pytest.approx((high - low) / 2)
    assert table.loc[6, "plug-in"] == pytest.approx(1 / 3 - 0.25)
    assert table.loc[6, "corrected"] == pytest.approx(1 / 3 - variance)
    assert table.loc[6, "floor"] == pytest.approx(variance / 6)


def test_k_eval_table_uses_the_questions_that_have_enough() -> None:
    one = evaluation([2, 4, 0, 1], [4, 4, 4, 3])
    table = tables.k_eval_table(one, [4], rng()).iloc[0]
    variance = mean([np.var([1, 1, 0, 0], ddof=1), 0, 0])
    assert table["standard error"] == pytest.approx(math.sqrt(variance / 12))
    assert table["plug-in"] == pytest.approx(mean([1 / 12, 1 / 3, 1 / 3]))


def test_the_corrected_score_does_not_depend_on_k_on_average() -> None:
    one = evaluation([5, 10, 18, 2], [20] * 4)
    drawn = [tables.k_eval_table(one, [2, 5, 20], rng(seed), draws=1).set_index("k") for seed in range(600)]
    corrected = np.array([table["corrected"] for table in drawn])
    error = corrected.std(axis=0) / math.sqrt(len(drawn))
    assert (abs(corrected.mean(axis=0) - corrected[0, 2]) <= 4 * error + 1e-12).all()
    plugin = np.mean([table["plug-in"] for table in drawn], axis=0)
    assert plugin[0] > plugin[1] > plugin[2] > corrected[0, 2]


def test_coverage_is_near_nominal_for_jeffreys_and_not_for_wald() -> None:
    mus, k = [0.01, 0.02, 0.1, 0.3, 0.5], 100
    table = tables.coverage(mus, k, rng(), draws=4000).set_index(["method", "mu"])["coverage"]
    for method in ("wald", "wilson", "jeffreys", "clopper-pearson"):
        limits = binomial_interval(range(k + 1), [k] * (k + 1), method=method)  # type: ignore[arg-type]
        for mu in mus:
            exact = sum(
                math.comb(k, c) * mu**c * (1 - mu) ** (k - c)
                for c in range(k + 1)
                if limits[c, 0] <= mu <= limits[c, 1]
            )
            error = math.sqrt(exact * (1 - exact) / 4000)
            assert abs(table[method, mu] - exact) <= 4 * error + 1e-12
    assert abs(table["jeffreys"].mean() - 0.95) < 0.02
    assert table["wald", 0.01] < 0.7
    assert table["clopper-pearson"].min() > 0.94
    assert set(tables.coverage([0.5], 3, rng(), draws=5)["evidence"]) == {"simulated"}


def test_ranks() -> None:
    ranks = tables.ranks([FOUR, evaluation([0, 4], [4, 4], {"P(True)": [1.0, 0.0]}, dataset="mini-capitals")])
    assert ranks.set_index("method").loc["P(True)"].tolist() == [pytest.approx(1), pytest.approx(-1), "measured"]
    assert np.isnan(ranks.set_index("method").loc["Verbalized confidence", "Mini capitals"])


def test_plug_in_takes_the_place_of_the_corrected_score() -> None:
    filled = tables.main_table([FOUR], rng(), fallback=0.5)
    table = tables.plug_in(filled)
    assert table["brier"].tolist() == filled["plug-in"].tolist() != filled["brier"].tolist()
    assert table["best"].tolist() == filled["best"].tolist()
    cells = "".join(content for _, content in Cells(tables.show_main(table, "Plug-in.").to_html()).cells)
    assert "[" not in cells
    expected = mean(naive_terms(FOUR, False, 0.5)["P(True)"])
    assert f"{expected:.4f}" in cells
    assert tables.plug_in(pd.DataFrame()).empty


@pytest.mark.parametrize(
    ("method", "dataset", "distance"),
    [
        ("P(True)", "mini-exam", ""),
        ("Probe (Mini exam)", "mini-exam", "id"),
        ("Probe (MATH)", "math500", "id"),
        ("Probe (GSM8K)", "math500", "ood"),
        ("Probe (MATH)", "aime25", "ood"),
        ("Probe (TriviaQA)", "simpleqa", "ood"),
        ("Probe (TriviaQA)", "math500", "out"),
        ("Probe (GSM8K)", "mmlu", "out"),
    ],
)
def test_shift(method: str, dataset: str, distance: str) -> None:
    assert tables.shift(method, load_dataset(dataset)) == distance


@pytest.mark.parametrize("model", IN_PAPER)
def test_reported_tables_hold_the_printed_numbers(model: str) -> None:
    printed = load_reported("main")
    printed = printed[printed["model"] == model]
    main, wide = tables.reported_main(model), tables.reported_wide(model).set_index("method")
    assert len(main) == len(printed)
    for _, row in printed.iterrows():
        title = load_dataset(row["dataset"]).title
        assert wide.loc[row["method"], title] == row["value"]
        mine = main[(main["method"] == row["method"]) & (main["dataset"] == row["dataset"])]
        assert mine["brier"].tolist() == [row["value"]]
        values = sorted(set(printed[printed["dataset"] == row["dataset"]]["value"]))
        assert mine["best"].tolist() == [row["value"] == values[0]]
        assert mine["second"].tolist() == [row["value"] == values[1]]
    assert set(main["evidence"]) == set(wide["evidence"]) == {"reported"}


def test_reported_tables_of_a_model_outside_the_paper_say_so() -> None:
    assert tables.reported_main("simulated").empty
    assert tables.reported_wide("simulated").to_numpy().tolist() == [["the paper has no numbers of this model"]]


# Cost and consistency


@pytest.mark.parametrize("model", IN_PAPER)
def test_reported_cost_table_stand_beside_the_printed_scores(model: str) -> None:
    table = tables.reported_cost_table(model).set_index(["method", "dataset"])
    assert set(table["evidence"]) == {"reported"}
    votes = load_reported("consistency")
    ten = votes[(votes["model"] == model) & (votes["k"] == 10)].set_index("dataset")["value"]
    for name, value in ten.items():
        assert table.loc[(CONSISTENCY, name), "brier"] == value
    printed = load_reported("main").set_index(["model", "method", "dataset"])["value"]
    for method, name in table.index:
        if method != CONSISTENCY:
            assert table.loc[(method, name), "brier"] == printed[model, method, name]
    assert set(table.loc["Probe (MATH)", "tokens"]) == {0.0}
    assert (table.loc["P(True)", "tokens"] == 1).all() == (model != "gpt-oss-20b")
    # mean mu(1 - mu) / 100, what the printed baseline gives away
    assert table.loc[(UNIFORM, "gpqa"), "floor"] == pytest.approx((1 / 3 - printed[model, UNIFORM, "gpqa"]) / 99)


def test_a_model_outside_the_paper_has_no_reported_cost_table() -> None:
    assert tables.reported_cost_table("simulated").empty


def test_divergence_table_names_the_model_of_each_row() -> None:
    table = tables.divergence_table([[FOUR, FOUR], [], [FOUR]])
    assert table.columns[0] == "model"
    assert len(table) == 3
    assert table["mean |C − mu|"][0] == tables.targets([FOUR])["mean |C − mu|"][0]
    assert tables.divergence_table([[]]).empty


class Cells(HTMLParser):
    """Collect the tags, and the text and classes of each cell."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.cells: list[list[str]] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag in ("td", "th"):
            self.cells.append([dict(attrs).get("class") or "", ""])

    def handle_data(self, data: str) -> None:
        if self.cells:
            self.cells[-1][1] += data

    def classes(self, text: str) -> set[str]:
        (found,) = [classes for classes, content in self.cells if content.strip().startswith(text)]
        return set(found.split())


HOSTILE = "<script>alert(1)</script><img src=x onerror=y>"


def test_hostile_text_is_shown_and_never_markup() -> None:
    table = pd.DataFrame({"response": [HOSTILE, HOSTILE], HOSTILE: [0.25, NAN], "n": [1, 2], "evidence": "measured"})
    html = tables.show(table, "Caption.", n="{:.1f}", response="{}").to_html()
    page = Cells(html)
    assert not {"script", "img"} & set(page.tags)
    assert [content.strip() for _, content in page.cells].count(HOSTILE) == 3
    dataset = load_dataset("mini-exam").model_copy(update={"title": HOSTILE})
    scores = tables.main_table([replace(FOUR, dataset=dataset)], rng())
    assert not {"script", "img"} & set(Cells(tables.show_main(scores, "Caption.").to_html()).tags)
    assert not {"script", "img"} & set(
        Cells(tables.show(tables.ranks([replace(FOUR, dataset=dataset)]), "").to_html()).tags
    )


def test_show_formats_numbers_and_marks_evidence() -> None:
    table = pd.DataFrame(
        {
            "a": [0.123456, NAN, -1e-9],
            "gap": [1e-17, 2.0, 0.0],
            "n": [1234567, 2, -3],
            "evidence": ["measured", "reported", "simulated"],
        }
    )
    before = table.copy()
    html = tables.show(table, "What it is.", gap="{:.1e}").to_html()
    page = Cells(html)
    texts = [content.strip() for _, content in page.cells]
    assert texts[:4] == ["a", "gap", "n", "evidence"]
    assert texts[4:8] == ["0.1235", "1.0e-17", "1,234,567", "measured"]
    assert texts[8:] == ["–", "2.0e+00", "2", "reported", "0.0000", "0.0e+00", "-3", "simulated"]
    pd.testing.assert_frame_equal(table, before)
    assert '<span class="evidence measured">measured</span>' in html
    assert '<span class="evidence reported">reported</span>' in html
    assert "<caption>What it is.</caption>" in html
    assert 'class="capcal"' in html


def test_an_empty_table_says_so() -> None:
    for table in (pd.DataFrame(), tables.stack([]), tables.reported_main("simulated"), pd.DataFrame(columns=["gap"])):
        html = tables.show(table, "Nothing.", gap="{:.1e}").to_html()
        assert "no samples of this model yet" in html
        assert "no samples of this model yet" in tables.show_main(pd.DataFrame(), "Nothing.").to_html()


def test_show_main_tints_probes_and_bolds_the_best() -> None:
    n = 30
    confidences = {
        "P(True)": [0.71] * n,
        "Probe (MATH)": [0.1] * n,
        "Probe (GSM8K)": [0.22] * n,
        "Probe (TriviaQA)": [0.93] * n,
    }
    one = evaluation([10] * n, [100] * n, confidences, dataset="math500")
    html = tables.show_main(tables.main_table([one], rng()), "Scores.").to_html()
    page = Cells(html)
    assert "Scores. Evidence: measured." in html
    term = 0.1 * 0.9 / 99

    def classes(s: float) -> set[str]:
        return page.classes(f"{(s - 0.1) ** 2 - term:.4f}") & {"best", "id", "ood", "out"}

    assert classes(0.71) == set()
    assert classes(0.1) == {"best", "id"}
    assert classes(0.22) == {"ood"}
    assert classes(0.93) == {"out"}


def test_show_main_orders_columns_by_domain_and_rows_as_given() -> None:
    ones = [
        evaluation([1, 2], [4, 4], {"P(True)": [0.1, 0.2]}, dataset=name)
        for name in ("mini-exam", "mini-arithmetic", "mini-capitals")
    ]
    ones[1] = replace(ones[1], confidences={})  # a method that one data set lacks
    page = Cells(tables.show_main(tables.main_table(ones, rng()), "Scores.").to_html())
    texts = [content.strip() for _, content in page.cells]
    assert texts[:4] == ["method", "Mini capitals", "Mini arithmetic", "Mini exam"]
    assert texts[4::4] == [UNIFORM, "P(True)", ORACLE_RC, ORACLE_CC]
    assert texts[4 + 4 + 2] == "–"


def test_show_main_of_reported_numbers_has_no_intervals() -> None:
    html = tables.show_main(tables.reported_main("gpt-oss-20b"), "As printed.").to_html()
    assert "Evidence: reported." in html
    assert "[" not in "".join(content for _, content in Cells(html).cells)


def test_interval_text() -> None:
    interval = tables.Interval(0.5, 0.12346, 0.9)
    assert tables.interval_text(interval) == "[0.123,\u00a00.900]"
    assert tables.interval_text(interval, 4) == "[0.1235,\u00a00.9000]"
    assert tables.interval_text(tables.Interval(0.5, NAN, NAN)) == ""
    assert tables.interval_text(tables.Interval(0, -1e-9, 0.1)) == "[0.000,\u00a00.100]"


@pytest.mark.parametrize("one", EDGES.values(), ids=EDGES)
def test_nothing_stumbles_over_an_edge(one: Evaluation) -> None:
    made = [
        tables.overview([one], rng()),
        tables.targets([one]),
        tables.theorem_2(one),
        tables.main_table([one], rng()),
        tables.main_table([one], rng(), fallback=0.5),
        tables.plug_in(tables.main_table([one], rng())),
        tables.k_eval_table(one, [2, 5, 100], rng()),
        tables.ranks([one]),
        tables.divergence_table([[one]]),
    ]
    for shown in (*(tables.show(table, "Edge.") for table in made), tables.show_main(made[3], "Edge.")):
        assert "nan" not in {content.strip() for _, content in Cells(shown.to_html()).cells}


def test_no_evaluations_make_empty_tables() -> None:
    for table in (
        tables.overview([], rng()),
        tables.targets([]),
        tables.main_table([], rng()),
        tables.ranks([]),
        tables.stack([]),
    ):
        assert table.empty
        assert "no samples of this model yet" in tables.show(table, "Nothing.").to_html()


def test_reported_settings_by_hand() -> None:
    table = tables.reported_settings().set_index("setting")
    assert list(table.columns) == ["Olmo-3-7B-Instruct", "Qwen3-8B", "gpt-oss-20b", "evidence"]
    assert len(table) == 2 + 9
    assert table.loc["temperature"].tolist() == [0.6, 0.7, 1.0, "reported"]
    assert table.loc["learning rate (GSM8K)"].tolist() == [5e-3, 1e-4, 5e-4, "reported"]
