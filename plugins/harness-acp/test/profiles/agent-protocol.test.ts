import { appendFileSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import type { Process } from "@ambit/core/plugin";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { AcpConnection } from "../../src/driver/connection.js";
import { defaultDriverLimits, MessageIntake } from "../../src/driver/limits.js";
import { cancelled, cancelledElicitation } from "../../src/driver/questions.js";
import { contentKind } from "../../src/driver/turn.js";
import { claude } from "../../src/profiles/claude.js";
import { codex } from "../../src/profiles/codex.js";
import { gemini } from "../../src/profiles/gemini.js";
import { opencode } from "../../src/profiles/opencode.js";
import { pi } from "../../src/profiles/pi.js";
import type { Profile } from "../../src/profiles/profile.js";
import { qwen } from "../../src/profiles/qwen.js";
import { AgentStage, isTested, testsWhole } from "../support/agent-stage.js";
import { eventsOf, recordingLog, textOf, turnOf } from "../support/runs.js";

const all: readonly Profile[] = [claude, codex, gemini, opencode, pi, qwen];
const file = process.env.AMBIT_AGENTS_RESULTS;

const sessionSchema = z.object({
  sessionId: z.string(),
  models: z.object({ availableModels: z.array(z.object({ modelId: z.string() })) }).nullish(),
  configOptions: z
    .array(
      z.object({
        id: z.string(),
        category: z.string().nullish(),
        options: z.array(z.object({ value: z.string() })).optional(),
      }),
    )
    .nullish(),
});
const initializeSchema = z.object({
  agentCapabilities: z.object({
    loadSession: z.boolean().optional(),
    sessionCapabilities: z
      .object({ resume: z.unknown().optional(), close: z.unknown().optional() })
      .optional(),
  }),
});

/** What each agent knows of ACP, spoken to without the driver: docs/agents.md has it. */
describe.each(all.filter(({ id }) => isTested(id, "pi")))(
  "$title, over ACP",
  { timeout: 120_000 },
  (profile) => {
    let stage: AgentStage;
    let connection: AcpConnection;
    let running: Process;
    let session: z.infer<typeof sessionSchema>;
    let abilities: z.infer<typeof initializeSchema>["agentCapabilities"];
    const record = (row: string, note: string) => {
      if (file === undefined) return;
      appendFileSync(file, `${JSON.stringify({ table: "features", agent: profile.id, row, note })}\n`);
    };

    /** A process of the agent, started as the driver has started one. */
    async function connect() {
      const command = stage.sandbox.commands[0];
      if (command === undefined) throw new Error("the agent was never started");
      running = await stage.sandbox.spawn(command);
      const log = recordingLog();
      connection = new AcpConnection({
        process: running,
        title: profile.title,
        intake: new MessageIntake(defaultDriverLimits),
        log,
      });
      const { clientCapabilities } = profile;
      const greeting = { protocolVersion: 1, clientCapabilities };
      abilities = initializeSchema.parse(
        await connection.request("initialize", greeting, "it"),
      ).agentCapabilities;
    }

    async function disconnect() {
      await running.kill();
      await running.exit;
      await connection.close();
    }

    const open = (method: string, more: object = {}) =>
      connection.request(method, { cwd: stage.sandbox.workspace, mcpServers: [], ...more }, method);
    const said = (error: unknown) => String(error);
    const isNotKnown = (answer: unknown) => typeof answer === "string" && answer.includes("-32601");

    /** @param onUpdate called with each update of the turn. */
    async function prompted(
      sessionId: string,
      text: string,
      signal?: AbortSignal,
      onUpdate: (update: unknown) => void = () => {},
    ) {
      const permission = async () => ({ outcome: cancelled }).outcome;
      const elicitation = async () => cancelledElicitation;
      const update = (params: { readonly update?: unknown }) => onUpdate(params.update);
      connection.receive({ update, permission, elicitation, room: () => undefined });
      const prompt = [{ type: "text", text }];
      return await connection.request("session/prompt", { sessionId, prompt }, "it", signal).catch(said);
    }

    beforeAll(async () => {
      stage = await AgentStage.open(profile);
      const { scope } = await stage.start();
      await scope.close();
      await connect();
      session = sessionSchema.parse(await open("session/new"));
    }, 60_000);
    afterAll(() => stage.close());

    it("answers a request that it doesn't know, after everything of its turn if it stays in order", async () => {
      let late = 0;
      let isAnswered = false;
      await prompted(session.sessionId, "[[shell echo a]] [[say one two three]]", undefined, (update) => {
        if (isAnswered && contentKind(update) !== undefined) late += 1;
      });
      isAnswered = true;
      expect(await connection.roundTripWithin(5_000)).toBe(true);
      if (profile.quirks.staysInOrder) expect(late).toBe(0);
      record("an unknown request answered", "yes");
    });

    it("answers a prompt that $/cancel_request ends, or ignores it and ends by session/cancel", async () => {
      const { sessionId } = session;
      const abort = new AbortController();
      // Codex, cancelled before its model has answered, may cancel the next turn too.
      const answer = prompted(sessionId, "[[slow 200 50]]", abort.signal, (update) => {
        if (JSON.stringify(update).includes("agent_message_chunk")) abort.abort();
      });
      const late = new Promise((resolve) => setTimeout(() => resolve(undefined), 3_000));
      const understood = (await Promise.race([answer, late])) !== undefined;
      if (!understood) connection.notify("session/cancel", { sessionId });
      expect(await answer).toMatchObject({ stopReason: "cancelled" });
      record("`$/cancel_request`", understood ? "yes" : "ignored");
      expect(await prompted(sessionId, "[[say going on]]")).toMatchObject({ stopReason: "end_turn" });
    });

    it("takes another model for a session, or says that it can't", async () => {
      const { sessionId, models, configOptions } = session;
      const option = configOptions?.find(({ category }) => category === "model");
      const modelId = models?.availableModels.at(-1)?.modelId ?? option?.options?.at(-1)?.value;
      const set = await connection.request("session/set_model", { sessionId, modelId }, "it").catch(said);
      const value = option?.options?.at(-1)?.value;
      const chosen =
        option === undefined
          ? undefined
          : await connection
              .request("session/set_config_option", { sessionId, configId: option.id, value }, "it")
              .catch(said);
      const ways = [
        ...(typeof set === "string" ? [] : ["`session/set_model`"]),
        ...(chosen === undefined || typeof chosen === "string" ? [] : ["`session/set_config_option`"]),
      ];
      if (typeof set === "string") expect(isNotKnown(set)).toBe(true);
      expect(ways).not.toEqual([]);
      record("another model for a session", ways.join(", "));
    });

    const isStored = () =>
      it("stores a conversation, and takes it up in a new process as it announces", async () => {
        const { sessionId } = session;
        expect(await prompted(sessionId, "[[say stored]]")).toMatchObject({ stopReason: "end_turn" });
        // It stores a conversation by the minute in which it began, and doesn't load it in that one.
        if (profile === gemini) await delay(61_000 - (Date.now() % 60_000));
        const closes = abilities.sessionCapabilities?.close !== undefined;
        const closed = await connection.request("session/close", { sessionId }, "it").catch(said);
        expect(isNotKnown(closed)).toBe(!closes);
        record("`session/close`", closes ? "yes" : "not announced");
        const resumes = abilities.sessionCapabilities?.resume !== undefined;
        for (const [method, announced] of [
          ["session/resume", resumes],
          ["session/load", abilities.loadSession === true],
        ] as const) {
          record(`\`${method}\``, announced ? "yes" : "not announced");
          if (!announced) continue;
          await disconnect();
          await connect();
          await open(method, { sessionId });
          expect(await prompted(sessionId, `[[say again by ${method}]]`)).toMatchObject({
            stopReason: "end_turn",
          });
          const asked = stage.model.requests
            .filter(({ lastUserText, toolNames }) => toolNames.length > 0 && lastUserText.includes(method))
            .at(-1);
          expect(JSON.stringify(asked?.body)).toContain("stored");
        }
      });

    if (testsWhole) isStored();

    const isRefused = () =>
      it("refuses a model that it doesn't list at its provider's own endpoint, or leaves that to the provider", async () => {
        const [name] = profile.model?.credentials ?? [];
        const credentials = [{ binding: { kind: "environment", name }, value: "k" }];
        const request = { model: "no-such-model", modelConnection: { credentials } };
        const started = await stage.start({ request }).catch(said);
        if (typeof started === "string")
          expect(started).toContain("doesn't know the model 'no-such-model': it offers");
        else await started.scope.close();
        const refused = typeof started === "string";
        record("unknown model, without a route", refused ? "refused, with its list" : "its provider decides");
      });

    if (testsWhole) isRefused();

    const hasModes = () =>
      it("runs in each of its modes", async () => {
        const { modes } = profile.instructions;
        for (const harnessMode of modes) {
          const request = stage.requestWith({ harnessMode });
          const { agent, scope } = await stage.start({ request });
          // Claude Code adds a notice of its own.
          expect(textOf(await eventsOf(agent, turnOf({ prompt: "[[say done]]" })))).toMatch(/^done/);
          await scope.close();
        }
        record("harnessMode", modes.length === 0 ? "none" : modes.map((mode) => `\`${mode}\``).join(", "));
      });
    if (testsWhole) hasModes();

    it("leaves no process behind", async () => {
      const { home } = stage.sandbox;
      expect(await stage.sandbox.processes(home)).not.toEqual([]);
      await disconnect();
      await expect.poll(() => stage.sandbox.processes(home), { timeout: 5_000 }).toEqual([]);
      record("no process left, without a sandbox", "yes");
    });
  },
);
