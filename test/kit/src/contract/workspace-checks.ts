import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runRequestSchema } from "@ambit/core/contract";
import {
  collect,
  packSnapshot,
  Spool,
  unpackSnapshot,
  Workspaces,
  workspaceSettingsSchema,
} from "@ambit/workspace";
import { silentLog } from "../stage/kit-scope.js";
import type { ContractCheck } from "./contract.js";
import { shell } from "./contract.js";

const maxBytes = 1_000_000;
const maxEntries = 1_000;

/** What a run's sources, outputs and snapshots need of a sandbox: programs of Ambit run inside, as the agent's user. */
export const workspaceChecks: readonly ContractCheck[] = [
  {
    title: "takes a request's sources, and the agent can run and change them",
    check: async (contract) => {
      const sandbox = await contract.open();
      await withFolder(async (folder) => {
        const refuse = () => Promise.reject(new Error("not part of this check"));
        const workspaces = new Workspaces({
          snapshots: undefined,
          settings: workspaceSettingsSchema.parse({}),
          folder,
          preparedFolder: folder,
          blobs: undefined,
          whyForbidden: () => "no address is reached in this check",
          send: refuse,
          openDownload: refuse,
        });
        const filled = await workspaces.fill(requestWith(sources), sandbox, {
          open: refuse,
          openLayer: refuse,
          backend: contract.backend,
          boundary: contract.shape.boundary,
          begun: undefined,
          mayKeep: false,
          log: silentLog,
          report: () => undefined,
          warn: () => undefined,
          signal: new AbortController().signal,
        });
        assert.deepEqual(
          filled.sources?.map(({ files }) => files),
          [2, 1],
        );
        const line = "tools/bin/run && printf more >> deep/er/a.txt && cat deep/er/a.txt";
        const seen = await shell(sandbox, line, { role: "agent" });
        assert.equal(seen.stdout.trim(), "it runs\ntextmore", seen.stderr);
      });
    },
  },
  {
    title: "lets regular files of the workspace leave, and nothing that a link or a device leads to",
    check: async (contract) => {
      const sandbox = await contract.open();
      const { workspace } = sandbox;
      await sandbox.writeFiles([
        { path: `${workspace}/kept.txt`, content: "kept" },
        { path: `${workspace}/gone.txt`, content: "gone" },
      ]);
      // The control: a process that opens these gets what they lead to.
      const seen = await shell(sandbox, agentsWork, { role: "agent" });
      assert.match(seen.stdout, /kept/, seen.stderr);
      await withSpool(async (spool) => {
        const wish = {
          workspace,
          include: ["**"],
          patch: true,
          known: [["gone.txt", "before"] as const],
          maxEntries,
          maxFiles: 100,
          maxBytes,
        };
        const found = await collect(sandbox, wish, spool, new AbortController().signal);
        const contents = await Promise.all(
          found.files.map(async (file) => [file.path, file.executable, String(await spool.whole(file))]),
        );
        assert.deepEqual(contents.sort(), [
          ["kept.txt", false, "kept"],
          ["made/again.txt", false, "made"],
          ["made/first.txt", false, "made"],
          ["run.sh", true, "#!/bin/sh\n"],
        ]);
        assert.deepEqual(found.deleted, ["gone.txt"]);
        assert.deepEqual(found.omitted.map(({ path, reason }) => [path, reason]).sort(), [
          ["above", "link"],
          ["large", "too_large"],
          ["link", "link"],
          ["new\nline", "name"],
          ["pipe", "special"],
        ]);
      });
    },
  },
  {
    title:
      "gives its workspace and home to another sandbox, with links and modes, and nothing through a link",
    check: async (contract) => {
      const from = await contract.open();
      const made = [
        'printf "#!/bin/sh\\necho it runs\\n" > run.sh && chmod 750 run.sh && ln -s run.sh link && ln run.sh same',
        "mkdir -p a/b && printf deep > a/b/c && ln -s /etc/hosts hosts && printf note > ~/note && mkfifo pipe",
      ].join(" && ");
      const work = await shell(from, made, { role: "agent" });
      assert.equal(work.code, 0, work.stderr);
      const into = await contract.open();
      await withSpool(async (spool) => {
        const { signal } = new AbortController();
        const limits = { maxEntries, maxBytes };
        let kept: Awaited<ReturnType<Spool["add"]>> | undefined;
        const keep = async (archive: AsyncIterable<Uint8Array>) => {
          kept = await spool.add(archive);
        };
        const facts = await packSnapshot(from, limits, keep, signal);
        assert.ok(kept !== undefined);
        assert.equal(facts.skipped, 1);
        await unpackSnapshot(into, spool.read(kept), facts, limits, signal);
      });
      const line =
        "./link; cat a/b/c ~/note; readlink hosts; find . -name run.sh -perm 750; [ ! -e pipe ] && [ run.sh -ef same ] && echo one file";
      const seen = await shell(into, line, { role: "agent" });
      assert.equal(seen.stdout, "it runs\ndeepnote/etc/hosts\n./run.sh\none file\n", seen.stderr);
    },
  },
];

const sources = [
  {
    type: "files",
    into: "tools",
    files: [
      { path: "bin/run", content: "#!/bin/sh\necho it runs\n", executable: true },
      { path: "bytes", content: "AAECgP8=", encoding: "base64" },
    ],
  },
  { type: "files", files: [{ path: "deep/er/a.txt", content: "text" }] },
];

/** Of an agent that tries to have more leave than files of its own. */
const agentsWork = [
  "rm gone.txt; mkdir made .git; printf made > made/first.txt; ln made/first.txt made/again.txt",
  'printf "#!/bin/sh\\n" > run.sh; chmod +x run.sh; printf x > .git/config; printf x > "new\nline"',
  "ln -s /etc/passwd link; ln -s .. above; mkfifo pipe; truncate -s 100M large; cat kept.txt link",
].join("; ");

function requestWith(given: readonly object[]) {
  return runRequestSchema.parse({
    harness: "none",
    messages: [{ role: "user", content: "none" }],
    workspace: { sources: given },
  });
}

async function withFolder<Result>(use: (folder: string) => Promise<Result>): Promise<Result> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-kit-workspace-"));
  try {
    return await use(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

async function withSpool(use: (spool: Spool) => Promise<void>): Promise<void> {
  await withFolder(async (folder) => {
    const spool = await Spool.open(folder);
    try {
      await use(spool);
    } finally {
      await spool.close();
    }
  });
}
