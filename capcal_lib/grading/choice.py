r"""Letters of options: ``C``, ``(C)``, ``C.``, ``\text{C}``, ``C) text``; never a stray letter in
prose.
"""

import re

from capcal_lib.grading import short

_LETTER = re.compile(r"(?:(?:option|choice)\s)?[(\[]?\s?([A-Ja-j])\s?[)\]]?\s?[.:]?", re.IGNORECASE)
_LATER_LETTER = re.compile(r"[(\[]?\s?([K-Zk-z])\s?[)\]]?\s?[.:]?")
_LETTER_AND_TEXT = re.compile(
    r"(?:\(([A-J])\)|\[([A-J])\]|([A-J])\s?[).:]|([A-J])\s[-–—]|([A-J]),(?!\W*[A-J]\b)|"
    r"([A-J])(?=\s\())"
    r"\s{1,3}(?P<text>\S.*)"
)
_LETTER_THEN_TEXT = re.compile(r"([A-J])(?:[,:]?\s|[-–—])(.+)")
_ANOTHER = re.compile(r"\b(?:or|and)\s{1,3}\(?[A-J]\b|\(?\b[B-J]\)")

_OPENING = re.compile(
    r"(?:\(([A-J])\)|\[([A-J])\]|([A-J])[.):])[ \t]+(?=[^\s])"
    r"|([A-J])-(?=[A-Z][a-z])|([A-J])[.)]?[ \t]*(?=\n)"
)
_OPTION = re.compile(
    r"^\W{0,4}([A-J])(?:[.):\]]|\s*$|\s-)"
    r"|(?<=\s)(?:\(([A-J])\)|([A-J])\.)(?=[ \t]+\S)"
    r"|\b(?:or|and)\s\(?([A-J])[.)]",
    re.MULTILINE,
)


def opening(text: str) -> str | None:
    r"""Read the option that a response opens with, whatever explanation follows; None where it
    names others as options.

    >>> (opening("B. No, since C is lost.\nThis follows from the law."),
    ...     opening("A. true\nB. false"), opening("A dog"))
    ('B', None, None)
    """
    text = text.replace("**", "").strip()
    match = _OPENING.match(text)
    if not match:
        return None
    chosen = next(group for group in match.groups() if group)
    others = {
        group for found in _OPTION.finditer(text, match.end()) for group in found.groups() if group
    }
    return chosen if others <= {chosen} else None


def letter(text: str) -> str | None:
    r"""Read a letter from A to J where it is all of the text, or is followed by a bracket or dot
    and the option's text.

    >>> letter("(c)"), letter(r"\text{C. water}"), letter("A dog"), letter("A) or B)")
    ('C', 'C', None, None)
    """
    text = short.plain(text).strip("{} ")
    if match := _LETTER.fullmatch(text):
        return match[1].upper()
    if (match := _LETTER_AND_TEXT.fullmatch(text)) and not _ANOTHER.search(match["text"]):
        return next(group for group in match.groups()[:-1] if group)
    return None


def later(text: str) -> str | None:
    """Read a letter from K to Z where it is all of the text: as an answer only where such an option
    is the right one.

    >>> later("(k)"), later("C"), later("K dogs")
    ('K', None, None)
    """
    match = _LATER_LETTER.fullmatch(short.plain(text).strip("{} "))
    return match[1].upper() if match else None


def equal(gold: str, aliases: tuple[str, ...], extracted: str) -> bool:
    """Compare by letter, or by the full text of the right option. From K on a letter must stand
    alone.

    >>> (equal("C", ("Paris",), "(C)"), equal("C", ("Paris",), "paris"),
    ...     equal("C", ("Paris",), "B) Paris"))
    (True, True, False)
    >>> equal("K", ("Paris",), "(k)"), equal("K", ("Paris",), "B"), equal("K", ("Paris",), "paris")
    (True, False, True)
    """
    if (right := later(gold)) and (chosen := later(extracted)):
        return chosen == right
    if chosen := letter(extracted):
        return chosen == letter(gold)
    if match := _LETTER_THEN_TEXT.fullmatch(extracted):  # C, water
        return match[1] == letter(gold) and short.equal(aliases, match[2])
    return short.equal(aliases, extracted)


def normal(text: str) -> str:
    """Return the letter, or the normalised text where there is none.

    >>> normal("(c)"), normal("The Moon")
    ('C', 'moon')
    """
    return letter(text) or short.normal(text)
