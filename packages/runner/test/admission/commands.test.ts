import { SandboxFailed } from "@ambit/core";
import "reflect-metadata";
import type { Dialect } from "@ambit/core/plugin";
import { done, says } from "@ambit/fakes/harness";
import { describe, expect, test, vi } from "vitest";
import { z } from "zod";
import { createWorld } from "../fakes/world.js";

/** Its requests name their command in `commandId`. */
const dialect: Dialect = {
  name: "fake",
  keys: {},
  fields: { "": { commandId: z.string().optional() } },
  translate: (request) => ({ request, issues: [] }),
  command: ({ commandId }) =>
    typeof commandId === "string" ? { field: "commandId", id: commandId } : undefined,
};
const command = { commandId: "c-1", projectId: "p-1" };
const executed = { code: "command_executed" };

describe("a command begins one run", () => {
  test("also while that run is in progress; a repeat waits for its result", async () => {
    let proceed = () => {};
    const mayProceed = new Promise<void>((resolve) => {
      proceed = resolve;
    });
    const world = await createWorld({
      dialect,
      script: async function* () {
        yield { type: "message", text: "sent" };
        await mayProceed;
        yield done;
      },
    });
    const telling = world.tell(await world.admit(command));
    const repeat = await world.admit(command).catch((error: unknown) => error);
    expect(repeat).toMatchObject(executed);
    proceed();
    const { result } = await telling;
    expect(await (repeat as { result: Promise<unknown> }).result).toEqual({ ...result, events: [] });
    await expect(world.admit(command)).rejects.toMatchObject(executed);
    expect(world.harness.prompts).toHaveLength(1);
  });

  test("of its project, and until half an hour after its end", async () => {
    const world = await createWorld({ dialect, script: says("x") });
    await world.run(command);
    expect((await world.run({ ...command, projectId: "p-2" })).result.ok).toBe(true);
    const later = vi.spyOn(Date, "now").mockReturnValue(Date.now() + 31 * 60_000);
    expect((await world.run(command)).result.ok).toBe(true);
    later.mockRestore();
  });

  test("unless that run ended before its agent could do anything", async () => {
    let isBroken = true;
    const world = await createWorld({
      dialect,
      script: says("x"),
      sandbox: {
        onOpen: () => {
          if (isBroken) throw new SandboxFailed("no room");
        },
      },
    });
    expect((await world.run(command)).result).toMatchObject({ failure: { code: "sandbox_failed" } });
    isBroken = false;
    expect((await world.run(command)).result.ok).toBe(true);
  });
});
