import pandas as pd

from capcal_lib.grading.unread import describe_unread


def test_more_than_a_third_is_said_with_the_commonest_last_lines() -> None:
    lines = ["a"] * 4 + ["b"] * 3 + ["c"] * 2 + ["d", ""]
    texts = pd.Series([f"First.\n\n{line}\n" for line in lines] + ["4"] * 21)
    unread = pd.Series([True] * 11 + [False] * 21)
    [said] = describe_unread(texts, unread)
    assert said == (
        "11 of 32 samples have no answer that the rules read; commonest last lines: "
        '4 times "a", 3 times "b", 2 times "c"'
    )
    assert describe_unread(texts[:-1], unread[:-1]) == [said.replace("32", "31")]
    more = pd.concat([texts, pd.Series(["4"])], ignore_index=True)
    assert describe_unread(more, pd.Series([True] * 11 + [False] * 22)) == [], "a third"


def test_a_last_line_is_short_and_does_nothing_to_a_terminal() -> None:
    [said] = describe_unread(pd.Series(["x" * 100 + "\x1b[2J"]), pd.Series([True]))
    assert said.endswith('1 time "' + "x" * 56 + r'\x1b[2J"')
