"""Whether a clause affirms what it says of the answer.

"The answer is A" counts only where nothing stands before it in its sentence but words that are
known to affirm ("so", "we find that", "since ..., "), and no denial, no hypothesis and no other's
opinion. A box counts wherever it stands, unless its clause denies it."""

import re

_CLAUSE_END = re.compile(r"[.!?;][\"')\]*_]{0,3}\s|\n")
_WINDOW = 300  # characters before a phrase or box that are looked at
_MARKUP = re.compile(r"[*_#>`|]+|^\s*(?:[-•]|\(?(?:\d{1,2}|[a-z])[.)])\s")
_SUBJECT = re.compile(
    r"(?:\b(?:the|my|our|this|an?)\s+)?(?:\b(?:final|correct|right|best|exact|numerical|"
    r"simplified|short|"
    r"only|complete|overall|true|actual|most|appropriate|closest|accurate|likely|suitable|more|"
    r"precise|specific|better|and)\s+)*$"
)
_OPENING = re.compile(
    r"""(?:(?:
      so|thus|therefore|hence|then|consequently|accordingly|finally|lastly|overall|now|and|indeed|ultimately|together
    | clearly|obviously|yes|ok(?:ay)?|sure|well|great|actually|wait|no|oops|sorry|correction|hmm
    |instead|but|however|rather
    | in\ (?:fact|conclusion|summary|short|total|other\ words|the\ end|this\ (?:case|scenario
    |context|problem))
    | to\ (?:conclude|summari[sz]e|sum\ up)|as\ a\ result|of\ course|on\ second\ thoughts?
    | (?:which|this|that|it|and\ that)\ (?:means|implies|shows|gives|leaves|tells\ us
    |confirms)(?:\ us)?(?:\ that)?
    | it\ (?:follows|seems|appears)\ that|it\ is\ (?:clear|evident|certain|obvious|true)\ that
    |(?:this|that
    |here)\ is|here's|that's|here
    | (?:we|i)\ (?:(?:can|must|now|also|then|therefore|thus|finally)\ )*
      (?:conclude|find|see|get|obtain|have|know|deduce|say|believe|think|determine|confirm|infer)
      (?:\ that)?
    | i(?:'m|\ am)\ (?:(?:pretty|quite|very)\ )?(?:sure|certain|confident)(?:\ that)?
    |i'd\ say(?:\ that)?
    | (?:final\ )?answer|conclusion|solution|result|explanation|a|step\ \d+|part\ \(?[a-z0-9]\)?
    )(?![\w'])[\s,:—–-]*)*""",
    re.VERBOSE,
)
_REASON = re.compile(
    r"(?:so|thus|therefore|hence|since|because|as|given|by|using|with|from|after|when|based on"
    r"|looking at|considering|"
    r"among|amongst|of|for|in|to|out of|we|there|it|adding|subtracting|multiplying|dividing"
    r"|combining|performing|"
    r"simplifying|solving|putting|substituting|having)\b|[\d$\\(=+*/-]"
)
_CONCLUDES = re.compile(r"(?:\b(?:so|thus|therefore|hence)[,:]?|,\s+and)\s*$")
_BUT = re.compile(r"\b(?:but|however|yet)\b")
_GOES_ON = re.compile(r"(?:,|:|\band)\s*$")
_DOUBT = re.compile(
    r"^(?:were|had|should)\b|\b(?:if|unless|suppose|supposing|imagine|pretend|says?|said|claim\w*|"
    r"thinks?|thought|believes?|believed|guess\w*|"
    r"told|tells me|argues?|argued|suggest\w*|wrong|incorrect|false|would|might|may|according "
    r"to(?! the)|without|ignoring|"
    r"neglecting|forgetting|contrary|unlike|mistake\w*|mistaken\w*|asked|whether|doubt\w*|deny|"
    r"denies)\b"
)
_REMARK_DENIES = re.compile(
    r"\b(?:wrong|incorrect|false|untrue|mistaken|not (?:true|correct|right)|if|unless|"
    r"(?:says?|said|claims?|claimed|thinks?|believes?|argues?) )\b|n't (?:true|correct|right)\b",
    re.IGNORECASE,
)
_LINKS = (
    r"(?:\s+(?:be|been|equals?|equal to|to|the|a|an|is|was|are|answer|value|result|option"
    r"|correct|right|final|that|it|"
    r"think|believe|say|simply|just|exactly|get|gives?|of|number|total|sum|choose|choice|would|"
    r"should|[a-z]\s?=))"
)
_DENIED = re.compile(
    rf"(?:\b(?:not|never|cannot|neither|nor|wrong|incorrect|false|untrue|mistaken|mistake|unlike)|n't|"
    rf"\brather than|\binstead of){_LINKS}{{0,8}}[\s$\\(\[:=]*$"
    r"|^\W*(?:if|suppose|had|were)\b.*\bwould\b"
    r"|\b(?:some|many|most|others|people|students?|one|you|he|she|they)\s(?:(?:might|may|would|"
    r"could)\s)?"
    r"(?:say|think|claim|believe|guess|argue|assume|answer|conclude|says|thinks|claims|believes"
    r"|be tempted)\b"
)
_DENIED_AFTER = re.compile(
    r"[\s$})\]*.,]{0,6}(?:is|was|would be|isn't|wasn't)\s(?:\w+\s)?"
    r"(?:not|wrong|incorrect|false|n't|correct\?)\b"
)
_CORRECTS = re.compile(
    r"(?:^|[.!?,;:\n—-]\s*)(?:but |oh,? |ah,? )?(?:wait|actually|no|nope|oops|sorry|correction"
    r"|corrected|hold on|hmm|"
    r"my mistake|i made|let me|instead|rather|on second thoughts?|but|however)\b",
    re.IGNORECASE,
)


def clause_before(text: str, place: int) -> str:
    """Return what stands before a place in its sentence, in small letters and without markup."""
    clause = _CLAUSE_END.split(text[max(0, place - _WINDOW) : place])[-1]
    return _MARKUP.sub(" ", clause.replace("’", "'")).lower().lstrip()


def affirms(text: str, place: int) -> bool:
    """Say whether the answer that is named at a place is affirmed by what stands before it.

    >>> text = "Bob says the answer is 7. Since 3 + 5 = 8, the correct answer is 8."
    >>> affirms(text, text.index("answer")), affirms(text, text.rindex("answer"))
    (False, True)
    """
    clause = _BUT.split(_SUBJECT.sub("", clause_before(text, place), count=1))[-1]
    if _OPENING.fullmatch(clause.strip(" ,")):
        return True
    if _DOUBT.search(clause):
        return False
    if _OPENING.fullmatch(clause.rpartition(",")[2].strip()) and _REASON.match(clause):
        return True
    return bool(_CONCLUDES.search(clause) or (_REASON.match(clause) and _GOES_ON.search(clause)))


def denies_after(remark: str) -> bool:
    """Say whether the rest of the sentence takes back what it says.

    >>> denies_after(", which is wrong."), denies_after(", since 3 + 4 = 7.")
    (True, False)
    """
    return bool(_REMARK_DENIES.search(remark))


def denied_box(text: str, start: int, end: int) -> bool:
    r"""Say whether a box is denied, supposed, or given as another's opinion.

    >>> text = r"It is \boxed{7} and not \boxed{8}."
    >>> denied_box(text, 6, 15), denied_box(text, 24, 33)
    (False, True)
    """
    return bool(
        _DENIED.search(clause_before(text, start)) or _DENIED_AFTER.match(text[end : end + 60])
    )


def corrects(between: str) -> bool:
    """Say whether the text between two answers takes back the first.

    >>> corrects(". Wait, 3 + 4 is 8. "), corrects(". It is known that ")
    (True, False)
    """
    return bool(_CORRECTS.search(between))
