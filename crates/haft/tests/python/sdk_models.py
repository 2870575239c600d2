"""Reads what a mock of a provider streams with that provider's own SDK.

Arguments: the wire and addresses of mocks. Prints a JSON object for each: `text`, `calls` and `usage` as
the SDK understood them, and `problems`, one for each event that does not fit the SDK's own types.
"""

import json
import sys
import urllib.request

from pydantic import TypeAdapter, ValidationError

QUESTION = [{"role": "user", "content": "Hello."}]


def raw_events(url, path):
    """The data of each event, as the mock writes it."""
    request = urllib.request.Request(url + path, data=b"{}", method="POST")
    with urllib.request.urlopen(request) as answer:
        lines = answer.read().decode().splitlines()
    data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
    return [json.loads(text) for text in data if text != "[DONE]"]


def problems(events, kind):
    adapter = TypeAdapter(kind)
    found = []
    for event in events:
        try:
            adapter.validate_python(event)
        except ValidationError as error:
            where = [".".join(map(str, one["loc"])) + ": " + one["msg"] for one in error.errors()]
            found.append(f"{event.get('type', event.get('object'))}: {where[:4]}")
    return found


def call(name, arguments):
    return {"name": name, "input": json.loads(arguments)}


def anthropic(url):
    from anthropic import Anthropic
    from anthropic.types import RawMessageStreamEvent

    client = Anthropic(base_url=url, api_key="k", max_retries=0)
    with client.messages.stream(model="mock-1", max_tokens=99, messages=QUESTION) as stream:
        message = stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [
        {"name": block.name, "input": block.input}
        for block in message.content
        if block.type == "tool_use"
    ]
    usage = [message.usage.input_tokens, message.usage.output_tokens]
    return text, calls, usage, problems(raw_events(url, "/v1/messages"), RawMessageStreamEvent)


def openai(url):
    from openai import OpenAI
    from openai.types.chat import ChatCompletionChunk

    client = OpenAI(base_url=url + "/v1", api_key="k", max_retries=0)
    options = {"include_usage": True}
    with client.chat.completions.stream(
        model="mock-1", messages=QUESTION, stream_options=options
    ) as stream:
        answer = stream.get_final_completion()
    message = answer.choices[0].message
    calls = [
        call(one.function.name, one.function.arguments) for one in message.tool_calls or []
    ]
    usage = [answer.usage.prompt_tokens, answer.usage.completion_tokens]
    found = problems(raw_events(url, "/v1/chat/completions"), ChatCompletionChunk)
    return message.content or "", calls, usage, found


def responses(url):
    from openai import OpenAI
    from openai.types.responses import ResponseStreamEvent

    client = OpenAI(base_url=url + "/v1", api_key="k", max_retries=0)
    with client.responses.stream(model="mock-1", input=QUESTION) as stream:
        answer = stream.get_final_response()
    calls = [call(i.name, i.arguments) for i in answer.output if i.type == "function_call"]
    usage = [answer.usage.input_tokens, answer.usage.output_tokens]
    found = problems(raw_events(url, "/v1/responses"), ResponseStreamEvent)
    return answer.output_text, calls, usage, found


WIRES = {"anthropic": anthropic, "openai": openai, "responses": responses}
for address in sys.argv[2:]:
    text, calls, usage, found = WIRES[sys.argv[1]](address)
    print(json.dumps({"text": text, "calls": calls, "usage": usage, "problems": found}))
