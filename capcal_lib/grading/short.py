r"""Names and phrases, compared by equality after normalising: never by containment, either way.

The normal form is that of the official TriviaQA evaluation: lower case, punctuation to spaces,
articles and superfluous spaces removed. It is extended by stripping accents (``Málaga`` is
``Malaga``) and all Unicode punctuation. Quirks that come with it: ``The Who`` is ``who``, ``C++``
is ``c``, ``U.S.`` is ``u s`` and thus not ``US``. Where both answers are numbers, bare or with a
well-known unit, they are compared as numbers instead, since without punctuation ``-5`` would be
``5``; ``12 Monkeys`` and ``20 July`` are no numbers. An article that is all of the answer stays, as
the letter ``A`` may be right. An answer of which nothing remains, such as ``...``, is no answer.
"""

import re
import string
import unicodedata

from capcal_lib.grading import number

_PUNCTUATION = frozenset(string.punctuation + "‘’´`")
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_LEADING_ARTICLE = re.compile(r"^(?:a|an|the)\s+", re.IGNORECASE)
_WRAPPED = re.compile(
    r"\\(?:text(?:normal|rm|bf|it|sf|tt)?|mbox|hbox|mathrm|mathbf|mathit|emph)\s?\{([^{}]*)\}"
)
_MARKS = re.compile(r"\*\*|\\[()\[\]]|\\(?=[&%$#_])|(?<!\\)\$")
_CODE = re.compile(r"`+([^`]*)`+")


def plain(text: str) -> str:
    r"""Take a name out of LaTeX and markdown: ``\text{}``, ``$``, bold, quotes, the final full
    stop.

    >>> plain(r"**\text{Marie~Curie}**."), plain('"Paris"')
    ('Marie Curie', 'Paris')
    """
    for _ in range(3):  # \textbf{\text{...}}
        text = _WRAPPED.sub(r"\1", text)
    text = (
        _CODE.sub(r"\1", _MARKS.sub("", text))
        .replace("~", " ")
        .replace("\\ ", " ")
        .replace("\\,", " ")
    )
    return " ".join(text.split()).strip("*_\"'“” ").rstrip(".!,;").strip("*_\"'“” ")


def normal(text: str) -> str:
    """Return the normal form; empty where nothing remains.

    >>> normal("The  Beatles!"), normal("Málaga"), normal("A."), normal("...")
    ('beatles', 'malaga', 'a', '')
    """
    value = _number(text)
    return str(value.value) if value else _words(text)


def _number(text: str) -> number.Number | None:
    return number.read(_LEADING_ARTICLE.sub("", text.strip()), any_unit=False)


def _words(text: str) -> str:
    marks = unicodedata.normalize("NFD", plain(text))
    text = unicodedata.normalize(
        "NFC", "".join(mark for mark in marks if unicodedata.category(mark) != "Mn")
    ).lower()
    text = "".join(
        " " if mark in _PUNCTUATION or unicodedata.category(mark)[0] == "P" else mark
        for mark in text
    )
    return " ".join(_ARTICLES.sub(" ", text).split()) or " ".join(text.split())


def equal(golds: tuple[str, ...], extracted: str) -> bool:
    """Say whether the answer equals any of the right ones.

    >>> equal(("Norway",), "no"), equal(("Norway", "Kingdom of Norway"), "the Kingdom of Norway")
    (False, True)
    """
    words, value = _words(extracted), _number(extracted)

    def alike(gold: str) -> bool:
        right = _number(gold)
        if value and right:
            return number.equal(right, value)
        return not value and not right and bool(words) and words == _words(gold)

    return any(map(alike, golds))
