import {
  type Registrar,
  type RunRequest,
  type ToolCall,
  type ToolScope,
  toolSpecSchema,
} from "@ambit/core/plugin";
import { recordingLog } from "@ambit/fakes/log";
import { describe, expect, it } from "vitest";
import plugin, { clientExecutor } from "../src/index.js";

const tool = toolSpecSchema.parse({ kind: "client", name: "pick_colour" });

describe("executor-client", () => {
  it("parks every call for the user", async () => {
    await expect(clientExecutor.execute({} as ToolCall, {} as ToolScope)).resolves.toEqual({
      status: "parked",
      interaction: "client_tool",
    });
  });

  it("acts with the caller, touches nothing and claims nothing", async () => {
    expect(clientExecutor).toMatchObject({ name: "client", kind: "client", site: "caller", claims: [] });
    expect(clientExecutor.touches({ tool, request: {} as RunRequest })).toEqual([]);
    await expect(clientExecutor.probe(new AbortController().signal)).resolves.toEqual([]);
  });

  it("registers one executor, synchronously, and refuses an unknown setting", () => {
    const added: [string, unknown][] = [];
    const registrar: Registrar = {
      add: (kind, actor) => added.push([kind, actor]),
      log: recordingLog(),
      hasTenants: false,
      secret: () => {},
    };
    plugin.register(registrar, plugin.config.parse({}));
    expect(added).toEqual([["executor", clientExecutor]]);
    expect(plugin.config.safeParse({ colour: "red" }).success).toBe(false);
  });
});
