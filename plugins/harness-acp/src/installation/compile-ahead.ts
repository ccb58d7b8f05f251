import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { existsSync, globSync, realpathSync, statSync } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Log } from "@ambit/core/plugin";
import type { Profile } from "../profiles/profile.js";
import { installedFolder, type LocatedProgram } from "./locate-program.js";

/** Milliseconds that compiling may take, on a busy host. */
const compileMs = 120_000;
/** Files of one agent. */
const maxFiles = 500;
const enabling = "enable.cjs";

/** An agent's code as V8 compiled it, in a folder that sandboxes only read. */
export interface CompiledCode {
  readonly folder: string;
  /** What Node loads first (`--require`) to use it. */
  readonly enable: string;
  /** The modules that it has. */
  readonly files: readonly string[];
}

/** Where an agent's compiled code is, or would be. Undefined for an agent that has none. */
export function compiledCode(
  { id, program }: Profile,
  located: LocatedProgram | undefined,
  node: string,
): CompiledCode | undefined {
  const entry = located?.companion?.file;
  const agentFolder = installedFolder(id);
  if (program.companion?.modules === undefined || entry === undefined || agentFolder === undefined)
    return undefined;
  const files = globSync(program.companion.modules, { cwd: dirname(entry) })
    .map((file) => join(dirname(entry), file))
    .sort()
    .slice(0, maxFiles);
  const state = [realpathSync(node), ...files].map((file) => {
    const { size, mtimeMs } = statSync(file);
    return [file, size, mtimeMs];
  });
  const key = createHash("sha256").update(JSON.stringify(state)).digest("hex").slice(0, 32);
  // With the agent, so that its next installation removes it.
  const folder = join(agentFolder, ".compiled", key);
  return { folder, enable: join(folder, enabling), files };
}

/**
 * Compiles an agent's modules without running any: they are the second import of a module whose first one throws, so
 * Node loads and links them, and evaluates none. Nothing of a sandbox is in what it writes.
 * @param holds whether this process stays until that is done; if not, it is done nevertheless
 */
export async function compileAhead(
  { folder, files }: CompiledCode,
  node: string,
  holds: boolean,
): Promise<void> {
  const parent = dirname(folder);
  await mkdir(parent, { recursive: true });
  const begun = await mkdtemp(join(parent, ".begun-"));
  try {
    const child = spawn(
      realpathSync(node),
      ["--input-type=module", "-e", compiler, begun, folder, ...files],
      {
        cwd: parent,
        env: {},
        stdio: "ignore",
        timeout: compileMs,
        killSignal: "SIGKILL",
      },
    );
    if (!holds) child.unref();
    const [status] = await once(child, "exit");
    if (status !== 0) throw new Error(`Node.js ended with ${status} while it compiled an agent`);
  } catch (error) {
    await rm(begun, { recursive: true, force: true });
    throw error;
  }
}

/** One agent's compiled code, which is made once: agents start without it meanwhile. */
export class Compilation {
  #code:
    | { readonly located: LocatedProgram | undefined; readonly code: CompiledCode | undefined }
    | undefined;
  #begun: Promise<void> | undefined;

  constructor(
    private readonly profile: Profile,
    private readonly node: string = process.execPath,
  ) {}

  /** Looks at the agent's files again, which may have been replaced. */
  forget(): void {
    this.#code = undefined;
  }

  /** Undefined as long as there is none. */
  done(located: LocatedProgram | undefined): CompiledCode | undefined {
    const code = this.#of(located);
    return code !== undefined && existsSync(code.enable) ? code : undefined;
  }

  /** Compiles in the background what isn't compiled yet, once in this process. Resolves when that has ended. */
  begin(located: LocatedProgram | undefined, log: Log): Promise<void> {
    const code = this.#of(located);
    if (code === undefined || existsSync(code.enable)) return Promise.resolve();
    this.#begun ??= compileAhead(code, this.node, false).catch((error: unknown) =>
      log.debug({ error }, "an agent's code wasn't compiled ahead: it starts more slowly"),
    );
    return this.#begun;
  }

  #of(located: LocatedProgram | undefined): CompiledCode | undefined {
    if (this.#code === undefined || this.#code.located !== located)
      this.#code = { located, code: compiledCode(this.profile, located, this.node) };
    return this.#code.code;
  }
}

/** Node keeps what it compiles by user, and each sandbox may have a user of its own. */
const enable = `
try {
  const { enableCompileCache } = require("node:module");
  const { mkdtempSync, readdirSync, symlinkSync } = require("node:fs");
  const { join } = require("node:path");
  const made = readdirSync(__dirname).find((name) => /-\\d+$/.test(name));
  const own = made.replace(/\\d+$/, String(process.getuid()));
  let folder = __dirname;
  if (own !== made) {
    folder = mkdtempSync(join(require("node:os").tmpdir(), "compiled-"));
    symlinkSync(join(__dirname, made), join(folder, own));
  }
  enableCompileCache(folder);
} catch {
  // It compiles everything itself.
}
`;

/** Runs may read it as another user. */
const compiler = `
import { chmodSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { enableCompileCache, flushCompileCache } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
const [begun, folder, ...files] = process.argv.slice(1);
if (enableCompileCache(begun).directory === undefined) process.exit(1);
const module = (text) => "data:text/javascript," + encodeURIComponent(text);
const stop = module("throw new Error('compiled and not run')");
for (const file of files) {
  const both = [stop, pathToFileURL(file).href].map((url) => "import " + JSON.stringify(url));
  await import(module(both.join(";"))).catch(() => undefined);
}
flushCompileCache();
writeFileSync(join(begun, "${enabling}"), ${JSON.stringify(enable)});
chmodSync(begun, 0o755);
for (const entry of readdirSync(begun, { recursive: true, withFileTypes: true }))
  chmodSync(join(entry.parentPath, entry.name), entry.isDirectory() ? 0o755 : 0o644);
renameSync(begun, folder);
`;
