"""Other rules grade the samples that ours have graded."""

from capcal_lib.grading.verdicts import read_verdicts
from capcal_lib.places import RECORDED_RUNS
from capcal_lib.questions import Answer
from capcal_lib.runs import KEY, find_run, read_samples
from capcal_lib.studies.grading import OURS, regrade

RUN = find_run(RECORDED_RUNS, "smollm2-135m", "mini-elements", "test")


def test_a_rule_sees_the_answer_what_was_extracted_and_the_response() -> None:
    """Counted naively."""
    seen = set()

    def rule(answer: Answer, extracted: str, response: str) -> bool:
        seen.add((answer.gold, extracted, response))
        return len(response) > 20

    shares = regrade(RUN, {"long": rule}, k=10)
    rows = read_verdicts(RUN).merge(read_samples(RUN)[[*KEY, "response"]], on=KEY)
    rows = rows[rows["sample_index"] < 10]
    for question_id, own in rows.groupby("question_id"):
        assert shares.loc[question_id, OURS] == (own["verdict"] == "correct").mean()
        assert shares.loc[question_id, "long"] == (own["response"].str.len() > 20).mean()
    assert {case[1] for case in seen} == {*rows["extracted"].fillna("")}
    assert {case[2] for case in seen} == {*rows["response"]}
