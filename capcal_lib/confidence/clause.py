"""What a number in a stated confidence is: the probability to be right, to be wrong, or another
number. The words of its own clause tell.
"""

import re
from typing import Literal

CLAUSE_CHARACTERS = 80

# Every repetition is bounded by the clause, so the time is linear in the number of numbers.
_STOP = r"[.;!?\n]|\d|\b(?:but|because|since|so|and|although|though|while|unless|versus|vs)\b"
_SENTENCE = re.compile(rf"(?i){_STOP}")
_BREAK = re.compile(rf"(?i),|{_STOP}")
_ASIDE = re.compile(r"(?i)[(–—]|\s-\s|\b(?:with|given|considering|despite|even|as (?:I|it|my))\b")
_CHANCE = r"""
    (?<![a-z])(?:P|Pr|prob|probability|chances?|likelihood|risk|odds|possibility|rate
                 |confidence)(?![a-z])
"""
_MINE = r"\b(?:I|my|answer)\b"  # and not a statement that is wrong
_LINKS = r"""
    (?: [\W_]+ (?:is|are|was|would|be|at|of|with|in|an?|about|around|roughly|approximately|only
              |here|maybe|up|to|answer|probability|chance|likelihood|risk|rate) \b ){0,6}
"""
_JUDGED = r"""
    (?P<denied> (?: \b(?:not|never|no|cannot) | n['’]t ) (?:\s[\w'’]+){0,3}? \s )? (?<![a-z])
    (?: (?P<wrong> wrong|incorrect|inaccurate|mistake|false|fail
          |errors?(?![a-z])|err(?:ing)?\b|erroneous )
      | right|correct|accurate|true\b|succe ) [a-z]*
"""
# a 10% chance that I am wrong
_JUDGED_AFTER = re.compile(
    rf"(?xi) (?: {_MINE} | ^ (?!\W*(?:sure|certain|confident)) ) .*? {_JUDGED}"
)
# P(error) = 0.1; wrong: 0.1; I am wrong about 10% of the time
_JUDGED_BEFORE = re.compile(
    rf"""(?xi)
    (?: {_CHANCE} .{{0,60}}? | ^\W* | {_MINE} (?=[^:=]*$) .{{0,60}}? )
    {_JUDGED} {_LINKS} \W*$
    """
)
# wrong in 10% of cases, whoever or whatever is
_WRONG_IN = re.compile(rf"(?xi) {_JUDGED} {_LINKS} \W*$")
_TIMES = r"""
    (?:(?:the|all|my|such|these|those)\s)?
    (?:times?|cases|tries|trials|attempts|samples|runs|answers|questions|occasions)
"""
_OF_TIMES = re.compile(rf"(?xi) \s? of\s {_TIMES} \b")
_GUESS = r"""
    (?: random|blind|(?:by|pure|sheer|mere)\schance\b|chance\s(?:level|alone|performance)|baseline
      | (?<!my\s)(?<!best\s)(?:guess(?:ing)?|coin\s(?:flip|toss))
        \s(?:would|has|is|gives|gets|yields|alone|at)\b )
"""
_DENIED = r"""
    (?: \b(?:not|never|cannot|rather\sthan|instead\sof|far\sfrom|nowhere\snear
             |nothing\slike) | n['’]t )
    (?! \s(?:more|less|sure|certain|know|right|correct)\b ) (?:\s[\w'’]+){0,3}
"""
_BOUND = r"""
    \b(?:as\s(?:low|high|little|much)\sas|down\sto|up\sto|at\s(?:worst|best)
        |(?:worst|best)\scase|(?:lower|upper)\s(?:bound|limit))
"""
# If I guessed at random, it would be 25%
_GUESS_BEFORE = re.compile(
    r"""(?xi)
    ^\W* (?:if|when|with|by|guessing|choosing|picking|randomly)\b
    [^,]* (?<![a-z])
    (?: random|blind|guess(?:ed|ing)\b|chance\salone|(?:pure|sheer|mere)\schance|coin) [^,]* ,
    """
)
_LIMIT = re.compile(
    r"""(?xi)
    \b (?: (?P<least> at\sleast | not?\sless\sthan | (?<!no\s)(?<!not\s)more\sthan
                     | above|over|minimum )
        | at\smost | not?\smore\sthan | less\sthan | below|under|maximum )
    (?:\s(?:about|around|of))? \W*$
    """
)
_OTHER_BEFORE = re.compile(
    rf"""(?xi)
    (?: ± | {_DENIED} | {_BOUND} {_LINKS} | {_GUESS} .* | \bby
      | ^(?!.*{_CHANCE}).* \b(?:error|margin|deviation|uncertainty|doubts?|within)
      (?:\sbars?)? {_LINKS}
    ) \W*$
    """
)
_OTHER_AFTER = re.compile(
    rf"""(?xi)
    \W{{0,3}} (?: (?:by|of|for|from|with|if|in)\s (?:[\w'’]+\s){{0,3}} )? {_GUESS} (?![\w\s]*:)
    | \s? of\s (?! {_TIMES}
                | (?:(?:the|all|my|such|these|those)\s)?
                  (?:being|getting|having|(?:it|my|me)\sbeing|success|succeeding|certainty
                    |confidence|wrong|error|mistake|fail) )
    | \s? (?:at\s(?:worst|best)|uncertain|unsure|doubt|margin|error|standard|deviation
            |confidence\sinterval|CI\b|discount|tax\b|interest|increase|decrease|growth)
    | \s (?:\w+\s)? (?:is|was|seems|feels|sounds|would\sbe|would\sseem)
      (?: n['’]t | \s(?:not|too|a\sbit\stoo|over|impossible|unrealistic) )
    """
)


def meaning(text: str, start: int, stop: int) -> Literal["right", "wrong"] | None:
    """Tell what the number between two places of a text is the probability of; None for another
    number: a width, a bound, one that is denied, that of a guess, or a share of something else.

    >>> said = ("0.1 that I am wrong", "0.5 by chance", "0.7 or so")
    >>> [meaning(text, 0, 3) for text in said]
    ['wrong', None, 'right']
    """
    sentence = _sentence_before(text, start)
    before = sentence.rpartition(",")[2]
    is_rate = _OF_TIMES.match(text, stop)
    after = text[stop : stop + CLAUSE_CHARACTERS]
    after = (_SENTENCE if is_rate else _BREAK).split(after, maxsplit=1)[0]
    if _GUESS_BEFORE.match(sentence) or _OTHER_BEFORE.search(before) or _OTHER_AFTER.match(after):
        return None
    after = _ASIDE.split(after, maxsplit=1)[0]
    judged = _JUDGED_AFTER.search(after) or _JUDGED_BEFORE.search(before)
    if not judged and is_rate:
        judged = _WRONG_IN.search(before)
    if judged and bool(judged["wrong"]) != bool(judged["denied"]):
        return "wrong"
    return "right"


def limit(text: str, start: int) -> Literal["least", "most"] | None:
    """Tell whether the number at a place of a text is the least or the most that something is.

    >>> limit("at least 50%", 9), limit("no more than 50%", 13), limit("about 50%", 6)
    ('least', 'most', None)
    """
    limit = _LIMIT.search(_sentence_before(text, start))
    if not limit:
        return None
    return "least" if limit["least"] else "most"


def _sentence_before(text: str, start: int) -> str:
    """Return the part of a sentence that leads to a place."""
    return _SENTENCE.split(text[max(0, start - CLAUSE_CHARACTERS) : start])[-1]
