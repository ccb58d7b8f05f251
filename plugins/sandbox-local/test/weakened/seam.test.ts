// needs: jail
import { describe, expect, test } from "vitest";
import * as entry from "../../src/index.js";
import { configSchema } from "../../src/index.js";
import { closed, confinedBackend, finish, path, scope, shell, specOf } from "../support/specs.js";
import { removableMechanisms } from "./jails/index.ts";
import { weakenedSandboxes } from "./sandboxes.ts";

describe("weakened jails", () => {
  test("can't be reached through configuration or the plugin's exports", () => {
    expect(Object.keys(entry).sort()).toEqual(["LocalSandbox", "configSchema", "default"]);
    for (const name of ["parts", "weakening", "without", ...removableMechanisms]) {
      expect(configSchema.safeParse({ [name]: ["system call filter"] }).success).toBe(false);
    }
  });

  test("lack what is named, while the normal sandbox lacks nothing", async () => {
    const backend = await confinedBackend();
    const weakened = await weakenedSandboxes();
    const decoys = { folders: [], environment: { CANARY: "seen" } };
    const open = await weakened.open(
      specOf({ boundary: closed }),
      ["system call filter", "cleared environment"],
      decoys,
      closed.network,
    );
    const whole = await backend.open(specOf({ boundary: closed }), scope);
    const look = shell("grep '^Seccomp:' /proc/self/status; echo \"$CANARY\"");
    const outputs = [];
    for (const sandbox of [open, whole]) {
      const { stdout } = await finish(await sandbox.spawn({ argv: look, env: { PATH: path } }));
      outputs.push(stdout);
      await sandbox.close();
    }
    expect(outputs).toEqual(["Seccomp:\t0\nseen\n", "Seccomp:\t2\n\n"]);
  });
});
