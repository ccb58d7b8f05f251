import { PassThrough } from "node:stream";
import type { AgentEventOf } from "@ambit/core";
import { describe, expect, it } from "vitest";
import { Questions } from "../../../src/cli/by-hand/ask/questions.js";

type Request = AgentEventOf<"interaction_request">;

type Question = Omit<Request, "type" | "id">;

/** Answers to one question, for a person who types these lines. */
async function answers(question: Question, ...lines: readonly string[]) {
  const { given, printed } = await answersToAll([question], ...lines);
  return { answer: given[0], printed };
}

/** Answers to the questions of one run. */
async function answersToAll(asked: readonly Question[], ...lines: readonly string[]) {
  const input = new PassThrough();
  const output = new PassThrough();
  let printed = "";
  const given: unknown[] = [];
  const left = [...lines];
  output.on("data", (bytes: Buffer) => {
    printed += String(bytes);
    // A prompt has no end of line.
    const line = String(bytes).endsWith("\n") ? undefined : left.shift();
    if (line !== undefined) setImmediate(() => input.write(`${line}\n`));
  });
  const questions = new Questions(
    { input, output },
    (_, body) => given.push(body),
    AbortSignal.timeout(30_000),
  );
  const expiresAt = "2030-01-01T00:00:00Z";
  for (const question of asked)
    questions.ask({
      type: "interaction_request",
      id: "ask_1",
      ...question,
      payload: { expiresAt, ...question.payload },
    });
  await expect.poll(() => given.length, { timeout: 20_000 }).toBe(asked.length);
  return { given, printed };
}

const form = {
  type: "object",
  properties: { name: { type: "string", title: "Your name" }, size: { type: "integer", default: 3 } },
  required: ["name"],
};

describe("questions at the terminal", () => {
  it("asks for each field of a form, again for one that can't be used", async () => {
    const input = { message: "Who are \u001b[2Jyou?", form };
    const { answer, printed } = await answers(
      { kind: "user_input", payload: { input } },
      "y",
      "",
      "Ada",
      "many",
      "4",
    );
    expect(printed).toContain("Who are \u241b[2Jyou?");
    expect(printed).toContain("It is required.");
    expect(printed).toContain("size (3)");
    expect(answer).toEqual({ output: { name: "Ada", size: 4 } });
  });

  it("declines a form for no, and one that it can't show", async () => {
    const declined = { output: "The user declined.", isError: true };
    expect(
      (await answers({ kind: "user_input", payload: { input: { message: "?", form } } }, "n")).answer,
    ).toEqual(declined);
    const nested = { properties: { it: { type: "object" } } };
    expect(
      (await answers({ kind: "user_input", payload: { input: { message: "?", form: nested } } })).answer,
    ).toEqual(declined);
  });

  it("shows a page's address", async () => {
    const input = { message: "Sign in", url: "https://example.com/sign-in" };
    const { answer, printed } = await answers({ kind: "user_input", payload: { input } }, "y");
    expect(printed).toContain("Open this page: https://example.com/sign-in");
    expect(answer).toEqual({ output: {} });
  });

  it.each([
    ["text", "sunny", { output: "sunny" }],
    ["JSON", '{"degrees": 7}', { output: { degrees: 7 } }],
    ["nothing", "", { output: "The user declined.", isError: true }],
  ])("takes a client tool's output: %s", async (_, line, expected) => {
    const payload = { toolName: "look_out", input: { window: "left" } };
    const { answer, printed } = await answers({ kind: "client_tool", payload }, line);
    expect(printed).toContain("\n  window: left\n");
    expect(answer).toEqual(expected);
  });

  it("says how much of a call's arguments it doesn't show", async () => {
    const call = (padding: number) => ({
      kind: "user_approval" as const,
      payload: { toolName: "shell", input: { comment: "x".repeat(padding), command: "rm -rf ." } },
    });
    const { answer, printed } = await answers(call(5_000), "n");
    expect(printed).not.toContain("rm -rf");
    expect(printed).toMatch(/… 1,0\d\d more characters aren't shown/);
    expect(answer).toEqual({ approved: false });
    // Control: what fits is shown whole.
    const whole = await answers(call(100), "n");
    expect(whole.printed).toContain("rm -rf .");
    expect(whole.printed).not.toContain("aren't shown");
  });

  it("allows always just the tool that was asked about: no other server's, and no budget, of the same name", async () => {
    const about = (more: object): Question => ({
      kind: "user_approval",
      payload: { toolName: "budget", ...more },
    });
    const [own, docs, other, money] = [
      about({ input: { query: "a" } }),
      about({ server: "docs" }),
      about({ server: "other\n" }),
      about({ used: "2 of 2 requests" }),
    ];
    const { given, printed } = await answersToAll(
      [own, own, docs, docs, other, money],
      ...["always", "always", "no", "no"],
    );
    expect(given).toEqual([true, true, true, true, false, false].map((approved) => ({ approved })));
    expect(printed.match(/^MCP server: .*/gm)).toEqual(["MCP server: docs", "MCP server: other "]);
  });

  it("shows a tool's name on one line", async () => {
    const toolName = "look be called?\n{}\n[o]nce, [a]lways in this run, [n]o";
    const { printed } = await answers({ kind: "user_approval", payload: { toolName } }, "n");
    expect(printed).toContain("May look be called? {} [o]nce, [a]lways in this run, [n]o be called?");
  });
});
