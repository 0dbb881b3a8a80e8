"""What a model is asked: the paper's prompts, and short ones for small models.

Style ``paper`` is one user message. The answer prompt is in our wording, since the paper prints none; verbalized
confidence and P(True): as printed in appendix C.2. Style ``short`` shows a few earlier turns of the same chat, in
which an answer is one short sentence: a small model that answers with a bare word does much worse. Style ``steps``
shows turns that reason before a boxed answer, as the paper asks, but in two or three sentences.
"""

import hashlib
import json
from typing import get_args

from capcal_lib.errors import unknown
from capcal_lib.manifests import Kind, PromptStyle
from capcal_lib.questions import Question

Messages = tuple[dict[str, str], ...]  # chat messages, each with a role and a content
Turns = tuple[tuple[str, str], ...]  # what the user asks and what the assistant says

STYLES: tuple[PromptStyle, ...] = get_args(PromptStyle)

_STEPS = "Think it through step by step. Then give"
_PAPER_FORMAT: dict[Kind, str] = {
    "short": (
        f"{_STEPS} the final answer, and nothing else, inside \\boxed{{}}. "
        "For example, asked who wrote the novel Frankenstein, end with \\boxed{Mary Shelley}."
    ),
    "number": f"{_STEPS} the final answer, as a number, inside \\boxed{{}}.",
    "math": f"{_STEPS} the final answer, as a mathematical expression, inside \\boxed{{}}.",
    "choice": f"{_STEPS} the letter of the right option, A, B, C or D, inside \\boxed{{}}.",
}

_PAPER_VERBALIZED = """Question: {question}

How likely are you to answer the question correctly? You may refer to the following probabilities P:
- 0.0-0.1: "Almost no chance"
- 0.1-0.2: "Highly unlikely"
- 0.2-0.3: "Chances are slight"
- 0.3-0.4: "Unlikely"
- 0.4-0.5: "Less than even"
- 0.5-0.6: "Better than even"
- 0.6-0.7: "Likely"
- 0.7-0.8: "Very good chance"
- 0.8-0.9: "Highly likely"
- 0.9-1.0: "Almost certain"
Reason about your uncertainty and confidence, and then provide a probability P between 0.0 and 1.0 in the \
format of \\boxed{{P}}."""

_P_TRUE = """Question: {question}

Are you able to answer the question correctly?
Answer with only a single word: Yes or No."""

_SHORT_VERBALIZED = """Question: {question}

How likely are you to answer the question correctly? Answer with a probability between 0.0 and 1.0."""

# The facts shown here are in no mini set (mini.SHOWN).
_SHOWN_ANSWERS: dict[Kind, Turns] = {
    "short": (
        ("What is the capital of Japan?", "The answer is Tokyo."),
        ("Which chemical element has the symbol He?", "The answer is Helium."),
        ("What is the capital of Portugal?", "The answer is Lisbon."),
        ("What is the chemical symbol of gold?", "The answer is Au."),
        ("Which element has the heavier atoms, gold or helium?", "The answer is Gold."),
        ("Which country has Lima as its capital?", "The answer is Peru."),
        ("On which continent is Egypt?", "The answer is Africa."),
        ("What is the chemical symbol of carbon?", "The answer is C."),
        ("Which country has Ottawa as its capital?", "The answer is Canada."),
    ),
    "number": (
        ("What is 4 + 3?", "4 + 3 = 7"),
        ("What is 20 × 10?", "20 × 10 = 200"),
        ("What is the atomic number of carbon?", "The answer is 6."),
        ("What is 12 + 5?", "12 + 5 = 17"),
        ("What is 4 × 2?", "4 × 2 = 8"),
    ),
    "math": (
        ("Solve $2x = 1$ for $x$.", "The answer is $\\frac{1}{2}$."),
        ("Expand $(a + b)^2$.", "The answer is $a^2 + 2ab + b^2$."),
    ),
    "choice": (
        ("What is the capital of Portugal?\nA. Ottawa\nB. Lisbon\nC. Cairo\nD. Tokyo", "B"),
        ("What is 2 + 2?\nA. 8\nB. 3\nC. 6\nD. 4", "D"),
        ("What is the chemical symbol of gold?\nA. Au\nB. Ag\nC. He\nD. C", "A"),
        ("On which continent is Canada?\nA. Asia\nB. Africa\nC. North America\nD. Europe", "C"),
    ),
}
_SHOWN_STEPS: dict[Kind, Turns] = {
    "short": (
        ("What is the capital of Portugal?", "Portugal is governed from Lisbon. \\boxed{Lisbon}"),
        ("What is the chemical symbol of gold?", "Gold is aurum in Latin. \\boxed{Au}"),
        ("Which country has Lima as its capital?", "Lima is the seat of Peru's government. \\boxed{Peru}"),
    ),
    "number": (
        (
            "A baker fills 6 trays with 8 rolls each and sells 30 rolls. How many rolls are left?",
            "6 trays of 8 rolls are 6 × 8 = 48 rolls. After 30 are sold, 48 - 30 = 18 are left. \\boxed{18}",
        ),
        (
            "Mia earns $12 an hour. She works 5 hours on Friday and twice as long on Saturday. "
            "How many dollars does she earn in all?",
            "On Saturday she works 2 × 5 = 10 hours, so 5 + 10 = 15 hours in all. "
            "She earns 15 × 12 = 180 dollars. \\boxed{180}",
        ),
        (
            "A tank holds 80 litres. A quarter of it is used on Monday, and half of what is left on Tuesday. "
            "How many litres remain?",
            "Monday takes 80 / 4 = 20 litres and leaves 80 - 20 = 60. "
            "Tuesday takes 60 / 2 = 30 litres, so 60 - 30 = 30 remain. \\boxed{30}",
        ),
        (
            "Tom is 4 years older than Ann. In 6 years their ages will add up to 40. How old is Ann now?",
            "In 6 years both are 6 years older, so now their ages add up to 40 - 12 = 28. "
            "If Ann is a years old, a + (a + 4) = 28, so a = 12. \\boxed{12}",
        ),
    ),
    "math": (
        (
            "What is the sum of the roots of $x^2 - 5x + 6 = 0$?",
            "The sum of the roots is the coefficient of $x$ with its sign changed, $5$. \\boxed{5}",
        ),
        (
            "A fair die is rolled twice. What is the probability that the sum is 10?",
            "The rolls (4,6), (5,5) and (6,4) give 10, which are 3 of 36. "
            "The probability is $\\frac{3}{36} = \\frac{1}{12}$. \\boxed{\\frac{1}{12}}",
        ),
        (
            "Let $f(x) = 2x^2 - 1$. Find $f(f(2))$.",
            "$f(2) = 2 \\cdot 4 - 1 = 7$ and $f(7) = 2 \\cdot 49 - 1 = 97$. \\boxed{97}",
        ),
        (
            "A right triangle has legs of length 4 and 6. What is the length of its hypotenuse?",
            "It is $\\sqrt{4^2 + 6^2} = \\sqrt{52} = 2\\sqrt{13}$. \\boxed{2\\sqrt{13}}",
        ),
    ),
    "choice": (
        ("What is 2 + 2?\nA. 8\nB. 3\nC. 6\nD. 4", "2 + 2 = 4, which is option D. \\boxed{D}"),
        (
            "What is the chemical symbol of gold?\nA. Au\nB. Ag\nC. He\nD. C",
            "Gold is aurum in Latin, which is option A. \\boxed{A}",
        ),
        (
            "On which continent is Canada?\nA. Asia\nB. Africa\nC. North America\nD. Europe",
            "Canada lies north of the United States, so it is option C. \\boxed{C}",
        ),
    ),
}
_SHOWN_VERBALIZED: Turns = (
    ("What is 2 + 2?", "0.9"),
    ("What is 8315 × 6427?", "0.1"),
    ("What is the capital of Japan?", "0.8"),
    ("Who was the mayor of Lima in 1931?", "0.2"),
    ("What is the chemical symbol of silver?", "0.6"),
    ("What is the boiling point of gold in kelvin?", "0.3"),
)
_SHOWN: dict[str, dict[Kind, Turns]] = {"short": _SHOWN_ANSWERS, "steps": _SHOWN_STEPS}


def _chat(shown: Turns, last: str) -> Messages:
    turns = [turn for asked, said in shown for turn in (("user", asked), ("assistant", said))]
    return tuple({"role": role, "content": content} for role, content in [*turns, ("user", last)])


def answer_messages(question: Question, style: PromptStyle) -> Messages:
    """Ask for an answer.

    Raises
    ------
    InputError
        For an unknown style.

    Examples
    --------
    >>> from capcal_lib.questions import Answer
    >>> question = Question("q", "What is 6 × 7?", Answer("number", "42"))
    >>> answer_messages(question, "short")[-2:]
    ({'role': 'assistant', 'content': '4 × 2 = 8'}, {'role': 'user', 'content': 'What is 6 × 7?'})
    """
    _check(style)
    kind = question.answer.kind
    if style == "paper":
        return _chat((), f"{question.text}\n\n{_PAPER_FORMAT[kind]}")
    return _chat(_SHOWN[style][kind], question.text)


def verbalized_messages(question: Question, style: PromptStyle) -> Messages:
    """Ask for the probability, between 0 and 1, of answering the question right (the question, not an answer to it).

    Raises
    ------
    InputError
        For an unknown style.

    Examples
    --------
    >>> from capcal_lib.questions import Answer
    >>> question = Question("q", "What is 6 × 7?", Answer("number", "42"))
    >>> print(verbalized_messages(question, "short")[-1]["content"])
    Question: What is 6 × 7?
    <BLANKLINE>
    How likely are you to answer the question correctly? Answer with a probability between 0.0 and 1.0.
    """
    _check(style)
    if style != "paper":
        shown = tuple((_SHORT_VERBALIZED.format(question=asked), said) for asked, said in _SHOWN_VERBALIZED)
        return _chat(shown, _SHORT_VERBALIZED.format(question=question.text))
    return _chat((), _PAPER_VERBALIZED.format(question=question.text))


def p_true_messages(question: Question, style: PromptStyle) -> Messages:
    """Ask whether the model can answer the question, Yes or No; the same words in every style.

    Raises
    ------
    InputError
        For an unknown style.

    Examples
    --------
    >>> from capcal_lib.questions import Answer
    >>> question = Question("q", "What is 6 × 7?", Answer("number", "42"))
    >>> print(p_true_messages(question, "paper")[-1]["content"])
    Question: What is 6 × 7?
    <BLANKLINE>
    Are you able to answer the question correctly?
    Answer with only a single word: Yes or No.
    """
    _check(style)
    return _chat((), _P_TRUE.format(question=question.text))


def prompt_digest(messages: Messages) -> str:
    """Return 16 hexadecimal digits that tell one prompt from another.

    >>> prompt_digest(({"role": "user", "content": "What is 6 × 7?"},))
    '35e01bf913c59e34'
    """
    return _digest(messages)


def template_digest(style: PromptStyle) -> str:
    """Return 16 hexadecimal digits that change whenever the wording of an answer prompt changes.

    Raises
    ------
    InputError
        For an unknown style.

    Examples
    --------
    >>> template_digest("short") == template_digest("paper")
    False
    """
    _check(style)
    return _digest(_PAPER_FORMAT if style == "paper" else _SHOWN[style])


def _digest(content: object) -> str:
    canonical = json.dumps(content, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _check(style: str) -> None:
    if style not in STYLES:
        raise unknown("prompt style", style, STYLES)
