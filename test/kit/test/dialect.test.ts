import { randomUUID } from "node:crypto";
import { type Dialect, isJsonObject } from "@ambit/core/plugin";
import { expect, it } from "vitest";
import { type DialectCase, dialectChecks, requireOwnSpelling } from "../src/dialect/checks.js";

const one: DialectCase = {
  name: "a prompt",
  request: { ask: "hello" },
  translated: { messages: [{ role: "user", content: "hello" }] },
};

const messagesOf = (ask: unknown) => [{ role: "user", content: ask }];
const careful: Dialect = {
  name: "careful",
  keys: { "": ["ask"] },
  translate: (request) => {
    const { ask, ...others } = request;
    if (typeof ask !== "string") return { request, issues: [] };
    return { request: { ...others, messages: messagesOf(ask) }, issues: [] };
  },
};

const mistakes: readonly (readonly [what: string, at: number, Dialect["translate"]])[] = [
  ["counts", 0, ({ ask }) => ({ request: { messages: messagesOf(`${ask}${randomUUID()}`) }, issues: [] })],
  [
    "changes what it gets",
    0,
    (request) => ({ request: Object.assign(request, { messages: [] }), issues: [] }),
  ],
  ["returns no request of the contract", 0, ({ ask }) => ({ request: { said: ask ?? "" }, issues: [] })],
  ["drops what it doesn't know", 1, ({ ask }) => ({ request: { messages: messagesOf(ask) }, issues: [] })],
  [
    "trusts a type",
    2,
    (request) => {
      const { ask } = request;
      return {
        request: { asked: isJsonObject(ask) ? ask : String(ask).trim() },
        issues: [{ path: "", message: Object(ask).trim() }],
      };
    },
  ],
];

it.each(mistakes)("a dialect that %s is caught", (_what, at, translate) => {
  expect(() => dialectChecks[at]?.check({ ...careful, translate }, one)).toThrow();
});

it("one that copies a request of the contract is caught", () => {
  const translate: Dialect["translate"] = (request) => ({ request: { ...request }, issues: [] });
  expect(() => requireOwnSpelling({ ...careful, translate })).toThrow("the request itself");
  expect(() => requireOwnSpelling({ ...careful, tokenHeaders: ["X-Token"] })).toThrow("lower case");
});

it("a careful one passes", () => {
  requireOwnSpelling(careful);
  for (const { check } of dialectChecks) check(careful, one);
});
