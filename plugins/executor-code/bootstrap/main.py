"""Runs one code tool: the call comes on stdin, its one reply leaves on what was stdout, prints go to stderr."""
import json
import linecache
import os
import sys

reply_to = os.fdopen(os.dup(1), "w", encoding="utf-8")
# Whatever the tool or a program it starts prints must not end up in the reply.
os.dup2(2, 1)


def reply(content):
    text = json.dumps(content, allow_nan=False)
    reply_to.write(text)
    reply_to.flush()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads the tool left running don't keep its answer waiting.
    os._exit(0)


def run(call):
    source = call["code"]
    linecache.cache["tool.py"] = (len(source), None, source.splitlines(True), "tool.py")
    scope = {"__name__": "tool", "__file__": "tool.py"}
    exec(compile(source, "tool.py", "exec"), scope)
    main = scope.get("main")
    if not callable(main):
        return {"failed": "code tool must define a callable main(**inputs)"}
    value = main(**call["arguments"])
    if hasattr(value, "__await__"):
        value = awaited(value)
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        return {"failed": f"main returned a value that is not JSON: {error}"}
    return {"returned": value}


def awaited(value):
    # Takes as long to load as the interpreter to start: only who needs it waits for it.
    import asyncio

    async def result():
        return await value

    return asyncio.run(result())


def explain(error):
    import traceback

    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == "tool.py"]
    lines = traceback.format_list(frames[-5:]) + traceback.format_exception_only(type(error), error)
    return "".join(lines).strip()


call = json.load(sys.stdin.buffer)
os.environ.update(call["env"])
try:
    content = run(call)
except SystemExit as leaving:
    content = {"failed": f"code tool called exit({leaving.code!r}) before main returned"}
except BaseException as error:
    content = {"failed": explain(error)}
reply(content)
