import { describe, expect, it } from "vitest";
import { formsOf, pairedForms } from "../src/index.js";

/** With every character that one of the encoders writes differently. */
const secret = `p"a's/s&<w>+o=r d~*(1)\`\\2%3`;

describe("a secret is found as", () => {
  it.each([
    ["it is", secret],
    // JSON.stringify(secret)
    ["JSON of JavaScript and Python", `p\\"a's/s&<w>+o=r d~*(1)\`\\\\2%3`],
    // json_encode($secret)
    ["JSON of PHP", `p\\"a's\\/s&<w>+o=r d~*(1)\`\\\\2%3`],
    // json.Marshal(secret)
    ["JSON of Go", `p\\"a's/s\\u0026\\u003cw\\u003e+o=r d~*(1)\`\\\\2%3`],
    // new Gson().toJson(secret)
    ["JSON of Gson", `p\\"a\\u0027s/s\\u0026\\u003cw\\u003e+o\\u003dr d~*(1)\`\\\\2%3`],
    // JsonSerializer.Serialize(secret)
    ["JSON of .NET", "p\\u0022a\\u0027s/s\\u0026\\u003Cw\\u003E\\u002Bo=r d~*(1)\\u0060\\\\2%3"],
    // json_encode($secret, JSON_HEX_TAG | JSON_HEX_AMP | JSON_HEX_APOS | JSON_HEX_QUOT), as Symfony does
    ["JSON of Symfony", "p\\u0022a\\u0027s\\/s\\u0026\\u003Cw\\u003E+o=r d~*(1)`\\\\2%3"],
    ["JSON in JSON", JSON.stringify(JSON.stringify(secret)).slice(3, -3)],
    ["JSON of PHP in JSON", JSON.stringify(`p\\"a's\\/s&<w>+o=r d~*(1)\`\\\\2%3`).slice(1, -1)],
    [
      "JSON of Go in JSON",
      JSON.stringify(`p\\"a's/s\\u0026\\u003cw\\u003e+o=r d~*(1)\`\\\\2%3`).slice(1, -1),
    ],
    ["text of a page", `p"a's/s&amp;&lt;w&gt;+o=r d~*(1)\`\\2%3`],
    // html.escape(secret)
    ["HTML of Python", "p&quot;a&#x27;s/s&amp;&lt;w&gt;+o=r d~*(1)`\\2%3"],
    // html.EscapeString(secret)
    ["HTML of Go", "p&#34;a&#39;s/s&amp;&lt;w&gt;+o=r d~*(1)`\\2%3"],
    // htmlspecialchars($secret)
    ["HTML of PHP", "p&quot;a&#039;s/s&amp;&lt;w&gt;+o=r d~*(1)`\\2%3"],
    ["HTML of Mustache", "p&quot;a&#39;s&#x2F;s&amp;&lt;w&gt;+o&#x3D;r d~*(1)&#x60;\\2%3"],
    ["XML", "p&quot;a&apos;s/s&amp;&lt;w&gt;+o=r d~*(1)`\\2%3"],
    // encodeURIComponent(secret)
    ["a part of a URL", encodeURIComponent(secret)],
    ["a URL", encodeURI(secret)],
    // urllib.parse.quote(secret)
    ["a path of Python", "p%22a%27s/s%26%3Cw%3E%2Bo%3Dr%20d~%2A%281%29%60%5C2%253"],
    // rawurlencode($secret)
    ["a path of PHP", "p%22a%27s%2Fs%26%3Cw%3E%2Bo%3Dr%20d~%2A%281%29%60%5C2%253"],
    ["a path of .NET, in lower case", "p%22a%27s%2fs%26%3cw%3e%2bo%3dr%20d~%2a%281%29%60%5c2%253"],
    ["a field of a form", new URLSearchParams([["", secret]]).toString().slice(1)],
    // urllib.parse.quote_plus(secret), url.QueryEscape(secret)
    ["a field of a form in Python and Go", "p%22a%27s%2Fs%26%3Cw%3E%2Bo%3Dr+d~%2A%281%29%60%5C2%253"],
    ["hex", Buffer.from(secret).toString("hex")],
    ["hex in capitals", Buffer.from(secret).toString("hex").toUpperCase()],
    ["base64", Buffer.from(secret).toString("base64").replace(/=+$/, "")],
    ["base64url", Buffer.from(secret).toString("base64url")],
  ])("%s", (_what, form) => {
    expect(formsOf(secret)).toContain(form);
  });

  it.each(["", "u", "us"])("a part of base64, after %j", (before) => {
    const text = Buffer.from(`${before}${secret}, and more`).toString("base64");
    expect(formsOf(secret).filter((form) => text.includes(form)).length).toBeGreaterThan(0);
  });
});

describe("forms", () => {
  it("of a token without special characters are few", () => {
    expect(formsOf("ghp_0123456789abcdefghij").length).toBeLessThanOrEqual(8);
  });

  it("come with the same form of a stand-in", () => {
    const pairs = new Map(pairedForms(secret, "stand-in").map(({ form, standIn }) => [form, standIn]));
    expect(pairs.get(secret)).toBe("stand-in");
    expect(pairs.get(Buffer.from(secret).toString("hex"))).toBe(Buffer.from("stand-in").toString("hex"));
    expect([...pairs.keys()]).toEqual(formsOf(secret));
  });
});

it("that no encoder of text changes, has only the forms of its bytes besides", () => {
  const plain = "aB3._-xyz";
  const bytes = Buffer.from(plain);
  expect(new Set(formsOf(plain))).toEqual(
    new Set([
      plain,
      bytes.toString("hex"),
      bytes.toString("hex").toUpperCase(),
      ...[0, 1, 2].map((before) => {
        const encoded = Buffer.concat([Buffer.alloc(before), bytes]).toString("base64");
        return encoded.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6));
      }),
    ]),
  );
});
