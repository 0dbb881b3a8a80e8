"""Find the evaluation questions that are like a question on which a probe was trained.

Run as ``CAPCAL_DATA_DIR=FOLDER python book/tools/find_overlaps.py``. Compared are the questions of
the recorded training and evaluation runs of the model that has most of them. What is found is
written to ``data_manifests/overlaps.csv``, a row an evaluation question, known by its id: no text
of a question is kept."""

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer

from capcal_lib.places import MANIFESTS, RECORDED_RUNS
from capcal_lib.probes.training import runs_for_probes, training_data
from capcal_lib.questions import Question, load_questions
from capcal_lib.results import load_results

MODEL = "qwen2.5-coder-1.5b"
OVERLAPS = MANIFESTS / "overlaps.csv"
COMPARED = ("gsm8k", "math500", "mmlu", "triviaqa")  # sets of which overlaps were looked for
NGRAM = 13  # words in a row
ALIKE = 0.6  # of the words of both


def words_of(question: Question) -> list[str]:
    """Return the words of a question and its options, in lower case and without the letters of the
    options.
    """
    text = re.sub(r"(?m)^[A-Z]\. ", "", question.text) if question.options else question.text
    return re.findall(r"\w+", text.lower())


def compare_questions(
    evaluated: Sequence[list[str]], training: Sequence[list[str]]
) -> pd.DataFrame:
    """Compare the words of evaluation questions with those of all training questions.

    Returns a row an evaluation question: whether a training question is ``exact``, that is has the
    same words in the same order; whether one has the same 13 words in a row, ``ngram``; and the
    largest ``jaccard``, the share of the words of both that are in both.

    >>> compare_questions([["one", "two"]], [["two", "three"]]).round(2).to_numpy().tolist()
    [[False, False, 0.33]]
    """
    known = {tuple(words) for words in training}
    runs = {run for words in training for run in _ngrams(words)}
    vectors = CountVectorizer(analyzer=set, binary=True).fit([*evaluated, *training])
    first, second = vectors.transform(evaluated), vectors.transform(training)
    both = (first @ second.T).toarray()
    sizes = np.add.outer(first.sum(axis=1).A1, second.sum(axis=1).A1)
    return pd.DataFrame(
        {
            "exact": [tuple(words) in known for words in evaluated],
            "ngram": [not runs.isdisjoint(_ngrams(words)) for words in evaluated],
            "jaccard": (both / (sizes - both)).max(axis=1),
        }
    )


def _ngrams(words: list[str]) -> set[tuple[str, ...]]:
    return {tuple(words[at : at + NGRAM]) for at in range(len(words) - NGRAM + 1)}


def find_overlaps() -> pd.DataFrame:
    """Return the evaluation questions that are exact, share 13 words in a row, or have a Jaccard
    index of .6 or more with a training question of their data set.
    """
    results = load_results(RECORDED_RUNS, MODEL)
    tables = []
    for dataset, run in runs_for_probes(RECORDED_RUNS, MODEL, "training"):
        if dataset.name not in COMPARED:
            continue
        taught, asked = training_data(run)[0].index, results.loc[dataset.name].index
        texts: dict[str, list[str]] = {}
        for split in (run.identity.split, dataset.evaluation_split):
            questions = load_questions(dataset.name, split)
            texts |= {question.id: words_of(question) for question in questions}
        overlaps = compare_questions(
            [texts[name] for name in asked], [texts[name] for name in taught]
        )
        overlaps = overlaps.round({"jaccard": 3}).set_axis(asked)
        near = overlaps["exact"] | overlaps["ngram"] | (overlaps["jaccard"] >= ALIKE)
        tables.append(overlaps[near].reset_index().assign(dataset=dataset.name))
    columns = ["dataset", "question_id", "exact", "ngram", "jaccard"]
    return pd.concat(tables)[columns].sort_values(columns[:2], ignore_index=True)


if __name__ == "__main__":
    find_overlaps().to_csv(OVERLAPS, index=False)
