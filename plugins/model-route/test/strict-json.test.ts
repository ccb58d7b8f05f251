import { describe, expect, it } from "vitest";
import { routeTo, serving, useOf } from "./support/stage.js";

const bytes = (...parts: (string | number[])[]) =>
  Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : Buffer.from(part))));
const asked = '{"model":"m-1","messages":[]}';

async function post(body: Buffer, mode: "on" | "off" = "on", config: object = {}) {
  const arrived: string[] = [];
  const endpoint = await serving(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part);
    arrived.push(Buffer.concat(parts).toString());
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
  });
  const stage = routeTo(useOf({ endpoint }), config, undefined, mode);
  const answer = await stage.send(new Blob([new Uint8Array(body)]).stream());
  return { status: answer.status, text: await answer.text(), arrived };
}

describe("a request's body", () => {
  it("is sent as it was read, not as it was written", async () => {
    const { status, arrived } = await post(bytes(' { "mod\\u0065l" : "m-1",\n"messages":[ 1e2 ]} '));
    expect(status).toBe(200);
    expect(arrived).toEqual(['{"model":"m-1","messages":[100]}']);
  });

  it.each([
    ["in UTF-16", Buffer.from(asked, "utf16le"), "isn't JSON"],
    ["in UTF-16 with a mark", bytes([0xff, 0xfe], [...Buffer.from(asked, "utf16le")]), "isn't UTF-8"],
    ["with a mark of UTF-8", bytes([0xef, 0xbb, 0xbf], asked), "isn't JSON"],
    ["with bytes that aren't UTF-8", bytes('{"model":"m-1","a":"', [0xc0, 0xae], '"}'), "isn't UTF-8"],
    ["in two documents", bytes(asked, asked), "isn't JSON"],
    ["with unquoted keys", bytes('{model:"m-1"}'), "isn't JSON"],
    ["with single quotes", bytes("{'model':'m-1'}"), "isn't JSON"],
    ["with a comment", bytes('{/**/"model":"m-1"}'), "isn't JSON"],
    ["with a repeated key", bytes('{"model":"m-1","model":"m-2"}'), "repeats a key"],
    ["with one that is escaped", bytes('{"model":"m-1","mod\\u0065l":"m-2"}'), "repeats a key"],
    ["with one deep inside", bytes('{"model":"m-1","a":[{"b":{"c":1,"c":2}}]}'), "repeats a key"],
    ["with a key in another case", bytes('{"model":"m-1","Model":"m-2"}'), "'model' in another spelling"],
    [
      "with a key that folds to it",
      bytes('{"model":"m-1","\u017ftream":true}'),
      "'stream' in another spelling",
    ],
    ["that is a list", bytes("[]"), "isn't a JSON object"],
    [
      "of many values",
      bytes(`{"model":"m-1","a":[${"{},".repeat(150_000)}0]}`),
      "holds more than 200,000 values",
    ],
    ["of many levels", bytes(`{"model":"m-1","a":${"[".repeat(300)}${"]".repeat(300)}}`), "256 levels"],
  ])("%s is refused, whatever the network", async (_what, body, why) => {
    for (const mode of ["on", "off"] as const) {
      const { status, text, arrived } = await post(body, mode);
      expect({ status, arrived }).toEqual({ status: 400, arrived: [] });
      expect(text).toContain(why);
    }
  });
});
