// npm run check:sdk [-- PART OF A CASE'S NAME]: the official SDK's own service against a server with the default
// configuration. Says in one line where Python packages can't be downloaded.
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { call, followMarkers, startModelServer } from "../../test/model-server/dist/index.js";
import { cases } from "./cases.mjs";
import { installSdk, versions } from "./install.mjs";
import { startPlatform } from "./platform.mjs";
import { startService } from "./service.mjs";

const root = fileURLToPath(new URL("../..", import.meta.url));
/** Milliseconds for one case, which takes seconds on an idle machine. */
const caseTimeoutMs = 180_000;
const token = "the-runner-token-of-check-sdk";

const folder = mkdtempSync(join(tmpdir(), "ambit-check-sdk-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true }));

/** The platform's model is reached over TLS, as the SDK requires. */
function certificate() {
  const [key, cert] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"];
  const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
  const files = ["-keyout", key, "-out", cert, "-days", "2"];
  execFileSync("openssl", ["req", "-x509", ...curve, ...files, ...subject], { stdio: "ignore" });
  return { file: cert, key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
}

/**
 * Ambit as a user starts it: no configuration, a token in the variable that the SDK's deployments set.
 *
 * @param {string} trusted
 * @param {{ name?: string, config?: object }} [options] `config`: of a second server, with one setting of an operator
 */
async function startRunner(trusted, { name = "runner", config } = {}) {
  const own = Object.entries(process.env).filter(([key]) => !/^(AMBIT|AGENTA)_/.test(key));
  const file = join(folder, `${name}.json`);
  if (config !== undefined) writeFileSync(file, JSON.stringify({ extends: "defaults", ...config }));
  const child = spawn(process.execPath, [join(root, "server/bin/ambit.mjs"), "serve"], {
    cwd: root,
    env: {
      ...Object.fromEntries(own),
      AGENTA_RUNNER_TOKEN: token,
      AGENTA_RUNNER_REPLICA_ID: name,
      AMBIT_PORT: "0",
      AMBIT_SQLITE_FILE: join(folder, `${name}.sqlite`),
      NODE_EXTRA_CA_CERTS: trusted,
      ...(config === undefined ? {} : { AMBIT_CONFIG: file }),
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  /** @type {string[]} */
  const log = [];
  /** @type {PromiseWithResolvers<string>} */
  const listening = Promise.withResolvers();
  for (const stream of [child.stdout, child.stderr])
    createInterface({ input: stream }).on("line", (line) => {
      log.push(line.slice(0, 2_000));
      if (log.length > 1_000) log.shift();
      const url = /http:\/\/127\.0\.0\.1:\d+/.exec(line)?.[0];
      if (url !== undefined) listening.resolve(url);
    });
  child.once("exit", () => listening.reject(new Error(`The server doesn't start:\n${log.join("\n")}`)));
  return { name, url: await listening.promise, log, close: () => void child.kill("SIGKILL") };
}

/** @typedef {Awaited<ReturnType<typeof startRunner>>} Runner */

/**
 * Every case of one version, with a platform and a model of its own.
 *
 * @param {string} version
 * @param {Awaited<ReturnType<typeof installSdk>>} sdk
 * @param {{ runner: Runner, tls: ReturnType<typeof certificate>, lenient: () => Promise<Runner> }} shared
 * @returns {Promise<{ report: string[], failed: number }>}
 */
async function checkVersion(version, { python, packages }, { runner, tls, lenient }) {
  const wanted = { tool: "", input: {} };
  const model = await startModelServer({
    expectedKey: "test-key",
    // An agent that continues after an answer is asked to repeat its call.
    script: (turn) =>
      turn.lastUserText.includes("Make the same tool call again") && turn.toolResults.length === 0
        ? call(wanted.tool, wanted.input)
        : followMarkers(turn),
  });
  const platform = await startPlatform({ modelUrl: model.url, tls });
  const service = await startService({
    python,
    packages: packages(version),
    platform: platform.origin,
    runner: runner.url,
    token,
  });
  const report = [`agenta ${service.version}`];
  let failed = 0;
  try {
    if (service.version !== version)
      throw new Error(`agenta ${version} is installed, and ${service.version} runs`);
    const isNewest = version === versions[0];
    const world = {
      service: service.url,
      runner: runner.url,
      token,
      platform,
      wanted,
      isNewest,
      lenient,
    };
    for (const [name, one] of Object.entries(cases)) {
      if (!name.includes(process.argv[2] ?? "")) continue;
      const began = Date.now();
      const late = sleep(caseTimeoutMs, undefined, { ref: false }).then(() => {
        throw new Error("it takes too long");
      });
      const failure = await Promise.race([one(world), late]).then(
        () => undefined,
        (/** @type {unknown} */ error) => error,
      );
      const seconds = ((Date.now() - began) / 1_000).toFixed(1);
      report.push(`${failure === undefined ? "ok    " : "FAILED"} ${name} (${seconds} s)`);
      if (failure === undefined) continue;
      failed += 1;
      report.push(failure instanceof Error ? failure.message.slice(0, 4_000) : String(failure));
      report.push(
        `service: ${service.log.slice(-10).join("\n")}\nrunner: ${runner.log.slice(-10).join("\n")}`,
      );
    }
  } finally {
    service.close();
    platform.close();
    await model.close();
  }
  return { report, failed };
}

/** Both versions at once, against one server. @returns {Promise<boolean>} whether every case of every version passed */
async function check(/** @type {Awaited<ReturnType<typeof installSdk>>} */ sdk) {
  const tls = certificate();
  const runner = await startRunner(tls.file);
  /** @type {Promise<Runner> | undefined} */
  let second;
  const lenient = () => {
    const config = { permissions: { unaskedTools: "boundary" } };
    second ??= startRunner(tls.file, { name: "lenient", config });
    return second;
  };
  try {
    const shared = { runner, tls, lenient };
    const checked = await Promise.all(versions.map((version) => checkVersion(version, sdk, shared)));
    for (const { report } of checked) console.log(report.join("\n"));
    return checked.every(({ failed }) => failed === 0);
  } finally {
    runner.close();
    (await second?.catch(() => undefined))?.close();
  }
}

const sdk = await installSdk().catch((error) => {
  console.log(`check:sdk isn't run: the SDK's Python packages can't be installed here (${error.message})`);
});
process.exitCode = sdk === undefined || (await check(sdk)) ? 0 : 1;
