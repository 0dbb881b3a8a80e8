"""A question of a row, from the columns that a manifest names, or else the usual ones."""

from typing import Any

from capcal_lib.manifests import Columns, Dataset
from capcal_lib.questions.question import LETTERS, Answer, Question, with_options
from capcal_lib.rows import Row, field_of, listed


def make_question(manifest: Dataset, columns: Columns, row: Row, usual_id: str) -> Question:
    """Make a question of a row, from the columns that a manifest names, or else the usual ones."""
    kind = row["kind"] if manifest.builtin else manifest.kind
    name, subject, also = (
        row.get(usual) if (named := getattr(columns, usual)) is None else field_of(row, named)
        for usual in ("id", "subject", "aliases")
    )
    text = _text(field_of(row, columns.question))
    answer = field_of(row, columns.answer)
    options, labels = _options(row, columns.choices)
    if not all([text, *options]):
        raise ValueError("the question or an option is empty")
    if options and kind != "choice":
        raise ValueError(f"it has choices, but the manifest says kind: {kind}")
    if options:
        place = right_option(answer, options, labels)
        text = with_options(text, options)
        golds = [LETTERS[place], options[place]]
    else:
        golds = [_text(one) for one in [*listed(answer), *listed(also)]]
    gold, *aliases = dict.fromkeys(filter(None, golds)) or [""]
    return Question(
        id=usual_id if name is None else _text(name),
        text=text,
        answer=Answer(kind, gold, tuple(aliases)),
        subject=_text(subject or ""),
        options=len(options),
    )


def _text(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError(f"{value!r} is neither a text nor a number")
    return str(value).strip()


def _options(row: Row, named: str | tuple[str, ...] | None) -> tuple[list[str], list[str]]:
    """Return the texts of a row's options, and what they are called there, such as 1 to 4 in
    ARC.
    """
    if isinstance(named, tuple):  # a column each; the last ones may be empty
        choices: Any = [field_of(row, name) for name in named]
        while choices and choices[-1] in (None, ""):
            choices.pop()
    else:
        choices = field_of(row, named.removesuffix(".text")) if named else row.get("choices")
    return read_options(choices)


def read_options(choices: Any) -> tuple[list[str], list[str]]:
    """Return the texts of options, and what they are called, if anything: of a list, which may
    stand in a text, of lists of ``text`` and ``label`` as in ARC, or of a text by its label.

    ``ValueError`` for anything else.

    >>> read_options(["red", "blue"]), read_options({"A": "red", "B": "blue"})
    ((['red', 'blue'], []), (['red', 'blue'], ['A', 'B']))
    """
    labels: list[Any] = []
    if isinstance(choices, dict):
        labels, texts = [*choices], [*choices.values()]
        if {*choices} == {"text", "label"}:
            labels, texts = choices["label"], choices["text"]
    else:
        texts = listed(choices, numbers=True)
        if texts == [choices]:
            raise ValueError(f"choices {choices!r} are no list")
    if labels and len(labels) != len(texts):
        raise ValueError(f"{len(texts)} options have {len(labels)} labels")
    return [*map(_text, texts)], [*map(_text, labels)]


def right_option(answer: Any, options: list[str], labels: list[str]) -> int:
    """Return the place of the right option: by its label, its text, its letter, or its number from
    0 on, which an integer is, and a text if it can be nothing else.
    """
    if isinstance(answer, float) and answer.is_integer():  # as tables make one of an integer
        answer = int(answer)
    name = _text(answer)
    places = []
    if labels:  # which go before texts
        names = labels if name in labels else options
        places = [place for place, one in enumerate(names) if one == name]
    elif isinstance(answer, str):
        pairs = enumerate(zip(LETTERS, options, strict=False))
        places = [place for place, pair in pairs if name in pair or name.upper() == pair[0]]
    if not labels and name.isdecimal():
        number = int(name)
        if places and number < len(options) and places != [number]:
            raise ValueError(
                f"{name!r} is the text of one option and the number of another; write its letter"
            )
        places = places or [number]
    if len(places) != 1 or places[0] >= len(options):
        raise ValueError(f"the answer {name!r} is not the text, letter or number of one option")
    return places[0]
