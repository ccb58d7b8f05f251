/**
 * What an author does in the first minutes, for each kind of plugin, outside the repository: `ambit init --plugin`, an installation of
 * the packed packages that this kind needs, the kit, a build, and a run with the plugin. Prints seconds and megabytes of each. Kinds
 * that need the same packages get copies of one installation.
 *
 * `node scripts/packages/check-templates.mjs [kind...]` does it with the repository's own command line. Needs a build.
 */
import { execFile, spawn } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { root } from "../setup.mjs";
import { pack, publishable, publishableFor, templateKinds } from "./publishable.mjs";

const execute = promisify(execFile);

/**
 * @typedef {object} Author
 * @property {string} ambit the command line
 * @property {ReadonlyMap<string, string>} archives by the packages' names
 */

/** Folders `node_modules`, by what was installed. @typedef {Map<string, string>} Installations */

/** Of single plugins: no other kind of plugin needs them. */
const heavyClients = ["@aws-sdk", "@kubernetes", "@daytona", "@opentelemetry", "dockerode", "pg"];

/** In CI the host can prove what the sandbox's template claims: a skip would hide that it can't. @returns {NodeJS.ProcessEnv} */
function environment() {
  const { AMBIT_MUST_PROVE: _ofOtherSuites, ...others } = process.env;
  const env = { ...others, NO_COLOR: "1", FORCE_COLOR: undefined };
  if (!process.env.CI || process.getuid?.() !== 0) return env;
  return { ...env, AMBIT_MUST_PROVE: "network.deny,process.contained,environment.named-only" };
}

/**
 * @param {string} program
 * @param {readonly string[]} argv
 * @param {string} cwd
 */
async function output(program, argv, cwd) {
  const { stdout, stderr } = await execute(program, [...argv], {
    cwd,
    env: environment(),
    maxBuffer: 2 ** 26,
  });
  return { stdout, stderr };
}

/**
 * What is read of a run's result.
 * @typedef {object} Ran
 * @property {readonly { type: string, output?: unknown }[]} events
 * @property {string} [sandbox]
 * @property {{ actors: readonly { kind: string, name: string }[] }} receipt
 */

/**
 * The run's tool had this output.
 * @param {Ran} ran
 * @param {RegExp} pattern
 */
const told = ({ events }, pattern) =>
  events.some(({ type, output: text }) => type === "tool_result" && pattern.test(String(text)));

/**
 * @param {Ran} ran
 * @param {string} kind
 * @param {string} name
 */
const acted = ({ receipt }, kind, name) =>
  receipt.actors.some((actor) => actor.kind === kind && actor.name === name);

/**
 * How a run shows that the plugin took part in it. One with a dialect succeeds only because of it. Of a store, a place for files and
 * a gateway that this run doesn't need, it shows that they are loaded.
 * @type {Readonly<Record<string, (ran: Ran, folder: string, name: string) => boolean>>}
 */
const partsTaken = {
  executor: (ran, _folder, name) => acted(ran, "executor", name) && told(ran, /\d\d:\d\d:\d\d/),
  sandbox: (ran, _folder, name) => ran.sandbox === name,
  observer: (_ran, folder) => existsSync(join(folder, "runs.ndjson")),
  harness: (ran, _folder, name) => acted(ran, "harness", name),
  delivery: (ran, _folder, name) => acted(ran, "delivery", name) && told(ran, /^42$/),
};

/**
 * The response of a door's own route, from a server with the plugin's configuration.
 * @param {string} ambit
 * @param {string} plugin its folder
 * @param {string} name
 */
async function throughDoor(ambit, plugin, name) {
  // Not the runs of the machine's own server.
  const places = {
    AMBIT_SQLITE_FILE: join(plugin, "runs.sqlite"),
    AMBIT_BLOBS_FOLDER: join(plugin, "blobs"),
  };
  const env = { ...environment(), ...places, AMBIT_AUTH: "none", AMBIT_PORT: "0" };
  const server = spawn(ambit, ["serve"], { cwd: plugin, env, stdio: ["ignore", "ignore", "pipe"] });
  try {
    let stderr = "";
    for await (const text of server.stderr.setEncoding("utf8")) {
      stderr += text;
      const [, url] = /"url":"([^"]+)"/.exec(stderr) ?? [];
      if (url === undefined) continue;
      const body = readFileSync(join(plugin, "request.json"));
      const response = await fetch(`${url}/${name}/ask`, { method: "POST", body });
      return { stdout: await response.text(), stderr };
    }
    throw new Error(`the server ended:\n${stderr}`);
  } finally {
    server.kill("SIGKILL");
  }
}

/**
 * @param {string} kind
 * @param {Author} author
 * @param {Installations} installations of earlier kinds, to which this one's is added
 * @param {string} folder of its own, beside which installations are kept: no other modules must be found
 */
async function checkTemplate(kind, { ambit, archives }, installations, folder) {
  const name = `first-${kind}`;
  const plugin = join(folder, name);
  /** @type {Record<string, number>} */
  const seconds = {};
  /** @param {string} step @param {() => Promise<{ stdout: string, stderr: string }>} act */
  const timed = async (step, act) => {
    const start = performance.now();
    const printed = await act();
    seconds[step] = (performance.now() - start) / 1_000;
    return printed;
  };
  await timed("init", () => output(ambit, ["init", "--plugin", kind, name], folder));
  const needed = publishableFor(kind).map((one) => archives.get(one.name) ?? one.name);
  const quiet = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline"];
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(plugin, "package.json"), "utf8"));
  const contents = JSON.stringify([needed, dependencies, devDependencies]);
  const modules = join(plugin, "node_modules");
  const { stderr } = await timed("install", async () => {
    const earlier = installations.get(contents);
    if (earlier === undefined) return output("npm", ["install", ...quiet, ...needed], plugin);
    cpSync(earlier, modules, { recursive: true, verbatimSymlinks: true });
    return { stdout: "", stderr: "" };
  });
  if (/ERESOLVE|EBADENGINE|deprecated/.test(stderr)) throw new Error(`npm warns:\n${stderr}`);
  const { stdout: tested } = await timed("kit", () => output("npm", ["test"], plugin));
  if (!/Tests +\d+ passed/.test(tested)) throw new Error(`no test passed:\n${tested}`);
  await timed("build", () => output("npm", ["run", "build"], plugin));
  const { stdout: listed } = await timed("load", () => output(ambit, ["plugins", "--json"], plugin));
  if (!listed.includes(`"${name}"`)) throw new Error(`ambit plugins doesn't list it:\n${listed}`);
  const { stdout: ran } = await timed("run", () =>
    kind === "door"
      ? throughDoor(ambit, plugin, name)
      : output(ambit, ["run", "--json", "request.json"], plugin),
  );
  const tookPart =
    kind === "door"
      ? ran.includes('{"text":"hello"}')
      : (partsTaken[kind]?.(JSON.parse(ran), plugin, name) ?? true);
  if (!tookPart) throw new Error(`the run shows nothing of it:\n${ran}`);
  for (const client of heavyClients)
    if (existsSync(join(plugin, "node_modules", client)))
      throw new Error(`${client} is installed: only its plugin needs it`);
  const [megabytes = ""] = (await output("du", ["-sm", "node_modules"], plugin)).stdout.split("\t");
  if (!installations.has(contents)) {
    const installation = join(folder, "..", `modules-${installations.size}`);
    renameSync(modules, installation);
    installations.set(contents, installation);
  }
  const total = Object.values(seconds).reduce((sum, one) => sum + one, 0);
  const each = Object.entries(seconds).map(([step, one]) => `${step} ${one.toFixed(1)}`);
  return `${kind.padEnd(9)} ${`${needed.length}`.padStart(2)} archives  ${megabytes.padStart(4)} MB  ${total.toFixed(1).padStart(6)} s  (${each.join(", ")})`;
}

/**
 * One kind after the other: in CI, tests need the machine too.
 * @param {Author} author
 * @param {readonly string[]} kinds
 * @throws Error that names the kind
 */
export async function checkTemplates(author, kinds = templateKinds()) {
  /** @type {Installations} */
  const installations = new Map();
  const folder = mkdtempSync(join(tmpdir(), "ambit-authors-"));
  try {
    for (const kind of kinds) {
      const kindFolder = join(folder, kind);
      mkdirSync(kindFolder);
      console.log(`ok  ${await named(kind, checkTemplate(kind, author, installations, kindFolder))}`);
      rmSync(kindFolder, { recursive: true });
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * @param {string} kind
 * @param {Promise<string>} checked
 * @throws Error that names the kind
 */
async function named(kind, checked) {
  try {
    return await checked;
  } catch (cause) {
    // A failed program's own message is in its output.
    const {
      message,
      stdout = "",
      stderr = "",
    } = /** @type {Error & { stdout?: string, stderr?: string }} */ (cause);
    throw new Error(`ambit init --plugin ${kind}: ${message}\n${stdout}${stderr}`, { cause });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const folder = mkdtempSync(join(tmpdir(), "ambit-templates-"));
  try {
    const chosen = process.argv.slice(2);
    const kinds = chosen.length === 0 ? templateKinds() : chosen;
    const needed = new Set(kinds.flatMap((kind) => publishableFor(kind).map(({ name }) => name)));
    const packages = publishable().filter(({ name }) => needed.has(name));
    const packed = pack(packages, folder);
    const archives = new Map(packages.map(({ name }, index) => [name, packed[index] ?? ""]));
    await checkTemplates({ ambit: join(root, "server/bin/ambit.mjs"), archives }, kinds);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
