import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { freshSecret, repetitions } from "@ambit/attacks";
import { capabilities } from "@ambit/core/plugin";
import { type ContractCheck, shell } from "./contract.js";

const rounds = repetitions({ short: 3, soak: 50 });

export const sessionChecks: readonly ContractCheck[] = [
  {
    title: "opens an empty workspace, in which processes start, and a home",
    check: async (contract) => {
      const sandbox = await contract.open();
      assert.match(sandbox.workspace, /^\//);
      const { stdout } = await shell(sandbox, 'pwd; ls -A; cd "$HOME"; pwd', { role: "agent" });
      assert.deepEqual(stdout.trim().split("\n"), [sandbox.workspace, sandbox.home]);
    },
  },
  {
    title: "starts a process in the given folder",
    check: async (contract) => {
      const sandbox = await contract.shared();
      assert.equal((await shell(sandbox, "pwd", { cwd: "/usr" })).stdout.trim(), "/usr");
    },
  },
  {
    title: "keeps the agent's home, and gives each tool a private one that is removed with it",
    check: async (contract) => {
      const sandbox = await contract.open();
      await shell(sandbox, "echo kept > ~/note; echo kept > $TMPDIR/note", { role: "agent" });
      assert.equal((await shell(sandbox, "cat ~/note", { role: "agent" })).stdout.trim(), "kept");
      const tool = await shell(
        sandbox,
        'ls -A ~ "$TMPDIR"; echo mine > ~/note && echo mine > "$TMPDIR/note"',
      );
      assert.doesNotMatch(tool.stdout, /note/);
      assert.equal(tool.code, 0, tool.stderr);
      assert.doesNotMatch((await shell(sandbox, 'ls -A ~ "$TMPDIR"')).stdout, /note/);
    },
  },
  {
    title: "passes on every named variable, and none of the runner's",
    check: async (contract) => {
      const secret = freshSecret();
      process.env.AMBIT_KIT_CANARY = secret;
      try {
        const sandbox = await contract.shared();
        const { stdout } = await shell(sandbox, "env", { env: { NAMED: "its value, with = and ☃" } });
        assert.ok(stdout.includes("NAMED=its value, with = and ☃"), stdout);
        assert.ok(!stdout.includes(secret), "a variable of the runner is there");
      } finally {
        delete process.env.AMBIT_KIT_CANARY;
      }
    },
  },
  {
    title: "rejects a boundary that it can't enforce",
    check: async (contract) => {
      const { claims } = contract.backend;
      for (const capability of capabilities.filter((one) => !claims.includes(one))) {
        const required = [...contract.shape.required, capability];
        await assert.rejects(
          contract.open({ required }),
          `open() returns a sandbox although ${capability} is required`,
        );
      }
    },
  },
  {
    title: "can be closed twice, and does nothing afterwards",
    check: async (contract) => {
      const sandbox = await contract.open();
      await sandbox.writeFiles([{ path: `${sandbox.workspace}/a`, content: "a" }]);
      const path = `${sandbox.workspace}/a`;
      await Promise.all([sandbox.close(), sandbox.close()]);
      await sandbox.close();
      await assert.rejects(async () => shell(sandbox, "true"));
      await assert.rejects(async () => sandbox.readFile(path));
    },
  },
  {
    title: "ends running processes when it closes",
    check: async (contract) => {
      const sandbox = await contract.open();
      const started = await sandbox.spawn({ argv: ["/bin/sleep", "120"], env: {} });
      await sandbox.close();
      assert.notEqual((await started.exit).code, 0);
    },
  },
  {
    title: "leaks no descriptors",
    check: async (contract) => {
      const once = async () => {
        const sandbox = await contract.open();
        const exposure = await sandbox.expose(() => new Response("ok"));
        await shell(sandbox, "true");
        await exposure.close();
        await sandbox.close();
      };
      // The first one may open descriptors that all of them share.
      await once();
      const before = openDescriptors();
      for (let round = 0; round < rounds; round++) await once();
      const grown = openDescriptors() - before;
      assert.ok(grown < rounds, `${grown} descriptors more after ${rounds} sandboxes`);
    },
  },
  {
    title: "reports its evidence as flat values",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const started = await sandbox.spawn({ argv: ["/bin/true"], env: {} });
      await started.exit;
      for (const [name, value] of Object.entries({ ...sandbox.evidence, ...started.evidence })) {
        assert.ok(["string", "number", "boolean"].includes(typeof value), `${name} is a ${typeof value}`);
      }
    },
  },
];

function openDescriptors(): number {
  return readdirSync("/proc/self/fd").length;
}
