"""How far the training questions of probes are from a data set."""

from capcal_lib.shifts import shift


def test_a_probe_of_several_sets_is_as_near_as_the_nearest() -> None:
    assert shift("Probe (TriviaQA + GSM8K)", "math500") == "probe of the domain"
    assert shift("Probe (TriviaQA + GSM8K)", "triviaqa") == "probe of the data set"
    assert shift("Probe (MATH)", "no-such-set") is None
    assert shift("Oracle RC", "gsm8k") is None
