r"""Letters of options: ``C``, ``(C)``, ``C.``, ``\text{C}``, ``C) text``; never a stray letter in
prose.
"""

import re

from capcal_lib.grading import short

_LETTER = re.compile(r"(?i)(?:(?:option|choice)\s)?[(\[]?\s?([A-Z])\s?[)\]]?\s?[.:]?")
_LETTER_AND_TEXT = re.compile(
    r"""(?xs)
    (?: [(\[]([A-Ja-j])[)\]] | ([A-Ja-j])\s?(?:[).]{1,2}(?=\s)|:(?=[ ])) | ([A-J])\s[-–—](?=\s)
      | ([A-J]),(?!\W*[A-J]\b)(?=\s) | ([A-J])(?=\s\() | ([A-J])-(?=[A-Z][a-z]) | ([A-J])\s?(?=\n)
    )\s{0,3}(?P<rest>.+)
    """
)
_ANOTHER = re.compile(
    r"(?m)^\W{0,4}([A-J])(?:[.):\]]|\s*$|\s-)|(?<=\s)(?:\(([A-J])\)|([A-J])\.)(?=[ \t]+\S)"
    r"|\b(?:or|and)\s\(?([A-J])[.)]"
)
_LETTER_THEN_TEXT = re.compile(r"([A-J])(?:[,:]?\s|\s?[-–—]\s?)(.+)")


def letter(text: str) -> str | None:
    r"""Read the letter that a text is, or that it opens with, before a bracket or dot and the text
    of the option; None where it names others as options after it.

    >>> letter("(c)"), letter(r"\text{C. water}"), letter("A dog"), letter("A) or B)")
    ('C', 'C', None, None)
    """
    text = text.replace("**", "").strip()
    text = text if "\n" in text else short.plain(text).strip("{} ")
    if match := _LETTER.fullmatch(text):
        return match[1].upper()
    if not (match := _LETTER_AND_TEXT.fullmatch(text)):
        return None
    first = next(filter(None, match.groups())).upper()
    others = {name for groups in _ANOTHER.findall(text, match.start("rest")) for name in groups}
    return first if others <= {first, ""} else None


def equal(gold: str, aliases: tuple[str, ...], extracted: str) -> bool:
    """Compare by letter, or by the full text of the right option.

    >>> (equal("C", ("Paris",), "(C)"), equal("C", ("Paris",), "paris"),
    ...     equal("C", ("Paris",), "B) Paris"))
    (True, True, False)
    """
    chosen, right = letter(extracted), letter(gold)
    if chosen and (chosen <= "J" or chosen == right):
        return chosen == right
    if (match := _LETTER_THEN_TEXT.fullmatch(extracted)) and extracted not in aliases:
        return match[1] == right and short.equal(aliases, match[2])
    return short.equal(aliases, extracted)


def normal(text: str) -> str:
    """Return the letter, or the normalised text where there is none.

    >>> normal("(c)"), normal("The Moon")
    ('C', 'moon')
    """
    return letter(text) or short.normal(text)
