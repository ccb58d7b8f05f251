// The built server, for a check of what its clients see.
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const program = fileURLToPath(new URL("../server/bin/ambit.mjs", import.meta.url));

/** Nothing of the caller's own settings gets in. */
export const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !/^AMBIT_/.test(name)),
);

/**
 * @param {string} folder for its configuration and its store
 * @param {object} configuration
 * @param {string} token
 * @returns {Promise<{ readonly url: string, close(): void }>}
 * @throws Error with its log if it doesn't start
 */
export async function startServer(folder, configuration, token) {
  const config = join(folder, "ambit.config.json");
  writeFileSync(config, JSON.stringify(configuration));
  const env = {
    ...environment,
    AMBIT_TOKEN: token,
    AMBIT_PORT: "0",
    AMBIT_SQLITE_FILE: join(folder, "runs.sqlite"),
    AMBIT_BLOBS_FOLDER: join(folder, "blobs"),
  };
  const args = [program, "--config", config, "serve"];
  const child = spawn(process.execPath, args, { cwd: folder, env, stdio: ["ignore", "pipe", "pipe"] });
  /** @type {PromiseWithResolvers<string>} */
  const listening = Promise.withResolvers();
  /** @type {string[]} */
  const log = [];
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on("line", (line) => {
      log.push(line);
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (url !== undefined) listening.resolve(url);
    });
  child.once("exit", () => listening.reject(new Error(`The server doesn't start:\n${log.join("\n")}`)));
  return { url: await listening.promise, close: () => void child.kill("SIGKILL") };
}
