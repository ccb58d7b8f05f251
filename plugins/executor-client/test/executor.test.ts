import type { Registrar, ToolExecutor } from "@ambit/core/plugin";
import { describe, expect, it } from "vitest";
import plugin, { ClientExecutor } from "../src/index.js";

describe("executor-client", () => {
  it("parks every call for the user", async () => {
    await expect(new ClientExecutor().execute()).resolves.toEqual({
      status: "parked",
      interaction: "client_tool",
    });
  });

  it("acts with the caller, touches nothing and claims nothing", async () => {
    const executor: ToolExecutor = new ClientExecutor();
    expect(executor).toMatchObject({ name: "client", kind: "client", site: "caller", claims: [] });
    await expect(executor.probe(new AbortController().signal)).resolves.toEqual([]);
  });

  it("registers one executor, synchronously, and refuses an unknown setting", () => {
    const added: [string, unknown][] = [];
    const registrar: Registrar = { add: (kind, actor) => added.push([kind, actor]) };
    plugin.register(registrar, plugin.config.parse({}));
    expect(added).toEqual([["executor", expect.any(ClientExecutor)]]);
    expect(plugin.config.safeParse({ colour: "red" }).success).toBe(false);
  });
});
