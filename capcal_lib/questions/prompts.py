"""The prompts. Their words are data: one file per prompt style in ``data_manifests/prompts``, or in
the user's own folder."""

from collections.abc import Iterable

from capcal_lib.manifests import Prompts, PromptStyle, load_prompts
from capcal_lib.questions.question import LETTERS, Question, digest_of

Messages = tuple[dict[str, str], ...]  # chat messages, each with a role and a content

_FOUR_LETTERS = "A, B, C or D"  # as the instructions have it
_ASKED = "{question}"
_USER = "Q: {}\nA:"
_ASSISTANT = " {}\n\n"  # the turns of a completion prompt


def ask_for_answer(question: Question, prompts: Prompts) -> Messages:
    """Ask for an answer.

    >>> from capcal_lib.questions import Answer
    >>> question = Question("q", "What is 6 × 7?", Answer("number", "42"))
    >>> ask_for_answer(question, load_prompts("short"))[-2:]
    ({'role': 'assistant', 'content': '4 × 2 = 8'}, {'role': 'user', 'content': 'What is 6 × 7?'})
    """
    kind = question.answer.kind
    instruction = prompts.instructions.get(kind)
    if instruction and question.options not in (0, 4):
        *letters, last = list(LETTERS[: question.options])
        instruction = instruction.replace(_FOUR_LETTERS, f"{', '.join(letters)} or {last}")
    text = f"{question.text}\n\n{instruction}" if instruction else question.text
    return _chat(prompts.examples.get(kind, ()), text)


def verbalized_messages(question: Question, style: PromptStyle) -> Messages:
    """Ask for the probability, between 0 and 1, of answering the question right (the question, not
    an answer to it).
    """
    prompts = load_prompts(style)
    examples = [
        (prompts.verbalized.replace(_ASKED, asked), answer)
        for asked, answer in prompts.verbalized_examples
    ]
    return _chat(examples, prompts.verbalized.replace(_ASKED, question.text))


def p_true_messages(question: Question, style: PromptStyle) -> Messages:
    """Ask whether the model can answer the question, Yes or No."""
    return _chat((), load_prompts(style).p_true.replace(_ASKED, question.text))


def completion_text(messages: Messages) -> str:
    r"""Write a chat as the beginning of a text, as a model without a chat template goes on with it.

    >>> completion_text(({"role": "user", "content": "What is 6 × 7?"},))
    'Q: What is 6 × 7?\nA:'
    """
    return "".join(
        (_USER if turn["role"] == "user" else _ASSISTANT).format(turn["content"])
        for turn in messages
    )


def completion_answer(text: str) -> str:
    """Return a completion up to the next question, which a model that only completes text makes up
    itself.
    """
    return text.partition("\nQ: ")[0].strip()


def prompt_digest(content: object) -> str:
    """Return 16 hexadecimal digits that tell one prompt, the messages, from another."""
    return digest_of(content)[:16]


def template_digest(prompts: Prompts) -> str:
    """Return 16 hexadecimal digits that change whenever the wording of an answer prompt changes."""
    parts: list[object] = [part for part in (prompts.instructions, prompts.examples) if part]
    if prompts.completion:
        parts.append((_USER, _ASSISTANT))
    return prompt_digest(parts[0] if len(parts) == 1 else parts)


def _chat(examples: Iterable[tuple[str, str]], last: str) -> Messages:
    """Write examples, earlier questions and answers, and then the question."""
    messages = []
    for question, answer in examples:
        messages.append({"role": "user", "content": question})
        messages.append({"role": "assistant", "content": answer})
    messages.append({"role": "user", "content": last})
    return tuple(messages)
