"""The tokens of one request, as the model reads it."""

from typing import Any

from capcal_lib.manifests import Model
from capcal_lib.sampling.engines import Request
from capcal_lib.sampling.engines.chat import encode_all


def encode(tokenizer: Any, model: Model, request: Request) -> list[int]:
    [tokens] = encode_all(tokenizer, model, [request])
    return tokens
