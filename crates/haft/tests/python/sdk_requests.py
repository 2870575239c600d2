"""Holds requests that haft made against the types of the providers' own SDKs.

Standard input has a JSON object a line: `wire`, `case` and `body`. Prints a line for each request
that the SDK's types refuse.
"""

import json
import sys
from collections.abc import Iterator, Mapping

from pydantic import TypeAdapter, ValidationError


def kinds():
    from anthropic.types.beta.message_create_params import (
        MessageCreateParamsStreaming as BetaMessageCreateParamsStreaming,
    )
    from anthropic.types.message_create_params import MessageCreateParamsStreaming
    from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming
    from openai.types.responses.response_create_params import ResponseCreateParamsStreaming

    return {
        "anthropic": TypeAdapter(MessageCreateParamsStreaming),
        "anthropic-beta": TypeAdapter(BetaMessageCreateParamsStreaming),
        "openai": TypeAdapter(CompletionCreateParamsStreaming),
        "responses": TypeAdapter(ResponseCreateParamsStreaming),
    }


def walk(value):
    """What is an iterable is checked only while it is walked through."""
    if isinstance(value, Mapping):
        for inner in value.values():
            walk(inner)
    elif isinstance(value, (list, tuple, Iterator)) or hasattr(value, "__next__"):
        for inner in value:
            walk(inner)


adapters = kinds()
for line in sys.stdin:
    given = json.loads(line)
    try:
        walk(adapters[given["wire"]].validate_python(given["body"]))
    except ValidationError as error:
        # Where an item fits none of many types, each of them complains: the ends of paths will do.
        problems = [f"{one['loc'][-2:]}: {one['msg']}" for one in error.errors()]
        print(f"{given['case']}: {problems[:6]}")
