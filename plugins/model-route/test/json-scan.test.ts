import { describe, expect, it } from "vitest";
import { type Captured, JsonScan } from "../src/json-scan.js";

const paths = ["model", "stream", "message.usage", "usage"];

function scanned(text: string, pieceSize = text.length): Captured[] {
  const found: Captured[] = [];
  const scan = new JsonScan({ paths, onCaptured: (one) => found.push(one) });
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; at += pieceSize) scan.feed(bytes.subarray(at, at + pieceSize));
  return found;
}

const document = JSON.stringify(
  {
    a: [{ model: "in a list" }, '\\"model":1'],
    model: 'x"\\é',
    nested: { model: "below", usage: 1, message: { usage: 2 } },
    message: { usage: { input_tokens: 1, usage: { deep: [1, { b: "}" }] } }, model: "below" },
    stream: true,
    text: '"usage":{"input_tokens":9}',
    usage: null,
  },
  undefined,
  1,
);

describe("a scan for members of a document", () => {
  it.each([1, 2, 3, 7, 64, 10_000])("finds only the wanted ones, in pieces of %i bytes", (pieceSize) => {
    const found = scanned(document, pieceSize);
    expect(found.map(({ path, value }) => [path, value])).toEqual([
      ["model", 'x"\\é'],
      ["message.usage", { input_tokens: 1, usage: { deep: [1, { b: "}" }] } }],
      ["stream", true],
      ["usage", null],
    ]);
    const bytes = Buffer.from(document);
    for (const { start, end, value } of found) {
      expect(JSON.parse(bytes.subarray(start, end).toString())).toEqual(value);
    }
  });

  it.each([
    { text: '{"mod\\u0065l":"x"}', what: "a key with escapes" },
    { text: '{"Model":"x"}', what: "a key in another case" },
    { text: ' {\n"model" \t:\r\n "x" } ', what: "space around" },
  ])("treats $what like a server would", ({ text }) => {
    expect(scanned(text)).toMatchObject([{ path: "model", value: "x" }]);
  });

  it("reports a member each time it occurs", () => {
    expect(scanned('{"model":"a","x":[],"model":"b"}').map(({ value }) => value)).toEqual(["a", "b"]);
  });

  it.each(['["model","x"]', '"model"', '{"x":{"model":"a"}}', "{", '{"model":', "}}}]]]", '{"a":[}'])(
    "finds nothing in %s",
    (text) => {
      expect(scanned(text, 1)).toEqual([]);
    },
  );

  it("keeps no value that is too long, and continues after it", () => {
    const text = JSON.stringify({ model: "x".repeat(20_000), stream: true });
    expect(scanned(text, 1_000)).toMatchObject([
      { path: "model", value: undefined },
      { path: "stream", value: true },
    ]);
  });

  it("reads a text of escapes once, not once for each of them", () => {
    const text = Buffer.from(`{"text":"${"\\n".repeat(2_000_000)}","model":"x"}`);
    let reads = 0;
    const counting = new Proxy(text, {
      get: (bytes, name) => {
        if (name === "indexOf") reads += 1;
        const value: unknown = Reflect.get(bytes, name);
        return typeof value === "function" ? value.bind(bytes) : value;
      },
    });
    const found: unknown[] = [];
    new JsonScan({ paths, onCaptured: ({ value }) => found.push(value) }).feed(counting);
    expect(found).toEqual(["x"]);
    expect(reads).toBeLessThan(20);
  });
});
