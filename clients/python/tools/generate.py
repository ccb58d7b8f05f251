"""Writes what is generated: the models from the server's OpenAPI document, and the synchronous client.

    python tools/generate.py openapi.json    # GET /openapi.json of a server

With `--check`, it writes nothing and fails where a file isn't current.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
SOURCES = PROJECT / "src/ambit_client"

#: The asynchronous client's words, and what they are in the synchronous one.
WORDS = [
    (r"await resolved\((.*)\)\n", r"\1\n"),
    (r"await asyncio\.sleep", "clock.sleep"),
    (r"import asyncio\n", ""),
    (r", resolved\b", ""),
    (r"\basync (def|for|with) ", r"\1 "),
    (r"\bawait ", ""),
    (r"\bAsync(Client|Run|Iterator|Iterable)\b", r"\1"),
    (r"\b_Async(Http)\b", r"_\1"),
    (r"\b__a(iter|next|enter|exit)__\b", r"__\1__"),
    (r"\ba(iter_bytes|read|close|next)\b", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"StopAsyncIteration", "StopIteration"),
    (r"The asynchronous client\. The.*\"\"\"", 'The synchronous client."""'),
]


def named(document: dict) -> dict:
    """The document's schemas, in which each alternative of a union is a schema of its own, named by its title."""
    schemas = document["components"]["schemas"]
    for union in ("AgentEvent", "StreamRecord", "WebhookMessage"):
        alternatives = {alternative.pop("title"): alternative for alternative in schemas[union]["oneOf"]}
        schemas[union]["discriminator"] = {"propertyName": "kind" if union == "StreamRecord" else "type"}
        schemas[union]["oneOf"] = [{"$ref": f"#/components/schemas/{name}"} for name in alternatives]
        schemas.update(alternatives)
    for schema in schemas.values():
        schema.pop("title", None)
    return {**document, "paths": {}, "webhooks": {}}


def models(document: dict) -> str:
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "contract.json"), Path(folder, "models.py")
        source.write_text(json.dumps(named(document)))
        # Its options are in pyproject.toml.
        command = [sys.executable, "-m", "datamodel_code_generator"]
        subprocess.run([*command, "--input", source, "--output", target], check=True, cwd=PROJECT)
        text = target.read_text().replace("contract.json", "GET /openapi.json")
    # The generator has no name for a union that it collapses into its users.
    events = " | ".join(re.findall(r"^class (\w+Event)\(", text, re.MULTILINE))
    return f"{text}\n\nEvent = {events}\n"


def synchronous(source: str) -> str:
    for pattern, replacement in WORDS:
        source = re.sub(pattern, replacement, source)
    source = "# Generated from _async.py by tools/generate.py.\n" + source
    for command in (["check", "--select", "I", "--fix", "--quiet"], ["format"]):
        ruff = [sys.executable, "-m", "ruff", *command, "--stdin-filename", SOURCES / "_sync.py", "-"]
        source = subprocess.run(ruff, input=source, capture_output=True, text=True, check=True).stdout
    return source


def main(document_file: str, *options: str) -> int:
    document = json.loads(Path(document_file).read_text())
    files = {
        SOURCES / "models.py": models(document),
        SOURCES / "_sync.py": synchronous((SOURCES / "_async.py").read_text()),
    }
    if "--check" not in options:
        for file, content in files.items():
            file.write_text(content)
        return 0
    outdated = [file.name for file, content in files.items() if not file.exists() or file.read_text() != content]
    for name in outdated:
        print(f"{name} isn't current: run tools/generate.py", file=sys.stderr)
    return 1 if outdated else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
