import { IncomingMessage, ServerResponse } from "node:http";
import { Socket } from "node:net";
import { expect, test } from "vitest";
import { UnreadTexts } from "../../src/http/response/records.js";
import { setCaller } from "../../src/tenants/caller.js";

function openTexts(max: number) {
  const texts = new UnreadTexts(max);
  const ended: string[] = [];
  const hold = (name: string, length: number, project?: string) => {
    const response = new ServerResponse(new IncomingMessage(new Socket()));
    response.destroy = () => {
      ended.push(name);
      return response;
    };
    const scope = { kind: "file", runKey: "run", path: name } as const;
    const grant = { issuer: null, project, expiresAt: 0, scope };
    if (project !== undefined) setCaller(response.req, { kind: "page", grant, issuer: { kind: "operator" } });
    const held = texts.hold(length, response);
    return () => held[Symbol.dispose]();
  };
  return { hold, ended };
}

test("large texts that aren't read displace the oldest of them, and pages of a log nothing", () => {
  const { hold, ended } = openTexts(1_000_000);
  for (const page of Array.from({ length: 100 }, (_, index) => `page ${index}`)) hold(page, 131_072);
  hold("first", 400_000);
  const readSecond = hold("second", 400_000);
  expect(ended).toEqual([]);
  hold("third", 400_000);
  expect(ended).toEqual(["first"]);
  readSecond();
  readSecond();
  hold("fourth", 400_000);
  expect(ended).toEqual(["first"]);
  // One that is larger than all may have is read alone.
  hold("fifth", 2_000_000);
  expect(ended).toEqual(["first", "third", "fourth"]);
});

test("those of one tenant displace their own before another's", () => {
  const { hold, ended } = openTexts(1_000_000);
  hold("a neighbour's", 300_000, "neighbour");
  const many = Array.from({ length: 6 }, (_, index) => `flood ${index}`);
  for (const name of many) hold(name, 200_000, "flooder");
  expect(ended).toEqual(["flood 0", "flood 1", "flood 2"]);
  // The neighbour's second one is no reason to lose its first: the other still has more.
  hold("its second", 250_000, "neighbour");
  expect(ended).toEqual(["flood 0", "flood 1", "flood 2", "flood 3"]);
});
