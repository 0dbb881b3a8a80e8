"""Lines of the output of OpenAI's batches."""

from pathlib import Path
from typing import Any

import pytest

from capcal_lib.errors import InputError
from tests.io.files import batch, read_log, reply, write


def test_each_choice_is_a_sample_with_the_tokens_that_are_known(tmp_path: Path) -> None:
    rows = [batch("a", reply("x"), {"index": 1, "text": "y", "finish_reason": "length"})]
    table = read_log([write(tmp_path / "batch.jsonl", *rows, batch("b", reply("z")))]).samples
    assert table["response"].tolist() == ["x", "y", "z"]
    assert table["prompt_tokens"].tolist() == [9, 9, 9]
    assert table["completion_tokens"].fillna(0).tolist() == [0, 0, 4], "of two choices together"
    assert table["finish_reason"].tolist() == ["stop", "length", "stop"]


@pytest.mark.parametrize(
    "choice",
    [
        reply(None, finish_reason="length"),
        reply(None, message={"role": "assistant", "content": None, "refusal": "No."}),
        reply(None, message={"role": "assistant", "content": None, "reasoning": "Wait."}),
        reply(""),
        reply(None, message={"role": "assistant", "content": []}),
    ],
)
def test_a_model_that_stopped_without_text_has_answered(tmp_path: Path, choice: Any) -> None:
    log = read_log([write(tmp_path / "batch.jsonl", batch("a", choice))])
    assert log.samples["response"].tolist() == [""]


def test_a_request_without_a_response_is_no_answer(tmp_path: Path) -> None:
    withheld = reply(None, finish_reason="content_filter")
    expired = batch("a") | {"response": None, "error": {"code": "batch_expired", "message": "!"}}
    refused = batch("a", status=400)
    refused["response"]["body"] = {"error": {"message": "too long", "code": None}}
    rows = [batch("a", reply("Oslo")), batch("a", withheld, reply("Oslo")), expired, refused]
    log = read_log([write(tmp_path / "batch.jsonl", *rows)])
    assert log.samples["response"].tolist() == ["Oslo", "Oslo"]
    assert log.notes[0] == "3 requests without a response left out"


def test_what_is_no_completion_is_refused(tmp_path: Path) -> None:
    row = batch("a")
    row["response"]["body"] = {"object": "list", "data": [{"embedding": [0.1]}]}
    with pytest.raises(InputError, match=r"batch\.jsonl, row 0: no 'choices'"):
        read_log([write(tmp_path / "batch.jsonl", row)])
