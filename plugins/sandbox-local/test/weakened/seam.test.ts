import { describe, expect, test } from "vitest";
import * as entry from "../../src/index.js";
import { configSchema } from "../../src/index.js";
import { removableMechanisms, WeakenedSandboxes } from "../../src/testing/weakened/index.js";
import { closed, confinedBackend, finish, path, scope, shell, specOf } from "../support/specs.js";

describe("weakened jails", () => {
  test("can't be reached through configuration or the plugin's exports", () => {
    expect(Object.keys(entry).sort()).toEqual(["LocalSandbox", "configSchema", "default"]);
    for (const name of ["parts", "weakening", "without", ...removableMechanisms]) {
      expect(configSchema.safeParse({ [name]: ["system call filter"] }).success).toBe(false);
    }
  });

  test("lack what is named, while the normal sandbox lacks nothing", async () => {
    const backend = await confinedBackend();
    const weakened = WeakenedSandboxes.of(backend);
    if (weakened === undefined) throw new Error("the local sandbox has no weakened counterpart");
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

  test("exist only for the local sandbox", () => {
    const other = {
      name: "local",
      site: "sandbox",
      claims: [],
      touches: () => [],
      gaps: () => [],
      probe: () => Promise.resolve([]),
      open: () => Promise.reject(new Error("another")),
    } as const;
    expect(WeakenedSandboxes.of(other)).toBeUndefined();
  });
});
