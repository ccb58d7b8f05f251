import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import type { Sandbox, SandboxLayers } from "@ambit/core/plugin";
import { type Contract, shell } from "./contract.js";

/** A requirement on a backend whose platform keeps prepared files as layers. Throws what an assertion throws. */
export interface LayerCheck {
  readonly title: string;
  check(contract: Contract, layers: SandboxLayers): Promise<void>;
}

export const layerChecks: readonly LayerCheck[] = [
  {
    title: "begins with a layer's files, as the agent's own: links, modes and hard links too",
    check: async (contract) => {
      const { sandbox, before } = await begunWith(contract);
      // `mv` would copy what it can't rename.
      const rename = `node -e 'fs.renameSync("folder", "moved")'`;
      const line = `${look}; ${rename} && printf more >> moved/one && cat moved/two && ./run.sh && rm -r moved && ls`;
      const { stdout, stderr, code } = await shell(sandbox, line, { role: "agent" });
      assert.equal(code, 0, stderr);
      assert.equal(stdout, `${before}onemoreran\nlink\nrun.sh\n`, stderr);
    },
  },
  {
    title: "shows what one sandbox makes of a layer to no other, at the same time or later",
    check: async (contract) => {
      const { name, sandbox, before } = await begunWith(contract);
      const beside = await beginWith(contract, name);
      const spoil = "rm -r folder && printf spoiled > run.sh && printf new > new && printf spoiled > ~/note";
      const spoiled = await shell(sandbox, spoil, { role: "agent" });
      assert.equal(spoiled.code, 0, spoiled.stderr);
      const seen = async (one: Sandbox) =>
        (await shell(one, `${look}; [ -e new ] && echo new`, { role: "agent" })).stdout;
      assert.notEqual(await seen(sandbox), before);
      assert.equal(await seen(beside), before);
      await sandbox.close();
      assert.equal(await seen(await beginWith(contract, name)), before);
    },
  },
  {
    title: "keeps a boundary whatever a sandbox begins with: no process writes outside of workspace and home",
    check: async (contract) => {
      const { sandbox } = await begunWith(contract);
      // Whatever else is mounted of the layer.
      const line = `awk '{print $5}' /proc/self/mountinfo | while read -r at; do
        case "$at" in "$PWD"*|"$HOME"*|/tmp*|/var/tmp*|/dev*|/proc*) continue;; esac
        [ -d "$at" ] && (: > "$at/written") 2> /dev/null && echo "$at"
      done`;
      const { stdout } = await shell(sandbox, line, { role: "agent" });
      assert.equal(stdout, "", "a process of the run can write there");
    },
  },
  {
    title: "keeps nothing of a sandbox but its workspace and home",
    check: async (contract) => {
      const beside = `/tmp/ambit-${randomBytes(8).toString("hex")}`;
      const { name } = await begunWith(contract, `printf beside > ${beside}`);
      const { stdout } = await shell(await beginWith(contract, name), `cat ${beside}`, { role: "agent" });
      assert.equal(stdout, "");
    },
  },
  {
    title: "begins with none that is missing, or whose sandbox was only closed",
    check: async (contract, layers) => {
      const name = freshName();
      const making = await contract.open({ layer: { use: "make", name } });
      await fill(making);
      await making.close();
      assert.equal(await layers.has(name, AbortSignal.timeout(askMs)), false);
      await assert.rejects(beginWith(contract, name));
      await assert.rejects(beginWith(contract, freshName()));
    },
  },
  {
    title: "leaves the first of two layers of one name",
    check: async (contract) => {
      const name = freshName();
      const [first, second] = await Promise.all(
        ["first", "second"].map(async (text) => {
          const making = await contract.open({ layer: { use: "make", name } });
          await shell(making, `printf ${text} > which`, { role: "agent" });
          return making;
        }),
      );
      await first?.keepAsLayer?.();
      await second?.keepAsLayer?.();
      const { stdout } = await shell(await beginWith(contract, name), "cat which", { role: "agent" });
      assert.equal(stdout, "first");
    },
  },
];

/** Milliseconds. */
const askMs = 30_000;

const freshName = () => randomBytes(32).toString("hex");

const made = [
  "mkdir folder && printf one > folder/one && ln folder/one folder/two",
  'printf "#!/bin/sh\\necho ran\\n" > run.sh && chmod 750 run.sh && ln -s run.sh link && printf note > ~/note',
].join(" && ");

/** What is there, with what would be lost by a copy of the contents alone. */
const look =
  "ls -AR; readlink link; find . -name run.sh -perm 750; [ folder/one -ef folder/two ] && cat folder/two ~/note; echo";

/** @returns what an agent sees in it. */
async function fill(sandbox: Sandbox): Promise<string> {
  const { stdout, stderr, code } = await shell(sandbox, `${made} && ${look}`, { role: "agent" });
  assert.equal(code, 0, stderr);
  return stdout;
}

function beginWith(contract: Contract, name: string): Promise<Sandbox> {
  return contract.open({ layer: { use: "begin", name } });
}

/** @param also what is done in the sandbox before it becomes the layer. */
async function begunWith(contract: Contract, also = "true") {
  const name = freshName();
  const making = await contract.open({ layer: { use: "make", name } });
  const before = await fill(making);
  const { code, stderr } = await shell(making, also, { role: "agent" });
  assert.equal(code, 0, stderr);
  assert.ok(making.keepAsLayer !== undefined, "the sandbox has no keepAsLayer");
  await making.keepAsLayer();
  return { name, before, sandbox: await beginWith(contract, name) };
}
