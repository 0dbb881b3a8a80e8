"""Files and tables of a few questions, for tests of what is scored."""

from pathlib import Path

import numpy as np
import pandas as pd

LOG = Path(__file__).parent / "logs" / "samples_counts.jsonl"
BY_RULES = "the log has no verdict on each sample: the rules grade it"
CSV = "question_id,confidence,correct,total\na,0.5,1,2\nb,1.0,2,2\n"
GROUPED = "question_id,confidence,correct,total,{}\n" + "".join(
    f"q{n},0.{n % 10},{n // 6},10,s{n // 10}\n" for n in range(60)
)


def table_of(mu: np.ndarray, noise: float, rng: np.random.Generator) -> pd.DataFrame:
    said = np.clip(mu + rng.normal(0, noise, len(mu)), 0.01, 0.99)
    names = [f"q{place}" for place in range(len(mu))]
    return pd.DataFrame({"confidence": said, "correct": (20 * mu).round(), "total": 20}, names)
