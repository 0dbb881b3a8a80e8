"""Numbers in words, and words that multiply a number.

Cardinal numbers and fractions are read in English; what multiplies (``million``, ``lakh``, ``万``,
``dozen``, ``k``) in the languages whose words for *answer* are read as well: German, Spanish,
French, Italian, Portuguese, Indonesian, Turkish, Russian, Chinese, Japanese, Korean, Arabic and
Hindi."""

import re
from fractions import Fraction

_ONES = (
    "zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|"
    "fifteen|sixteen|seventeen|eighteen|nineteen"
)
_TENS = "twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety"
_SCALE = "thousand|million|billion|trillion"
_VALUES = dict(
    zip(
        f"{_ONES}|{_TENS}|hundred|{_SCALE}".split("|"),
        [*range(20), *range(20, 101, 10), 10**3, 10**6, 10**9, 10**12],
        strict=True,
    )
)
_HUNDRED = rf"(?:(?:{_TENS})(?:[\s-](?!zero)(?:{_ONES}))?|{_ONES})"
_THOUSAND = rf"(?:(?:{_HUNDRED}|a)\shundred(?:\s(?:and\s)?{_HUNDRED})?|{_HUNDRED})"
_CARDINAL = (
    rf"(?:(?:{_THOUSAND}|a)\s(?:{_SCALE})(?:,?\s(?:and\s)?{_THOUSAND}(?:\s(?:{_SCALE}))?)*"
    rf"|{_THOUSAND})"
)
_IN_WORDS = re.compile(rf"(?i)\b{_CARDINAL}\b")


def digits(text: str) -> str:
    """Write cardinal numbers in words as digits.

    >>> digits("forty-two apples"), digits("Twelve Monkeys"), digits("a hundred and five")
    ('42 apples', '12 Monkeys', '105')
    """
    return _IN_WORDS.sub(lambda match: str(_cardinal(match[0])), text)


def _cardinal(words: str) -> int:
    total = part = 0
    for word in re.findall(r"[a-z]+", words.lower()):
        value = _VALUES.get(word, 0)
        if value > 100:
            total += max(part, 1) * value
            part = 0
        elif value == 100:
            part = max(part, 1) * 100
        else:
            part += value
    return total + part


_PARTS = {
    name: number
    for number, names in {
        2: "half halve",
        3: "third",
        4: "fourth quarter",
        5: "fifth",
        6: "sixth",
        7: "seventh",
        8: "eighth",
        9: "ninth",
        10: "tenth",
        11: "eleventh",
        12: "twelfth",
        16: "sixteenth",
        20: "twentieth",
        100: "hundredth",
        1000: "thousandth",
        10**6: "millionth",
        10**9: "billionth",
    }.items()
    for name in names.split()
}
_PART = rf"(?P<part>{'|'.join(_PARTS)})(?P<plural>s?)\b"
_FRACTION_IN_WORDS = re.compile(
    rf"(?i)(?P<whole>(?:{_CARDINAL}|\d+)\sand\s)?(?:\b(?P<top>{_CARDINAL}|an?)[\s-])?\b{_PART}"
)


def with_fractions(text: str) -> str:
    """Write fractions in words as digits, and then the cardinal numbers: a whole number too stands
    in words, or before "and". Of digits only what is no noun is a part: coins may be quarters.

    >>> with_fractions("two thirds"), with_fractions("one and a half hours"), with_fractions("half")
    ('2/3', '1 1/2 hours', '1/2')
    >>> with_fractions("3 quarters"), with_fractions("the third man"), with_fractions("one thirds")
    ('3 quarters', 'the third man', '1 thirds')
    """
    return digits(_FRACTION_IN_WORDS.sub(_as_digits, text))


def _as_digits(match: re.Match[str]) -> str:
    top = (match["top"] or "").lower()
    part = match["part"].lower()
    if not top and part != "half":
        return match[0]
    number = 1 if top in ("", "a", "an") else _cardinal(top)
    if (number == 1) == bool(match["plural"]):
        return match[0]
    whole = (match["whole"] or "").lower().removesuffix(" and ").strip()
    if whole and not whole.isdecimal():
        whole = str(_cardinal(whole))
    return f"{whole} {number}/{_PARTS[part]}".strip()


_MULTIPLYING = {
    10: "puluh 十 십",
    12: "dozen dozens dutzend docena docenas douzaine douzaines dozzina dozzine dúzia dúzias lusin "
    "düzine дюжина дюжины дюжин",
    100: "hundred hundreds hundert cien cientos cento cem ratus yüz сто сотня сотни сотен 百 백 "
    "مئة مائة सौ",
    10**3: "thousand thousands tausend mil mille mila ribu bin тысяча тысячи тысяч тыс 千 천 ألف "
    "آلاف الف हज़ार हजार",
    10**4: "万 萬 만",
    10**5: "lakh lakhs lac lacs लाख",
    10**6: "million millions mn mln mio millionen millón millones milione milioni milhão milhões "
    "juta milyon миллион миллиона миллионов млн 百万 百萬 백만 مليون ملايين",
    10**7: "crore crores करोड़ करोड",
    10**8: "億 亿 억",
    10**9: "billion billions bn bln milliarde milliarden mrd millardo millardos milliard milliards "
    "miliardo miliardi bilhão bilhões miliar milyar миллиард миллиарда миллиардов млрд "
    "مليار مليارات अरब",
    10**11: "खरब",
    10**12: "trillion trillions tn billionen billón billones bilione bilioni bilião biliões "
    "trilhão trilhões triliun trilyon триллион триллиона триллионов трлн 兆 조 تريليون",
    10**15: "quadrillion quadrillions",
    10**18: "quintillion quintillions",
}
_MULTIPLIERS = {word: value for value, words in _MULTIPLYING.items() for word in words.split()}
_PLURAL_PARTS = {f"{name}s": number for name, number in _PARTS.items() if name != "quarter"}
# Scripts without spaces between words, where a multiplier may be followed by any sign.
_UNSPACED = "十십百백千천万萬만億亿억兆조"
_MULTIPLIER = re.compile(
    "(?i)"
    + "|".join(
        re.escape(word) if word[0] in _UNSPACED else rf"{re.escape(word)}(?![^\W\d_])\.?"
        for word in sorted(_MULTIPLIERS | _PLURAL_PARTS, key=len, reverse=True)
    )
)
_LETTERS = {"k": 10**3, "M": 10**6}
_GLUED = {"K": 10**3, "B": 10**9}  # right behind a number: 5 K are kelvins
_OF_MONEY = _GLUED | {"m": 10**6, "b": 10**9, "T": 10**12, "t": 10**12}


def multiplied(rest: str, *, money: bool) -> tuple[Fraction, str]:
    """Take the words that multiply from what follows a number; return by how much, and the rest.

    >>> multiplied(" million people", money=False), multiplied("万元", money=False)
    ((Fraction(1000000, 1), 'people'), (Fraction(10000, 1), '元'))
    >>> multiplied("K", money=False), multiplied(" K", money=False), multiplied("m", money=True)
    ((Fraction(1000, 1), ''), (Fraction(1, 1), 'K'), (Fraction(1000000, 1), ''))
    """
    letters = _LETTERS
    if money:
        letters = _LETTERS | _OF_MONEY
    elif not rest.startswith(" "):
        letters = _LETTERS | _GLUED
    rest = re.sub(r"^[\s-]+(?=[^\W\d_])", "", rest).rstrip()
    letter = re.match(r"[A-Za-z](?![^\W\d_]|[/^*.])", rest)
    if letter and letter[0] in letters:
        return Fraction(letters[letter[0]]), rest[1:].strip()
    size = Fraction(1)
    while match := _MULTIPLIER.match(rest):
        word = match[0].lower().strip(".")
        size *= Fraction(1, _PLURAL_PARTS[word]) if word in _PLURAL_PARTS else _MULTIPLIERS[word]
        rest = rest[match.end() :].strip()
    return size, rest
