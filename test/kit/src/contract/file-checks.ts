import assert from "node:assert/strict";
import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isAmbitError } from "@ambit/core";
import type { ContractCheck } from "./contract.js";
import { shell } from "./contract.js";

const everyByte = Uint8Array.from({ length: 256 * 1024 }, (_, index) => index % 256);

export const fileChecks: readonly ContractCheck[] = [
  {
    title: "writes and reads files unchanged, and creates parent folders",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const text = `${sandbox.workspace}/a/b/c.txt`;
      const bytes = `${sandbox.home}/x/bytes`;
      await sandbox.writeFiles([
        { path: text, content: "snow ☃" },
        { path: bytes, content: everyByte },
      ]);
      assert.equal(new TextDecoder().decode(await sandbox.readFile(text)), "snow ☃");
      assert.deepEqual(Uint8Array.from(await sandbox.readFile(bytes)), everyByte);
      const seen = await shell(sandbox, `cat ${text}; wc -c < ${bytes}`, { role: "agent" });
      assert.equal(seen.stdout.trim(), `snow ☃${everyByte.length}`);
    },
  },
  {
    title: "overwrites files, and writes executable programs",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const path = `${sandbox.workspace}/run.sh`;
      await sandbox.writeFiles([{ path, content: "#!/bin/sh\nexit 1\n" }]);
      await sandbox.writeFiles([{ path, content: "#!/bin/sh\necho it runs\n", executable: true }]);
      const { stdout, stderr } = await shell(sandbox, path);
      assert.equal(stdout.trim(), "it runs", stderr);
    },
  },
  {
    title: "reads what a process wrote",
    check: async (contract) => {
      const sandbox = await contract.shared();
      await shell(sandbox, "mkdir -p out && printf written > out/file");
      const read = await sandbox.readFile(`${sandbox.workspace}/out/file`);
      assert.equal(new TextDecoder().decode(read), "written");
    },
  },
  {
    title: "reports that a file doesn't exist, or is a folder",
    check: async (contract) => {
      const sandbox = await contract.shared();
      for (const path of [`${sandbox.workspace}/missing`, sandbox.workspace]) {
        const error = await sandbox.readFile(path).then(
          () => undefined,
          (thrown: unknown) => thrown,
        );
        assert.ok(isAmbitError(error) && error.code === "sandbox_failed", `${path}: ${String(error)}`);
      }
    },
  },
  {
    title: "writes only in the workspace and home",
    check: async (contract) => {
      const sandbox = await contract.shared();
      const { workspace } = sandbox;
      const outside = await mkdtemp(join(tmpdir(), "ambit-kit-outside-"));
      try {
        const up = `${workspace}${"/..".repeat(20)}`;
        for (const path of [`${outside}/x`, `${up}${outside}/y`, `${workspace}/../z`, "relative"]) {
          await assert.rejects(
            async () => sandbox.writeFiles([{ path, content: "x" }]),
            `${path} was written`,
          );
        }
        assert.deepEqual(await readdir(outside), []);
        await writeFile(join(outside, "given"), "the host's");
        for (const path of [`${outside}/given`, `${up}${outside}/given`]) {
          await assert.rejects(async () => sandbox.readFile(path), `${path} was read`);
        }
      } finally {
        await rm(outside, { recursive: true, force: true });
      }
    },
  },
];
