import { execFile, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import * as errors from "@ambit/core";
import { runRequestSchema } from "@ambit/core/contract";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { describe, expect, it } from "vitest";
import { wireSchemas } from "../../src/http/route/json-schema.js";
import type { Script } from "../support/scripted-agent.js";
import { serveScript } from "../support/server.js";
import { serveStored } from "../support/stored-server.js";

const page = readFileSync(new URL("../../../docs/http.md", import.meta.url), "utf8");
const client = fileURLToPath(new URL("../../../examples/python/client.py", import.meta.url));

const base = "https://ambit.invalid/";
const ajv = addFormats.default(new Ajv2020({ strict: false }));
for (const [name, schema] of Object.entries(wireSchemas(base, runRequestSchema)))
  ajv.addSchema(schema, `${base}${name}`);

function expectFit(name: string, values: readonly string[]): void {
  const validate = ajv.getSchema(`${base}${name}`);
  expect(values.length).toBeGreaterThan(0);
  for (const value of values)
    expect(validate?.(JSON.parse(value)), `${value} ${JSON.stringify(validate?.errors)}`).toBe(true);
}

describe("the samples of docs/http.md", () => {
  const samples = [...page.matchAll(/```json (\w+)\n([\s\S]*?)```/g)];
  it.each(samples.map(([, name = "", text = ""]) => [name, text.trim().split("\n")] as const))(
    "%s",
    (name, lines) => expectFit(name, lines),
  );

  it("are of each part", () => {
    const names = new Set(samples.map(([, name]) => name));
    expect([...names]).toEqual([
      "RunRequest",
      "StreamRecord",
      "RunsResponse",
      "UsageResponse",
      "QuotasResponse",
      "InteractionAnswer",
      "FailedResult",
    ]);
  });

  it("include a frame", () => {
    const [, text = ""] = /```sse\n([\s\S]*?)```/.exec(page) ?? [];
    expectFit(
      "StreamRecord",
      [...text.matchAll(/^id: \d+\ndata: (.*)\n\n/gm)].map(([, data = ""]) => data),
    );
  });

  it("name every failure that is always retryable, and no other", () => {
    const [, named = ""] = /These are retryable: ([\s\S]*?); `model_failed`/.exec(page) ?? [];
    const made = [
      new errors.AtCapacity("x"),
      new errors.SessionInUse("x"),
      new errors.RunTimedOut("x"),
      new errors.RunnerLost(),
      new errors.StoreFailed("x"),
      new errors.HarnessFailed("x"),
      new errors.SandboxFailed("x"),
      new errors.BudgetExceeded("x"),
      new errors.InternalError("x"),
      new errors.NotFound("x"),
    ];
    const retryable = made.filter((error) => error.retryable).map(({ code }) => code);
    expect([...named.matchAll(/`(\w+)`/g)].map(([, code]) => code)).toEqual(retryable);
  });
});

/** Asks to do something until it is allowed. */
const cautious: Script = async function* ({ onPermission }) {
  const verdict = await onPermission({ toolCallId: "c1", toolName: "wipe", input: { path: "/tmp" } });
  if (verdict === "park") return;
  yield { type: "message", text: `wipe: ${verdict}` };
  yield { type: "done", stopReason: "end_turn" };
};

describe("the client in Python", () => {
  it("has 40 lines", () => {
    expect(readFileSync(client, "utf8").trimEnd().split("\n").length).toBeLessThanOrEqual(40);
  });

  it("says why it was refused", async (context) => {
    if (spawnSync("python3", ["--version"]).error !== undefined) context.skip("host: no python3");
    const { url } = await serveScript(cautious, { token: "the-right-token-of-all" });
    const env = { ...process.env, AMBIT_URL: url, AMBIT_TOKEN: "another-token-than-that" };
    const child = execFile("python3", [client, "clean up"], { env });
    let errorOutput = "";
    child.stderr?.on("data", (text: string) => {
      errorOutput += text;
    });
    const [code] = await once(child, "close");
    expect(code).toBe(1);
    expect(errorOutput).toMatch(
      /^HTTP 401: \{"kind":"result","result":\{"ok":false,"error":"Unauthorized: send a token of this server/,
    );
  });

  it.for([
    { said: "yes", verdict: "allow" },
    { said: "no", verdict: "deny" },
  ])(
    "runs a turn, answers $said to its question, and continues it without messages",
    { timeout: 60_000 },
    async ({ said, verdict }, context) => {
      if (spawnSync("python3", ["--version"]).error !== undefined) context.skip("host: no python3");
      const { url } = await serveStored(cautious);
      const env = { ...process.env, AMBIT_URL: url, AMBIT_TOKEN: "none-needed" };
      const child = execFile("python3", [client, "clean up"], { env });
      let output = "";
      let errorOutput = "";
      child.stdout?.on("data", (text: string) => {
        output += text;
      });
      child.stderr?.on("data", (text: string) => {
        errorOutput += text;
      });
      child.stdin?.end(`${said}\n`);
      const [code] = await once(child, "close");
      expect({ code, errorOutput, output }).toEqual({
        code: 0,
        errorOutput: "",
        output: `wipe {'path': '/tmp'}? wipe: ${verdict}\n`,
      });
    },
  );
});
