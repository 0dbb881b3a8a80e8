"""The output of an OpenAI or vLLM batch: a request a line, whose choices are samples."""

from capcal_lib.io.chat import read_choices
from capcal_lib.rows import Row


def read_batch(row: Row) -> list[Row]:
    """Return the samples of a request, whose ``custom_id`` is the question; one without a response
    if it failed.
    """
    question = {"question_id": row["custom_id"]}
    response = row.get("response") or {}
    if row.get("error") or response.get("status_code", 200) != 200:
        return [question]
    body = response.get("body") or {}
    if "choices" not in body:
        raise ValueError("a response without choices: chat or text completions are read")
    usage = body.get("usage") or {}
    samples = [question | sample for sample in read_choices(body["choices"])]
    for number, sample in enumerate(samples):
        sample["key"] = f"{row['id']} {number}" if "id" in row else None
        sample["model"] = body.get("model")
        sample["prompt_tokens"] = usage.get("prompt_tokens")
    if len(samples) == 1:  # or else it counts them all
        samples[0]["completion_tokens"] = usage.get("completion_tokens")
    return samples
