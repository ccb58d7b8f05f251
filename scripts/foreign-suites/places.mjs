/**
 * Where a suite runs: in a jail of sandbox-local, or as an ordinary user of this machine.
 *
 * @typedef {(script: string) => Promise<string>} Place runs it with sh in an empty folder, and returns its stdout
 */
import { spawn } from "node:child_process";
import { chmodSync, chownSync, mkdtempSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { configSchema, LocalSandbox } from "../../plugins/sandbox-local/dist/index.js";

/** What the agent of a run has, besides what a jail itself sets. */
const environment = {
  PATH: "/usr/local/bin:/usr/bin:/bin",
  LANG: "C.UTF-8",
  TERM: "dumb",
  NO_COLOR: "1",
  PAGER: "cat",
  GIT_PAGER: "cat",
  GIT_TERMINAL_PROMPT: "0",
};

/** The account of Debian and most others that owns nothing. */
const nobody = { uid: 65_534, gid: 65_534 };

/**
 * A jail as the agent of a run with `"network": "off"` and `"filesystem": "workspace"` has it, with the defaults of sandbox-local.
 *
 * @param {string} folder
 * @param {readonly string[]} readOnlyMounts
 * @returns {Place}
 */
export const inside = (folder, readOnlyMounts) => async (script) => {
  const dataFolder = mkdtempSync(join(folder, "data-"));
  // A session's own user has to reach it.
  chmodSync(dataFolder, 0o711);
  const backend = new LocalSandbox(configSchema.parse({ dataFolder, readOnlyMounts }));
  const { signal } = new AbortController();
  const sandbox = await backend.open(
    {
      id: "foreign-suite",
      boundary: {
        network: { mode: "off", rules: [] },
        filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
        resources: {},
        secrets: "visible",
        enforcement: "strict",
      },
      required: [],
      requiredPaths: [],
      onDecision: () => undefined,
      log: { debug: () => undefined, info: () => undefined, warn: console.error, error: console.error },
    },
    { signal, defer: () => undefined },
  );
  try {
    const argv = /** @type {const} */ (["/bin/sh", "-c", script]);
    const suite = await sandbox.spawn({ argv, env: { ...environment, HOME: sandbox.home }, role: "agent" });
    await suite.stdin.close();
    const [stdout] = await Promise.all([text(suite.stdout), printed(suite.stderr)]);
    await suite.exit;
    return stdout;
  } finally {
    await sandbox.close();
  }
};

/** @param {ReadableStream<Uint8Array>} stream */
async function printed(stream) {
  for await (const chunk of stream) process.stderr.write(chunk);
}

/**
 * This user, or `nobody` where this is root: a session of root isn't root either.
 *
 * @param {string} folder
 * @returns {Place}
 */
export const outside = (folder) => async (script) => {
  // The address of a Unix socket, which has 108 characters at most, is shorter in "/workspace" than anywhere outside.
  const workspace = mkdtempSync(join(folder, "w-"));
  const home = mkdtempSync(join(folder, "h-"));
  const user = process.getuid?.() === 0 ? nobody : undefined;
  if (user !== undefined) for (const path of [home, workspace]) chownSync(path, user.uid, user.gid);
  const suite = spawn("/bin/sh", ["-c", script], {
    cwd: workspace,
    env: { ...environment, HOME: home },
    stdio: ["ignore", "pipe", "inherit"],
    ...user,
  });
  return await text(suite.stdout);
};
