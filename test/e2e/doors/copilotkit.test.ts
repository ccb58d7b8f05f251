import { randomUUID } from "node:crypto";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { HttpAgent, type RunAgentParameters } from "@ag-ui/client";
import { execa } from "execa";
import { beforeAll, expect, it } from "vitest";
import { z } from "zod";
import { pinnedPackages } from "../../../scripts/pinned-packages.mjs";
import { startServer } from "../support/ambit.js";
import { chatDoors } from "../support/configurations.js";

const pinned = fileURLToPath(new URL("../../../scripts/copilotkit", import.meta.url));
const outcomeSchema = z.object({ interrupts: z.array(z.object({ id: z.string() })) });

/** Of CopilotKit's runtime, which speaks with the door. */
let runtimeUrl: string;

beforeAll(async () => {
  const token = randomUUID();
  const server = await startServer(
    { AMBIT_TOKEN: randomUUID(), DOOR_TOKENS: `${token},${randomUUID()}` },
    chatDoors,
  );
  const runtime = execa(process.execPath, [`${pinned}/runtime.mjs`, `${server.url}/ag-ui/run`], {
    cwd: await pinnedPackages(pinned),
    env: {
      PATH: process.env.PATH,
      AMBIT_TOKEN: token,
      COPILOTKIT_TELEMETRY_DISABLED: "true",
      DO_NOT_TRACK: "1",
    },
    extendEnv: false,
    reject: false,
  });
  for await (const line of createInterface({ input: runtime.stdout })) {
    runtimeUrl = line;
    break;
  }
  return async () => {
    runtime.kill("SIGKILL");
    await runtime;
    server.process.kill("SIGKILL");
  };
}, 300_000);

/** The official client of one thread, by way of the runtime. */
class Thread extends HttpAgent {
  /** @param action `connect` follows what another client of the thread has begun */
  constructor(threadId: string = randomUUID(), action: "run" | "connect" = "run") {
    super({ url: `${runtimeUrl}/agent/coder/${action}`, threadId });
  }

  /** Sends a message whose lines the demo agent follows, or only what `parameters` have. */
  async send(lines: readonly string[], parameters: RunAgentParameters = {}) {
    if (lines.length > 0) this.addMessage({ id: randomUUID(), role: "user", content: lines.join("\n") });
    let outcome: unknown;
    const failures: string[] = [];
    await this.runAgent(parameters, {
      onRunFinishedEvent: ({ event }) => {
        outcome = event.outcome;
      },
      onRunErrorEvent: ({ event }) => void failures.push(`${event.code}: ${event.message}`),
    });
    return { outcome, failures };
  }

  get contents() {
    return this.messages.map(({ role, content }) => `${role}: ${String(content ?? "")}`);
  }
}

it("passes a thread on: text, questions and their answers, and a failure", { timeout: 120_000 }, async () => {
  const thread = new Thread();
  expect(await thread.send(["say Hello from Ambit."])).toMatchObject({ failures: [] });
  expect(thread.contents.at(-1)).toBe("assistant: Hello from Ambit.");
  const paused = await thread.send(["say I ask.", 'call book {"seat":"1A"}', "say Done."]);
  const [interrupt] = outcomeSchema.parse(paused.outcome).interrupts;
  await thread.send([], {
    resume: [{ interruptId: interrupt?.id ?? "", status: "resolved", payload: { approved: true } }],
  });
  expect(thread.contents.slice(-2)).toEqual([
    'tool: {"booked":"1A"}',
    expect.stringMatching(/^assistant: \s*Done\.$/),
  ]);
  const asked = await thread.send(['call book {"seat":"2B"}', "say Not booked."]);
  const [question] = outcomeSchema.parse(asked.outcome).interrupts;
  await thread.send([], {
    resume: [{ interruptId: question?.id ?? "", status: "resolved", payload: { approved: false } }],
  });
  expect(thread.contents.at(-2)).toBe("tool: The user did not approve tool 'book'.");
  expect(await thread.send(["fail no luck"])).toMatchObject({
    failures: [expect.stringMatching(/^harness_failed: The agent failed/)],
  });
});

it("passes on a tool of the application's, and a refusal", { timeout: 120_000 }, async () => {
  const thread = new Thread();
  const tools = [{ name: "choose_seat", description: "Asks.", parameters: { type: "object" } }];
  await thread.send(['call choose_seat {"train":"9:32"}', "say after"], { tools });
  const call = thread.messages.flatMap((message) =>
    message.role === "assistant" ? (message.toolCalls ?? []) : [],
  );
  const [{ id: toolCallId } = { id: "" }] = call;
  thread.addMessage({ id: randomUUID(), role: "tool", toolCallId, content: '{"seat":"12A"}' });
  await thread.send([], { tools });
  expect(thread.contents.at(-1)).toMatch(/^assistant: \s*after$/);
  const ambit = { sandboxPermission: { network: "on", nonsense: 1 } };
  expect(await new Thread().send(["say x"], { forwardedProps: { ambit } })).toMatchObject({
    failures: [expect.stringContaining("request_invalid: ")],
  });
});

it("is followed by another client in mid-stream, and stopped", { timeout: 120_000 }, async () => {
  const thread = new Thread();
  const stopped = thread.send(["say One.", "hang"]);
  const later = new Thread(thread.threadId, "connect");
  const followed = later.runAgent();
  await expect.poll(() => later.contents.at(-1)).toBe("assistant: One.");
  const url = `${runtimeUrl}/agent/coder/stop/${thread.threadId}`;
  expect(await (await fetch(url, { method: "POST" })).json()).toMatchObject({ stopped: true });
  await Promise.allSettled([stopped, followed]);
  expect(await thread.send(["say Two."])).toMatchObject({ failures: [] });
  expect(thread.contents.at(-1)).toBe("assistant: Two.");
});
