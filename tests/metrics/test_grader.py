import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcal_lib.errors import InputError
from capcal_lib.metrics.grader import GraderError, grader_error


def labels(hits: int, right: int, passes: int, wrong: int) -> GraderError:
    """The error of a grader that finds ``hits`` of ``right`` right answers and ``passes`` of
    ``wrong`` wrong ones.
    """
    says = [1] * hits + [0] * (right - hits) + [0] * passes + [1] * (wrong - passes)
    return grader_error(says, [1] * right + [0] * wrong)


def test_independent_labels_are_counted() -> None:
    assert labels(45, 50, 79, 80) == pytest.approx((0.9, 79 / 80, 50, 80))


def test_weights_by_hand() -> None:
    # right answers: weights 30 (found), 10 (missed) -> 0.75 from 1600 / 1000 = 1.6 labels; wrong:
    # 5 and 5 -> 1 from 2
    error = grader_error([1, 0, 0, 0], [1, 1, 0, 0], [30, 10, 5, 5])
    assert error == pytest.approx((0.75, 1, 1.6, 2))
    scaled = grader_error([1, 0, 0, 0], [1, 1, 0, 0], [3, 1, 0.5, 0.5])
    assert error == pytest.approx(scaled)


def test_the_variance_by_questions_by_hand() -> None:
    # Two questions of five labels, all of one missed: totals of 2.5, against ten labels of 0.5.
    clusters = [0] * 5 + [1] * 5 + [2]
    alike = grader_error([1] * 5 + [0] * 6, [1] * 10 + [0], clusters=clusters)
    assert alike.right == pytest.approx(10 / (2 * 2.5**2 / (10 * 0.5**2)))
    whole = grader_error([1] * 10 + [0], [1] * 10 + [0], clusters=clusters)
    assert whole.right == pytest.approx(2)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3)), min_size=2, max_size=20))
def test_the_order_and_names_of_questions_do_not_matter(labels: list[tuple[bool, int]]) -> None:
    def rate(rows: list[tuple[bool, int]], name: str) -> float:
        clusters = [f"{name}{question}" for _, question in rows]
        return grader_error(
            [hit for hit, _ in rows] + [0], [1] * len(rows) + [0], clusters=[*clusters, "-"]
        ).right

    assert rate(labels, "q") == pytest.approx(rate(labels[::-1], "r"))
    assert rate(labels, "q") <= len(labels) + 1e-9


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: grader_error([1, 1], [1, 1]), "none of the labelled answers is wrong"),
        (lambda: grader_error([1, 0], [0, 0]), "none of the labelled answers is right"),
        (lambda: grader_error([1, 0.5], [1, 0]), "row 1: says_correct is 0.5, but must be 0 or 1"),
        (lambda: grader_error([1, 0, 0], [1, 2, 0]), "row 1: is_correct is 2, but must be 0 or 1"),
        (lambda: grader_error([1, 0], [1, 0, 1]), "all must have the same number of rows"),
    ],
)
def test_faults(call, message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(InputError, match=message):
        call()
