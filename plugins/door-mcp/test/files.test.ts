import { expect, it } from "vitest";
import { bytesOf } from "../src/file-resources.js";
import { Runs } from "../src/runs.js";

const bodyOf = (...parts: readonly string[]) =>
  ReadableStream.from(parts.map((part) => new TextEncoder().encode(part)));

it.each([
  ["with its length", { "content-length": "4" }, 4, "abcd"],
  ["without its length", {}, 4, "abcd"],
  ["too long, with its length", { "content-length": "4" }, 3, undefined],
  ["too long, without its length", {}, 3, undefined],
])("reads a file %s", async (_what, headers, maxBytes, text) => {
  const bytes = await bytesOf(new Response(bodyOf("ab", "cd"), { headers }), maxBytes);
  expect(bytes?.toString()).toBe(text);
});

it("has the files of a result that are still there, and fits in the model's context", async () => {
  const answers: Readonly<Record<string, () => Response>> = {
    "/runs/r/files/gone.txt": () =>
      Response.json(
        { ok: false, error: "It was deleted.", failure: { code: "not_found", retryable: false } },
        { status: 404 },
      ),
    "/runs/r/files/grown.txt": () => new Response(bodyOf("x".repeat(40_000))),
    "/runs/r/files/broken.txt": () =>
      new Response(
        new ReadableStream({
          pull: (reader) => reader.error(new Error("the response has ended early")),
        }),
      ),
    "/runs/r/files/short.txt": () => new Response("short"),
  };
  const fetch = async (input: string | URL | Request) =>
    answers[new URL(String(input)).pathname]?.() ?? Response.error();
  const runs = new Runs({ fetch, kind: "platform", opensUrls: false });
  const files = ["gone.txt", "grown.txt", "broken.txt", "short.txt"].map((path) => ({ path, size: 5 }));
  const embedded = await runs.embedded({ runId: "r", status: "completed", files });
  expect([...embedded.values()]).toMatchObject([{ text: "short" }]);
});
