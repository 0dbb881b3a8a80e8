import pytest

from capcal_lib.book.printed import ITEMS, printed_table
from capcal_lib.reported import load_reported


@pytest.mark.parametrize("item", ITEMS)
def test_an_item_has_all_numbers_of_each_model_of_the_paper(item: str) -> None:
    table, _, source, _ = ITEMS[item]
    if table == "distance":
        assert printed_table(item, "qwen3-8b").size == 7
        return
    reported = load_reported(table, source=source)
    for model, numbers in reported.groupby("model"):
        shown = printed_table(item, str(model)).stack().tolist()
        assert sorted(shown) == sorted(numbers["value"])


def test_a_model_that_the_paper_does_not_have_shows_nothing() -> None:
    assert printed_table("table-2", "simulated").empty
