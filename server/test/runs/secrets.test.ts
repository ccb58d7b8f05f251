import { readdir, readFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import type { Script } from "../support/scripted-agent.js";
import { asking, bodyOf } from "../support/server.js";
import { serveStored } from "../support/stored-server.js";

const secret = "sk-test-5f2c9a71d3e84b06";
const marker = "not-a-secret-40417";

/** Says what it should never say: in one piece, in parts, in a tool's call and its result. */
const indiscreet: Script = async function* () {
  yield { type: "message", text: `the key is ${secret} ${marker}` };
  yield { type: "message_start", id: "m" };
  for (const part of [secret.slice(0, 7), secret.slice(7, 12), secret.slice(12)])
    yield { type: "message_delta", id: "m", delta: part };
  yield { type: "message_end", id: "m" };
  yield { type: "tool_call", id: "t", name: "env", input: { key: secret } };
  yield { type: "tool_result", id: "t", output: Buffer.from(secret).toString("base64") };
  yield { type: "done", stopReason: "end_turn" };
};

const request = {
  ...asking,
  modelConnection: {
    credentialMode: "env",
    credentials: [
      { binding: { kind: "environment", name: "MODEL_KEY" }, value: secret, usage: "opaque_http" },
    ],
  },
};

/** Everything that lies in the database's folder, its log and its index among it. */
async function rawFiles(file: string): Promise<Buffer> {
  const folder = dirname(file);
  const names = await readdir(folder);
  return Buffer.concat(await Promise.all(names.map((name) => readFile(join(folder, name)))));
}

const holds = (raw: Buffer, text: string) =>
  [text, Buffer.from(text).toString("base64").replace(/=*$/, "")].some((form) => raw.includes(form));

describe("what lies in the store's files", () => {
  it("has a run's events, and none of its credentials in any form", async () => {
    const { post, file } = await serveStored(indiscreet);
    expect((await post("/run", request)).status).toBe(200);
    const raw = await rawFiles(file);
    expect(holds(raw, marker)).toBe(true);
    expect(holds(raw, secret)).toBe(false);
  });

  it("has a queued request only sealed", async () => {
    const configuration = { limits: { concurrentRuns: 1 } };
    const endless: Script = async function* ({ signal }) {
      await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
      yield { type: "done" };
    };
    const { post, get, file } = await serveStored(endless, { configuration });
    await post("/run", asking, { prefer: "respond-async" });
    const { runId, state } = await bodyOf<{ runId: string; state: string }>(
      await post("/run", { ...request, agentsMd: marker }, { prefer: "respond-async" }),
    );
    expect(state).toBe("queued");
    const raw = await rawFiles(file);
    expect(holds(raw, runId)).toBe(true);
    for (const content of [secret, marker]) expect(holds(raw, content)).toBe(false);
    expect(await (await get(`/runs/${runId}`)).text()).not.toContain(secret);
  });
});
