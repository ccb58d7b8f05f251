import { setTimeout as after } from "node:timers/promises";
import { runToEnd } from "@ambit/backend-kit";
import { ownUnavailableReason } from "@ambit/test-cluster";
import { describe, expect, it } from "vitest";
import { scope, specOf, TestNamespace } from "../support/on-cluster.js";

const reason = await ownUnavailableReason();

// Alone: the other tests use the same API server.
describe("a pod whose API server is away for 15 s", { timeout: 180_000 }, () => {
  it("carries streams on, whole and once", async (context) => {
    if (reason !== undefined) context.skip(`host: ${reason}`);
    const namespace = await TestNamespace.open({ enforced: false });
    const backend = namespace.backend({ hostUsers: "require", requestTimeoutMs: 5_000 });
    try {
      const sandbox = await backend.open(specOf(), scope);
      const lines = 600;
      const script = `for (let n = 0; n < ${lines}; n++) setTimeout(() => console.log(n), n * 40)`;
      const running = runToEnd(sandbox, {
        argv: ["node", "-e", script],
        env: { PATH: `${sandbox.image?.searchPath}` },
        signal: scope.signal,
      });
      await after(2_000);
      await namespace.own.kill("kube-apiserver");
      await after(15_000);
      namespace.own.start("kube-apiserver");
      const { stdout, exit } = await running;
      expect(exit.code).toBe(0);
      expect(stdout.trim().split("\n").map(Number)).toStrictEqual(
        Array.from({ length: lines }, (_, index) => index),
      );
      await sandbox.close();
    } finally {
      await backend.close();
      await namespace.close();
    }
  });
});
