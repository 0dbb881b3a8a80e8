"""The choices of a chat or a completion, as servers return them and logs keep them."""

from typing import Any

from capcal_lib.rows import Row

LENGTH = ("length", "max_tokens", "model_length")  # what reaching the limit is called


def read_choices(choices: Any) -> list[Row]:
    """Return a sample for each choice; its response is None if the request gave none.

    A model that refused, thought or reached its limit without a text has answered, with an empty
    one."""
    samples = []
    for choice in choices or [{}]:
        message = choice.get("message") or {}
        response = choice.get("text")
        if message.get("content") is not None:
            response = part_text(message["content"])
        reasoning = message.get("reasoning") or message.get("reasoning_content")
        reasoning = reasoning or part_text(message.get("content"), "reasoning")
        ended = choice.get("finish_reason") or choice.get("stop_reason")
        if response is None and (reasoning or message.get("refusal") or ended in LENGTH):
            response = ""
        samples.append({"response": response, "reasoning": reasoning, "finish_reason": ended})
    return samples


def part_text(content: Any, kind: str = "text") -> str:
    """Return the text of a message, or the parts of another kind such as ``reasoning``.

    >>> part_text([{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "4"}])
    '4'
    """
    if isinstance(content, str):
        return content if kind == "text" else ""
    return "".join(part[kind] for part in content or [] if part["type"] == kind)
