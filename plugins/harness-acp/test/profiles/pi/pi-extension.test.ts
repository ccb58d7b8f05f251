import { rm } from "node:fs/promises";
import { join } from "node:path";
import { HarnessFailed, type PublishedServer } from "@ambit/core/plugin";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { pi } from "../../../src/profiles/pi.js";
import type { Profile } from "../../../src/profiles/profile.js";
import { AgentStage } from "../../support/agent-stage.js";
import { eventsOf, ofType, turnOf } from "../../support/runs.js";
import { startToolServer } from "../../support/tool-server.js";

/** Pi with another extension instead of Ambit's. */
const withExtension = (source: string): Profile => ({
  ...pi,
  prepare: (preparation) => {
    const { files, ...prepared } = pi.prepare(preparation);
    const isExtension = ({ path }: { readonly path: string }) => /\/extension\.\w+$/.test(path);
    if (!files.some(isExtension)) throw new Error("Pi is given no extension to replace");
    return {
      ...prepared,
      files: files.map((file) => (isExtension(file) ? { ...file, content: source } : file)),
    };
  },
});

describe("Pi without its extension", { timeout: 60_000 }, () => {
  let stage: AgentStage;
  beforeAll(async () => {
    stage = await AgentStage.open(pi);
  });
  afterAll(() => stage.close());

  /** The error of a start, or of its first turn. */
  async function failure(servers: readonly PublishedServer[], profile?: Profile): Promise<unknown> {
    try {
      const { agent, scope } = await stage.start({ servers }, profile);
      const prompt = '[[call =bash {"command":"touch made"}]]';
      for await (const _event of agent.prompt(turnOf({ prompt })));
      await scope.close();
      return undefined;
    } catch (error) {
      return error;
    }
  }

  it.each([
    {
      what: "throws as it loads",
      source: 'module.exports = () => { throw new Error("no"); };',
      hasTools: false,
    },
    { what: "isn't a program", source: "module.exports = (", hasTools: true },
  ])("fails the run if it $what (with tools: $hasTools)", async ({ source, hasTools }) => {
    await using tools = await startToolServer();
    const servers = hasTools ? [tools.published] : [];
    expect(await failure(servers, withExtension(source))).toBeInstanceOf(HarnessFailed);
    expect(stage.model.requests).toEqual([]);
  });

  it("has no tools of its own with an extension that doesn't ask, and so runs nothing unasked", async () => {
    const { agent, scope } = await stage.start({}, withExtension("module.exports = () => {};"));
    const turn = turnOf({ prompt: '[[call =bash {"command":"touch made"}]]' });
    const events = await eventsOf(agent, turn);
    expect(stage.model.requests.at(-1)?.toolNames).toEqual([]);
    expect(ofType(events, "tool_result")).not.toMatchObject([{ isError: undefined }]);
    await expect(rm(join(stage.sandbox.workspace, "made"))).rejects.toMatchObject({ code: "ENOENT" });
    await scope.close();
  });
});
