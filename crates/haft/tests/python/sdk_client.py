"""Scenarios in which the official MCP SDK for Python is the client of `haft mcp`.

Usage: sdk_client.py HAFT FOLDER SCENARIO. Exits 0 when everything is as it should be. The SDK
itself checks every message against the protocol and structured content against output schemas.
"""

import base64
import contextlib
import http.server
import json
import os
import sys
import threading
import time
from pathlib import Path

import anyio
from jsonschema import Draft202012Validator
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import ElicitResult

HAFT, FOLDER, SCENARIO = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
ENVIRONMENT = {name: os.environ[name] for name in ("HAFT_HOME", "HOME", "PATH")}


def server(*arguments):
    return StdioServerParameters(
        command=HAFT, args=["mcp", "--root", str(FOLDER), *arguments], env=ENVIRONMENT, cwd=FOLDER
    )


@contextlib.asynccontextmanager
async def session(*arguments, **options):
    async with stdio_client(server(*arguments)) as (read, write):
        async with ClientSession(read, write, read_timeout_seconds=60, **options) as client:
            told = await client.initialize()
            assert told.server_info.name == "haft", told
            await client.list_tools()
            yield client


def text(result):
    return "\n".join(part.text for part in result.content if part.type == "text")


def runs(words):
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and words in (entry / "cmdline").read_bytes().decode(errors="replace"):
                found.append(entry.name)
    return [process for process in found if process != str(os.getpid())]


async def wait_for(condition, seconds=20):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        await anyio.sleep(0.01)


NAMES = ["read", "bash", "edit", "write", "grep", "find", "ls", "job", "notebook_edit", "todo",
         "think", "sleep", "send_file", "config", "web_fetch"]


async def tools():
    async with session() as client:
        answer = await client.list_tools()
        for tool in listed(answer):
            assert tool.output_schema is None, tool


async def tools_structured():
    async with session("--structured") as client:
        answer = await client.list_tools()
        for tool in listed(answer):
            # Its answer may be an image, beside which nothing else is sent.
            assert (tool.output_schema is None) == (tool.name in ("read", "web_fetch")), tool
            if tool.output_schema:
                Draft202012Validator.check_schema(tool.output_schema)
                assert tool.output_schema["type"] == "object", tool
                assert "text_content" in tool.output_schema["required"], tool


def listed(answer):
    names = [tool.name for tool in answer.tools]
    assert names == NAMES, names
    for tool in answer.tools:
        Draft202012Validator.check_schema(tool.input_schema)
        assert tool.input_schema["type"] == "object", tool
        assert tool.title and tool.description and tool.annotations, tool
        reads = tool.name in ("read", "grep", "find", "ls", "todo", "think", "sleep", "web_fetch")
        assert tool.annotations.read_only_hint == reads, tool
        assert tool.annotations.destructive_hint != reads, tool
    return answer.tools


NOTEBOOK = json.dumps({
    "cells": [{"cell_type": "markdown", "id": "one", "metadata": {}, "source": ["alpha"]}],
    "metadata": {}, "nbformat": 4, "nbformat_minor": 5,
})


class Page(http.server.BaseHTTPRequestHandler):
    """A page of a server on this machine."""

    def do_GET(self):
        body = b"<title>Tea</title><h1>Tea</h1><p>Steep for three minutes.</p>"
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def page():
    """The address of a page that the person lets haft fetch."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page)
    host = f"127.0.0.1:{server.server_port}"
    home = Path(os.environ["HAFT_HOME"])
    home.mkdir(parents=True, exist_ok=True)
    (home / "settings.toml").write_text(f"web.private = ['{host}']\n")
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://{host}/"
    finally:
        server.shutdown()


async def every_tool(*arguments):
    """Calls each tool; gives the answers by its name."""
    with page() as url:
        return await every_tool_with(url, *arguments)


async def every_tool_with(url, *arguments):
    (FOLDER / "a.txt").write_text("one\ntwo\n")
    (FOLDER / "n.ipynb").write_text(NOTEBOOK)
    calls = {
        "read": {"path": "a.txt"},
        "edit": {"path": "a.txt", "edits": [{"old_text": "two", "new_text": "three"}]},
        "write": {"path": "n/b.txt", "content": "x\n"},
        "grep": {"pattern": "thr"},
        "find": {"pattern": "*.txt"},
        "ls": {},
        "bash": {"command": "echo out; touch made"},
        "job": {"action": "list"},
        "notebook_edit": {"path": "n.ipynb", "cell": 1, "new_source": "beta"},
        "todo": {"items": [{"text": "read it", "status": "in_progress"}]},
        "think": {"thought": "what next"},
        "sleep": {"seconds": 0},
        "send_file": {"path": "a.txt"},
        "config": {"get": "terminal.theme"},
        "web_fetch": {"url": url},
    }
    assert sorted(calls) == sorted(NAMES)
    answers = {}
    async with session("--mode", "bypass", *arguments) as client:
        for name, input in calls.items():
            answer = await client.call_tool(name, input)
            assert not answer.is_error and text(answer), answer
            answers[name] = answer
            if name == "read":
                await client.call_tool(name, {"path": "n.ipynb"})
    assert (FOLDER / "a.txt").read_text() == "one\nthree\n"
    assert (FOLDER / "n/b.txt").read_text() == "x\n"
    for name, wanted in (("read", "two"), ("grep", "a.txt"), ("bash", "created: made"),
                         ("web_fetch", "three minutes")):
        assert wanted in text(answers[name]), answers[name]
    return answers


async def calls():
    for answer in (await every_tool()).values():
        assert answer.structured_content is None, answer


async def calls_structured():
    answers = await every_tool("--structured")
    for answer in answers.values():
        assert answer.structured_content["text_content"] == text(answer), answer
    data = {name: answer.structured_content for name, answer in answers.items()}
    assert data["read"]["total_lines"] == 2, data
    assert data["edit"]["replacements"] == 1, data
    assert data["write"]["created"], data
    assert data["bash"]["exit_code"] == 0 and data["bash"]["stdout"] == "out\n", data
    assert data["job"]["jobs"] == [], data


async def long_structured():
    """The text and what stands beside it have the budget that the text has alone."""
    async with session("--mode", "bypass", "--structured") as client:
        answer = await client.call_tool("bash", {"command": "seq 20000"})
        size = len(json.dumps(answer.structured_content, ensure_ascii=False))
        alone = len(json.dumps(text(answer), ensure_ascii=False))
        assert answer.structured_content["text_content"].startswith(text(answer)), answer
        assert size < alone + 3_000, (size, alone)


async def images():
    for arguments in ([], ["--structured"]):
        async with session(*arguments) as client:
            result = await client.call_tool("read", {"path": "pixel.png"})
            images = [part for part in result.content if part.type == "image"]
            assert not result.is_error and len(images) == 1, result
            assert images[0].mime_type == "image/png", images
            assert base64.b64decode(images[0].data).startswith(b"\x89PNG"), images
            assert result.structured_content is None, result


async def progress():
    heard = []

    async def hear(done, total, message):
        heard.append((time.monotonic(), done, message or ""))

    async with session("--mode", "bypass") as client:
        command = "echo first; until [ -e go ]; do sleep 0.02; done; echo last"

        async def let_go():
            await wait_for(lambda: any("first" in message for _, _, message in heard))
            (FOLDER / "go").write_text("")

        async with anyio.create_task_group() as group:
            group.start_soon(let_go)
            result = await client.call_tool("bash", {"command": command}, progress_callback=hear)
        assert text(result).split() == ["first", "last"], result
        counts = [done for _, done, _ in heard]
        assert counts == sorted(set(counts)), counts
        assert "last" in heard[-1][2], heard


async def cancel():
    seconds = f"301.{os.getpid()}"
    async with session("--mode", "bypass") as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "bash", {"command": f"sleep {seconds}; echo never"})
            await wait_for(lambda: runs(seconds))
            group.cancel_scope.cancel()
        await wait_for(lambda: not runs(seconds), 5)
        after = await client.call_tool("bash", {"command": "echo well"})
        assert "well" in text(after), after


async def order():
    seconds = f"302.{os.getpid()}"
    async with session("--mode", "bypass", "--structured") as client:
        stubborn = f"trap '' TERM; echo $$ > pid; sleep {seconds}; sleep {seconds}"
        answers = {}

        async def call(name, command):
            answers[name] = await client.call_tool("bash", {"command": command})

        async with anyio.create_task_group() as group:
            with anyio.CancelScope() as cancelled:
                async with anyio.create_task_group() as first:
                    first.start_soon(client.call_tool, "bash", {"command": stubborn})
                    await wait_for(lambda: runs(seconds))
                    cancelled.cancel()
            for name in ("a", "b", "c"):
                alive = "test -d /proc/$(cat pid) && echo alive"
                group.start_soon(call, name, f"{alive}; ls | grep -x '[abc]'; sleep 0.2; touch {name}")
        # In which order the SDK sends them is its own business.
        did = []
        for name, answer in sorted(answers.items(), key=lambda one: len(one[1].structured_content["stdout"])):
            data = answer.structured_content
            assert data["stdout"].split() == sorted(did), data
            assert data["changes"] == {"created": [name]}, data
            did.append(name)


async def errors():
    async with session() as client:
        missing = await client.call_tool("read", {"path": "missing.txt"})
        assert missing.is_error and "missing.txt" in text(missing), missing
        wrong = await client.call_tool("read", {"path": "a.txt", "offset": "many"})
        assert wrong.is_error and "offset" in text(wrong) and "many" in text(wrong), wrong
        denied = await client.call_tool("write", {"path": "no.txt", "content": "x"})
        assert denied.is_error and "no.txt" in text(denied), denied
        assert not (FOLDER / "no.txt").exists()
        denied = await client.call_tool("bash", {"command": "touch no.txt"})
        assert denied.is_error and not (FOLDER / "no.txt").exists(), denied
        try:
            unknown = await client.call_tool("raed", {})
            said = text(unknown)
            assert unknown.is_error, unknown
        except Exception as error:
            said = str(error)
        assert "raed" in said and "read" in said, said


async def elicit():
    asked = []

    async def answer(_context, params):
        asked.append(params)
        choices = [choice["const"] for choice in params.requested_schema["properties"]["answer"]["oneOf"]]
        assert "allow" in choices and "deny" in choices, params
        if len(asked) == 1:
            return ElicitResult(action="accept", content={"answer": "allow"})
        if len(asked) == 2:
            return ElicitResult(action="accept", content={"answer": "deny"})
        return ElicitResult(action="cancel")

    (FOLDER / "a.txt").write_text("one\n")
    change = lambda old, new: {"path": "a.txt", "edits": [{"old_text": old, "new_text": new}]}
    async with session(elicitation_callback=answer) as client:
        allowed = await client.call_tool("edit", change("one", "two"))
        assert not allowed.is_error, allowed
        assert "a.txt" in asked[0].message and len(asked) == 1, asked
        assert "one" in asked[0].message and "two" in asked[0].message, asked
        for count in (2, 3):
            denied = await client.call_tool("edit", change("two", "three"))
            assert denied.is_error and len(asked) == count, (denied, asked)
    assert (FOLDER / "a.txt").read_text() == "two\n"


async def elicit_newest():
    """As elicit, by the client that looks for the newest revision first."""

    async def answer(_context, _params):
        return ElicitResult(action="accept", content={"answer": "allow"})

    (FOLDER / "a.txt").write_text("one\n")
    change = {"path": "a.txt", "edits": [{"old_text": "one", "new_text": "two"}]}
    async with Client(server(), elicitation_callback=answer) as client:
        result = await client.call_tool("edit", change)
        assert not result.is_error, result
    assert (FOLDER / "a.txt").read_text() == "two\n"


async def many():
    for number in range(200):
        (FOLDER / f"f{number}.txt").write_text(f"content {number}\n")
    done = {}
    async with session() as client:

        async def one(number):
            done[number] = text(await client.call_tool("read", {"path": f"f{number}.txt"}))

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(one, number)
    assert len(done) == 200, len(done)
    assert all(f"content {number}" in said for number, said in done.items()), done


async def newest():
    """The client picks the newest revision of the protocol that both know."""
    async with Client(server("--mode", "accept-edits", "--structured")) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert "read" in names, names
        written = await client.call_tool("write", {"path": "w.txt", "content": "x\n"})
        assert not written.is_error and written.structured_content["created"], written
        read = await client.call_tool("read", {"path": "w.txt"})
        assert read.structured_content["total_lines"] == 1, read


async def hang():
    """Calls a command that does not end and waits to be killed."""
    async with session("--mode", "bypass") as client:
        await client.call_tool("bash", {"command": sys.argv[4]})


SCENARIOS = {
    scenario.__name__: scenario
    for scenario in (
        tools, tools_structured, calls, calls_structured, long_structured, images, progress, cancel, order,
        errors, elicit, elicit_newest, many, newest, hang,
    )
}
anyio.run(SCENARIOS[SCENARIO])
