import { createHash } from "node:crypto";
import { messageOf, type OwnSandbox, SetupFailed, SnapshotFailed } from "@ambit/core";
import {
  type EnvironmentReceipt,
  projectOf,
  type RunRequest,
  type SourceReceipt,
  type Warning,
} from "@ambit/core/contract";
import {
  type Log,
  limitVariables,
  type Sandbox,
  type SandboxLayers,
  unlessAborted,
} from "@ambit/core/plugin";
import { runScript } from "../programs.js";
import { packSnapshot, type SnapshotLimits, unpackSnapshot } from "../snapshots/archive.js";
import { placeOf } from "../sources/source.js";
import { type ReportSetup, requestedCommands, runCommands } from "./commands.js";
import { readDevcontainer, repositoryFolder } from "./devcontainer.js";
import type { KeptFacts, KeptSnapshots } from "./kept.js";
import { environmentKey, readSystem, systemOf } from "./key.js";
import { usedSecrets, withoutSecrets } from "./search.js";

interface EnvironmentsOptions {
  readonly kept: KeptSnapshots;
  readonly limits: SnapshotLimits;
  /** Milliseconds for all commands of a request, and to pack what they made. */
  readonly setupTimeoutMs: number;
}

/** One run that has an `environment`, before its agent's sandbox is open. */
export interface BeginningRun {
  readonly request: Pick<RunRequest, "environment" | "workspace" | "projectId" | "runContext">;
  /** Whether what it prepares may be kept. */
  readonly mayKeep: boolean;
  /** The backend's name. */
  readonly backend: string;
  /** The backend's layers. Undefined where it keeps none for sandboxes with the run's boundary. */
  readonly layers: LayersOfRun | undefined;
  readonly own: OwnSandbox;
  /** The commit of each git source now, by its index; undefined where one has none. */
  readonly commits: () => Promise<ReadonlyMap<number, string> | undefined>;
  readonly signal: AbortSignal;
}

/** One run whose agent's sandbox is open. */
export interface PreparedRun extends BeginningRun {
  /** The agent's, which is new. */
  readonly sandbox: Sandbox;
  readonly openSetup: () => Promise<Sandbox>;
  /** Puts the request's sources into a sandbox. */
  readonly fill: (into: Sandbox) => Promise<readonly SourceReceipt[]>;
  readonly report: ReportSetup;
  readonly warn: (warning: Warning) => void;
}

export interface Prepared {
  readonly sources: readonly SourceReceipt[];
  readonly environment: EnvironmentReceipt;
}

/** What a sandbox begins with instead of being filled. */
interface Beginning {
  /** The layer's name. */
  readonly layer: string;
  readonly prepared: Prepared;
}

/** Prepares environments, once for each that is asked for. */
export class Environments {
  readonly #options: EnvironmentsOptions;
  /** The environments that a run of this process prepares now, by project and key. */
  readonly #building = new Map<string, Promise<void>>();

  readonly #layers = new Layers();
  /** The commits that `begin` has looked up for a request, for `prepare`. */
  readonly #commits = new WeakMap<BeginningRun["request"], ReadonlyMap<number, string>>();

  constructor(options: EnvironmentsOptions) {
    this.#options = options;
  }

  /**
   * The layer with what is kept for this run, which is made where there is none yet. Undefined: `prepare` does everything, and says
   * what failed here too.
   * @throws the signal's reason
   */
  async begin(run: BeginningRun): Promise<Beginning | undefined> {
    const { request, layers, mayKeep } = run;
    if (layers === undefined || !mayKeep || (request.environment?.cache ?? "use") !== "use") return undefined;
    const signal = AbortSignal.any([run.signal, AbortSignal.timeout(this.#options.setupTimeoutMs)]);
    try {
      const system = await unlessAborted(signal, () => layers.kept.system(signal));
      const commits = system === undefined ? undefined : await this.#commitsOf(run);
      if (system === undefined || commits === undefined) return undefined;
      const key = keyWith(run, system, commits);
      const project = projectOf(request);
      const kept = await this.#options.kept.find(project, key);
      if (kept === undefined) return undefined;
      try {
        const { facts, archive } = kept;
        const layer = layerName(project, key, facts);
        const write = (into: Sandbox) => this.#write(into, facts, archive, signal);
        const isThere = await this.#layers.ensure(layers, layer, write, signal);
        run.signal.throwIfAborted();
        const environment = receiptOf(key, facts, "cache", true);
        return isThere ? { layer, prepared: { sources: facts.sources, environment } } : undefined;
      } finally {
        await kept.close();
      }
    } catch {
      run.signal.throwIfAborted();
      return undefined;
    }
  }

  /** @throws SetupFailed, SnapshotFailed, SourceFailed, SandboxFailed; the signal's reason */
  async prepare(run: PreparedRun): Promise<Prepared> {
    const { cache = "use" } = run.request.environment ?? {};
    const project = projectOf(run.request);
    const keyOf = await this.#keyOf(run);
    const commits = cache === "off" || !run.mayKeep ? undefined : await this.#commitsOf(run);
    if (commits === undefined) return await this.#build(run, keyOf, run.mayKeep && cache !== "off");
    const key = keyOf(commits);
    const id = JSON.stringify([project, key]);
    for (;;) {
      const kept = cache === "use" ? await this.#options.kept.find(project, key) : undefined;
      if (kept !== undefined) {
        try {
          return await this.#use(run, key, kept.facts, kept.archive);
        } finally {
          await kept.close();
        }
      }
      const building = this.#building.get(id);
      if (building === undefined) break;
      run.report({ state: "waiting" });
      await unlessAborted(run.signal, () => building);
    }
    const built = Promise.withResolvers<void>();
    this.#building.set(id, built.promise);
    try {
      return await this.#build(run, keyOf, true);
    } finally {
      this.#building.delete(id);
      built.resolve();
    }
  }

  /** Looked up once for each run: a repository's host is asked in a sandbox of its own. */
  async #commitsOf({ request, commits }: BeginningRun): Promise<ReadonlyMap<number, string> | undefined> {
    const commitsNow = this.#commits.get(request) ?? (await commits());
    if (commitsNow !== undefined) this.#commits.set(request, commitsNow);
    return commitsNow;
  }

  async #keyOf(run: PreparedRun) {
    const { sandbox, layers, signal } = run;
    const layersSystem = layers && (await unlessAborted(signal, () => layers.kept.system(signal)));
    const system = layersSystem ?? (await systemOf(sandbox, () => readSystem(sandbox, signal)));
    return (commits: ReadonlyMap<number, string>) => keyWith(run, system, commits);
  }

  async #use(
    run: PreparedRun,
    key: string,
    facts: KeptFacts,
    archive: AsyncIterable<Uint8Array>,
  ): Promise<Prepared> {
    try {
      await this.#unpack(run, facts, archive);
    } catch (error) {
      // The next run makes it again.
      if (error instanceof SnapshotFailed) await this.#options.kept.remove(projectOf(run.request), key);
      throw error;
    }
    return { sources: facts.sources, environment: receiptOf(key, facts, "cache", true) };
  }

  async #build(
    run: PreparedRun,
    keyOf: (commits: ReadonlyMap<number, string>) => string,
    keeps: boolean,
  ): Promise<Prepared> {
    const { kept } = this.#options;
    const draft = await kept.draft(projectOf(run.request));
    try {
      const facts = await this.#setUp(run, (archive) => draft.write(archive));
      // A branch may have moved since its commit was looked up.
      const key = keyOf(commitsIn(facts.sources));
      const isKept = keeps && (await draft.keep(key, facts));
      const write = (into: Sandbox) => this.#write(into, facts, draft.read(facts), run.signal);
      const layer = layerName(projectOf(run.request), key, facts);
      const making =
        isKept && run.layers ? this.#layers.ensure(run.layers, layer, write, run.signal) : undefined;
      try {
        await this.#unpack(run, facts, draft.read(facts));
      } finally {
        await making;
      }
      return { sources: facts.sources, environment: receiptOf(key, facts, "built", isKept) };
    } finally {
      await draft.close();
    }
  }

  /** Everything that happens in the sandbox of the setup. It is closed when this returns. */
  async #setUp(
    run: PreparedRun,
    write: (archive: AsyncIterable<Uint8Array>) => Promise<void>,
  ): Promise<KeptFacts> {
    const { limits, setupTimeoutMs } = this.#options;
    const setup = await run.openSetup();
    try {
      if (setup.workspace !== run.sandbox.workspace || setup.home !== run.sandbox.home)
        throw new SetupFailed(
          "The sandbox of environment.setup has other paths than the agent's, so what it prepares wouldn't work there: name a sandbox whose paths are always the same.",
        );
      const sources = await run.fill(setup);
      const late = AbortSignal.timeout(setupTimeoutMs);
      const signal = AbortSignal.any([run.signal, late]);
      try {
        await this.#runCommands(run, setup, signal);
        if (run.request.environment?.inputs !== undefined) await removeSources(setup, run.request, signal);
        const builtAt = Date.now();
        const secrets = usedSecrets(run.request);
        const facts = await packSnapshot(
          setup,
          limits,
          (archive) => write(withoutSecrets(archive, secrets)),
          signal,
        );
        return { ...facts, builtAt, sources: [...sources] };
      } catch (error) {
        run.signal.throwIfAborted();
        if (!late.aborted) throw error;
        throw tooSlow("environment.setup hadn't ended", setupTimeoutMs, error);
      }
    } finally {
      await setup.close();
    }
  }

  /** The repository's commands first, as the commit has them. */
  async #runCommands(
    { request, own, report, warn }: PreparedRun,
    setup: Sandbox,
    signal: AbortSignal,
  ): Promise<void> {
    const { environment } = request;
    if (environment === undefined) return;
    const requested = requestedCommands(environment.setup);
    const limits = limitVariables(own.boundary.resources);
    if (environment.devcontainer === undefined)
      return await runCommands(setup, requested, { ...limits, ...environment.env }, report, signal);
    const folder = repositoryFolder(request, setup);
    const say = (message: string) => warn({ path: "environment.devcontainer", message });
    const file = await readDevcontainer(setup, environment.devcontainer, folder, say, signal);
    const env = { ...limits, ...file.env, ...environment.env };
    await runCommands(setup, [...file.commands, ...requested], env, report, signal);
  }

  async #unpack(
    { sandbox, request, signal }: PreparedRun,
    facts: KeptFacts,
    archive: AsyncIterable<Uint8Array>,
  ): Promise<void> {
    if (request.environment?.prepareOnly !== true) await this.#write(sandbox, facts, archive, signal);
  }

  async #write(
    into: Sandbox,
    facts: KeptFacts,
    archive: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    const { limits, setupTimeoutMs } = this.#options;
    const late = AbortSignal.timeout(setupTimeoutMs);
    try {
      await unpackSnapshot(into, archive, facts, limits, AbortSignal.any([signal, late]));
    } catch (error) {
      signal.throwIfAborted();
      if (!late.aborted) throw error;
      throw tooSlow("What environment.setup prepared wasn't in the agent's sandbox", setupTimeoutMs, error);
    }
  }
}

function keyWith(
  { request, own: { boundary }, backend }: BeginningRun,
  system: string,
  commits: ReadonlyMap<number, string>,
): string {
  return environmentKey({ request, boundary, backend, system, commits });
}

/** The name of the layer with this content, for this project: its first 16 characters say whose it is. Pure. */
function layerName(project: string | undefined, key: string, { sha256 }: KeptFacts): string {
  const digest = (...facts: readonly unknown[]) =>
    createHash("sha256").update(JSON.stringify(facts)).digest("hex");
  return digest(project).slice(0, 16) + digest(project, key, sha256).slice(16);
}

function tooSlow(what: string, timeoutMs: number, cause: unknown): SetupFailed {
  const fix = "make less of it, or raise workspace.setupTimeoutMs of the server's configuration";
  return new SetupFailed(`${what} after ${timeoutMs} ms: ${fix}.`, { cause });
}

function receiptOf(
  key: string,
  { sha256, bytes, entries, builtAt }: KeptFacts,
  from: EnvironmentReceipt["from"],
  kept: boolean,
): EnvironmentReceipt {
  return { key, sha256, bytes, entries, from, builtAt: new Date(builtAt).toISOString(), kept };
}

function commitsIn(sources: readonly SourceReceipt[]): ReadonlyMap<number, string> {
  return new Map(
    sources.flatMap(({ commit }, index): [number, string][] =>
      commit === undefined ? [] : [[index, commit]],
    ),
  );
}

const removalScript = 'cd "$1" && xargs -0 rm -f -- < "$2" && rm -f -- "$2"';
const maxRemovalCharacters = 2_000;

/**
 * Leaves in a setup's workspace what its commands made: the files of another request's sources take their place.
 * @throws SetupFailed, SandboxFailed; the signal's reason
 */
async function removeSources(
  setup: Sandbox,
  { workspace }: Pick<RunRequest, "workspace">,
  signal: AbortSignal,
): Promise<void> {
  const paths = (workspace?.sources ?? []).flatMap((source) =>
    source.type === "files" ? source.files.map(({ path }) => `./${placeOf(source)}${path}\0`) : [],
  );
  if (paths.length === 0) return;
  // There may be more than fit into arguments.
  const list = `${setup.home}/.ambit-sources`;
  await setup.writeFiles([{ path: list, content: paths.join("") }]);
  const { code, stderr } = await runScript(setup, removalScript, [setup.workspace, list], {
    maxCharacters: maxRemovalCharacters,
    signal,
  });
  if (code !== 0)
    throw new SetupFailed(
      `The files of workspace.sources can't be told from what environment.setup made: ${stderr.trim()}. Leave environment.inputs out, or let the commands leave these files in their places.`,
    );
}

/** The layers of one run's backend. */
interface LayersOfRun {
  readonly kept: SandboxLayers;
  /** Opens the sandbox that becomes a layer. */
  readonly open: (name: string) => Promise<Sandbox>;
  readonly log: Log;
}

/** Makes layers of what is kept. They save time: what fails here is logged, and the files are copied. */
export class Layers {
  /** The layers that a run of this process makes now, by name. */
  readonly #making = new Map<string, Promise<boolean>>();

  /**
   * Whether there is such a layer now. One that is missing is made, by one run for all that ask at the same time. Never rejects.
   * @param write puts its files into a new sandbox
   * @param signal gives it up: there is none then.
   */
  async ensure(
    { kept, open, log }: LayersOfRun,
    name: string,
    write: (into: Sandbox) => Promise<void>,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      return await unlessAborted(signal, async () => {
        const others = this.#making.get(name);
        if (others !== undefined) return await others;
        if (await kept.has(name, signal)) return true;
        return await this.#once(name, async () => {
          await make(await open(name), write);
          return true;
        });
      });
    } catch (error) {
      log.warn({ error: messageOf(error) }, "a prepared environment couldn't be kept as a layer");
      return false;
    }
  }

  async #once(name: string, act: () => Promise<boolean>): Promise<boolean> {
    const making = this.#making.get(name) ?? act();
    this.#making.set(name, making);
    try {
      return await making;
    } finally {
      this.#making.delete(name);
    }
  }
}

async function make(sandbox: Sandbox, write: (into: Sandbox) => Promise<void>): Promise<void> {
  try {
    if (sandbox.keepAsLayer === undefined) throw new TypeError("the sandbox can't become a layer");
    await write(sandbox);
    await sandbox.keepAsLayer();
  } catch (error) {
    await sandbox.close();
    throw error;
  }
}
