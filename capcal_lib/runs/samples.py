"""A sample, the row of a run."""

from dataclasses import dataclass
from typing import Literal

IMPORTED = "imported"  # in the record of a run, where no engine of ours has drawn the samples

FinishReason = Literal["stop", "length"]


@dataclass(frozen=True, slots=True)
class Sample:
    """One drawn answer, identified by (question_id, sample_index) within its run."""

    question_id: str
    sample_index: int
    response: str
    reasoning: str | None  # kept apart from the answer and never graded
    finish_reason: FinishReason
    prompt_tokens: int  # 0 where a log or a server does not say
    completion_tokens: int  # every generated token, the end-of-turn token included; likewise
