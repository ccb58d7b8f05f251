import { createHash, randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { AtCapacity, SnapshotFailed } from "@ambit/core";
import type { SnapshotInfo } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import type { Blobs, FileSealing } from "../blobs.js";
import { Spool } from "../spool.js";
import {
  packSnapshot,
  type SnapshotFacts,
  type SnapshotLimits,
  type SnapshotPart,
  unpackSnapshot,
} from "./archive.js";
import {
  blobNames,
  contentOf,
  type ExportHeader,
  idIn,
  infoOf,
  isSnapshotId,
  manifestSchema,
  noSnapshot,
  one,
  ownsSnapshots,
  readExported,
  remove,
  type SnapshotKind,
  snapshotsOwner,
  stateSchema,
} from "./stored.js";

interface SnapshotsOptions {
  readonly kind: SnapshotKind;
  /** Undefined where no plugin keeps files. */
  readonly blobs: (() => Promise<Blobs>) | undefined;
  /** Encrypts what a session was besides its files, in any case. */
  readonly sealing: () => Promise<FileSealing>;
  readonly limits: SnapshotLimits;
  readonly maxPerProject: number;
  readonly maxAgeMs: number;
  /** Milliseconds to pack or unpack one. */
  readonly timeoutMs: number;
  /** The folder for files on their way. */
  readonly folder: string;
}

interface SandboxOfSession {
  readonly sandbox: Sandbox;
  readonly backend: string;
}

/** The setting of `timeoutMs`, for messages. */
const timeoutSettings = { snapshots: "snapshotTimeoutMs", suspended: "suspendTimeoutMs" } as const;

type State = ReturnType<typeof stateSchema.parse>;

/** A session's state, as the runner has it. */
interface SessionState {
  readonly conversation: { readonly harness: string; readonly id: string } | undefined;
  readonly userMessages: readonly string[];
  readonly secrets: readonly string[];
}

type Project = string | undefined;

/** Copies of sessions' workspaces and homes, kept by project. */
export class Snapshots {
  readonly #options: SnapshotsOptions;
  readonly #places: SnapshotPlaces;
  /** Owners that import one now: each one at a time, since an import may be large and slow. */
  readonly #importing = new Set<string>();

  constructor(options: SnapshotsOptions) {
    this.#options = options;
    this.#places = new SnapshotPlaces(options);
  }

  get isKept(): boolean {
    return this.#options.blobs !== undefined;
  }

  /** @throws SnapshotFailed, StoreFailed; the signal's reason */
  async take(
    { sandbox, backend, session, project }: SandboxOfSession & { session: string; project: Project },
    { conversation, userMessages, secrets }: SessionState,
    signal: AbortSignal,
  ): Promise<SnapshotInfo> {
    const state = { conversation, userMessages: [...userMessages], secrets: [...secrets] };
    return await this.#inTime(signal, (inTime) =>
      this.#keep(project, state, async (id, keep) => {
        const facts = await packSnapshot(sandbox, this.#options.limits, keep, inTime);
        return { id, sessionId: session, sandbox: backend, createdAt: new Date().toISOString(), ...facts };
      }),
    );
  }

  /** @param part Default: `all`. @throws NotFound, SnapshotFailed, StoreFailed; the signal's reason */
  async restore(
    id: string,
    project: Project,
    { sandbox, backend }: SandboxOfSession,
    signal: AbortSignal,
    part: SnapshotPart = "all",
  ): Promise<{ readonly facts: SnapshotFacts; readonly state: State & SessionState }> {
    const { blobs, owner } = await this.#place(project);
    const info = await this.find(id, project);
    if (part !== "workspace" && info.sandbox !== backend)
      throw new SnapshotFailed(
        `The snapshot ${id} is of a session on ${info.sandbox}, whose files don't fit into a sandbox on ${backend}: send sandbox: "${info.sandbox}" with the request.`,
      );
    const state = await this.#stateOf(id, owner, blobs);
    const archive = await blobs.get(owner, blobNames.archive(id));
    if (archive === undefined) throw noSnapshot(id);
    await this.#inTime(signal, (inTime) =>
      unpackSnapshot(sandbox, archive.content, info, this.#options.limits, inTime, part),
    );
    return { facts: info, state: { ...state, conversation: state.conversation } };
  }

  /** Copies from one sandbox into another, and keeps nothing. @param part Default: `all`. @throws SnapshotFailed; the signal's reason */
  async copy(
    from: SandboxOfSession,
    into: SandboxOfSession,
    signal: AbortSignal,
    part: SnapshotPart = "all",
  ): Promise<SnapshotFacts> {
    if (part !== "workspace" && from.backend !== into.backend)
      throw new SnapshotFailed(
        `The session to fork is on ${from.backend}, and its files don't fit into a sandbox on ${into.backend}: send sandbox: "${from.backend}" with the request.`,
      );
    const { folder, limits } = this.#options;
    const spool = await Spool.open(folder);
    try {
      let content: Awaited<ReturnType<Spool["add"]>> | undefined;
      const keep = async (archive: AsyncIterable<Uint8Array>) => {
        content = await spool.add(archive);
      };
      return await this.#inTime(signal, async (inTime) => {
        const facts = await packSnapshot(from.sandbox, limits, keep, inTime, part);
        if (content === undefined) throw new TypeError("a snapshot's archive wasn't spooled");
        await unpackSnapshot(into.sandbox, spool.read(content), facts, limits, inTime, part);
        return facts;
      });
    } finally {
      await spool.close();
    }
  }

  /** The project's, the newest first. @throws StoreFailed */
  async list(project: Project): Promise<readonly SnapshotInfo[]> {
    const { blobs, owner } = await this.#place(project);
    const infos: SnapshotInfo[] = [];
    for (const id of await this.#ids(blobs, owner)) {
      const info = await infoOf(id, owner, blobs);
      if (info !== undefined) infos.push(info);
    }
    return infos.sort((one, other) => (one.createdAt < other.createdAt ? 1 : -1));
  }

  /** @throws NotFound, StoreFailed */
  async find(id: string, project: Project): Promise<SnapshotInfo> {
    const { blobs, owner } = await this.#place(project);
    const info = await infoOf(id, owner, blobs);
    if (info === undefined) throw noSnapshot(id);
    return info;
  }

  /** @throws NotFound, StoreFailed */
  async delete(id: string, project: Project): Promise<void> {
    const { blobs, owner } = await this.#place(project);
    // A snapshot that can't be read can be deleted too.
    if (!isSnapshotId(id) || (await blobs.get(owner, blobNames.manifest(id))) === undefined)
      throw noSnapshot(id);
    await remove(id, owner, blobs);
  }

  /** The content that `import` takes, on another server too. @throws NotFound, StoreFailed */
  async export(
    id: string,
    project: Project,
  ): Promise<{ info: SnapshotInfo; content: AsyncIterable<Uint8Array> }> {
    const { blobs, owner } = await this.#place(project);
    const info = await this.find(id, project);
    const { conversation, userMessages } = await this.#stateOf(id, owner, blobs);
    const archive = await blobs.get(owner, blobNames.archive(id));
    if (archive === undefined) throw noSnapshot(id);
    const header: ExportHeader = { format: "ambit-snapshot", version: 1, info, conversation, userMessages };
    const content = async function* () {
      yield Buffer.from(`${JSON.stringify(header)}\n`);
      yield* archive.content;
    };
    return { info, content: content() };
  }

  /** Keeps an exported snapshot under a new id. @throws AtCapacity, SnapshotFailed, StoreFailed; what the content throws */
  async import(content: AsyncIterable<Uint8Array>, project: Project): Promise<SnapshotInfo> {
    const owner = this.#ownerOf(project);
    if (this.#importing.has(owner))
      throw new AtCapacity("The project imports another snapshot now: try again when that is done.");
    this.#importing.add(owner);
    try {
      return await this.#import(content, project);
    } finally {
      this.#importing.delete(owner);
    }
  }

  async #import(content: AsyncIterable<Uint8Array>, project: Project): Promise<SnapshotInfo> {
    const exported = await readExported(content);
    const { info, conversation, userMessages } = exported.header;
    const { maxBytes } = this.#options.limits;
    return await this.#keep(project, { conversation, userMessages, secrets: [] }, async (id, keep) => {
      const hash = createHash("sha256");
      let bytes = 0;
      const counted = async function* () {
        for await (const piece of exported.archive) {
          bytes += piece.length;
          if (bytes > maxBytes)
            throw new SnapshotFailed(
              `The snapshot is larger than ${maxBytes / 1_048_576} MiB: raise workspace.maxSnapshotMiB of the server's configuration.`,
            );
          hash.update(piece);
          yield piece;
        }
        if (bytes !== info.bytes || hash.digest("hex") !== info.sha256)
          throw new SnapshotFailed(
            "The imported snapshot isn't what was exported: its digest doesn't match. Send the whole file.",
          );
      };
      await keep(counted());
      return { ...info, id, createdAt: new Date().toISOString() };
    });
  }

  /** Deletes what is older than it may be, of all projects. @throws StoreFailed */
  async deleteOld(): Promise<void> {
    const { blobs: open, maxAgeMs } = this.#options;
    if (open === undefined) return;
    const blobs = await open();
    const before = Date.now() - maxAgeMs;
    for await (const { owner } of blobs.owners(before)) {
      if (!ownsSnapshots(owner, this.#options.kind)) continue;
      for await (const { name, at } of blobs.files(owner))
        if (at < before) await blobs.deleteFile(owner, name);
    }
  }

  /** @throws SnapshotFailed when it takes too long */
  async #inTime<Result>(signal: AbortSignal, act: (inTime: AbortSignal) => Promise<Result>): Promise<Result> {
    const { timeoutMs } = this.#options;
    const late = AbortSignal.timeout(timeoutMs);
    try {
      return await act(AbortSignal.any([signal, late]));
    } catch (cause) {
      signal.throwIfAborted();
      if (!late.aborted) throw cause;
      const message = `The session's files couldn't be copied within ${timeoutMs} ms: remove some, or raise workspace.${timeoutSettings[this.#options.kind]} of the server's configuration.`;
      throw new SnapshotFailed(message, { cause });
    }
  }

  /** The manifest is written last: what has none isn't there. The state is written first, and takes its place. */
  async #keep(
    project: Project,
    state: State,
    write: (id: string, keep: (archive: AsyncIterable<Uint8Array>) => Promise<void>) => Promise<SnapshotInfo>,
  ): Promise<SnapshotInfo> {
    const { blobs, owner } = await this.#place(project);
    const id = randomBytes(16).toString("hex");
    const keepState = async () => {
      const name = blobNames.state(id);
      const sealing = await this.#options.sealing();
      await blobs.put(owner, name, sealing.seal(one(state), { owner, name }));
    };
    const giveUp = () =>
      remove(id, owner, blobs).catch(() => {
        // Without a manifest it isn't there, and it is deleted when it is old.
      });
    try {
      await this.#places.take({ blobs, owner, id }, keepState, giveUp);
      const info = await write(id, (archive) => blobs.put(owner, blobNames.archive(id), archive));
      await blobs.put(owner, blobNames.manifest(id), one(manifestSchema.parse({ version: 1, info })));
      return info;
    } catch (error) {
      await giveUp();
      throw error;
    } finally {
      this.#places.giveBack({ owner, id });
    }
  }

  async #stateOf(id: string, owner: string, blobs: Blobs): Promise<State> {
    const name = blobNames.state(id);
    const sealed = await blobs.get(owner, name);
    if (sealed === undefined) throw noSnapshot(id);
    const content = (await this.#options.sealing()).open(sealed.content, { owner, name });
    return await contentOf(id, content, stateSchema);
  }

  async #ids(blobs: Blobs, owner: string): Promise<readonly string[]> {
    const ids: string[] = [];
    for await (const { name } of blobs.files(owner)) {
      const id = idIn(name, "manifest");
      if (id !== undefined) ids.push(id);
    }
    return ids;
  }

  #ownerOf(project: Project): string {
    return snapshotsOwner(this.#options.kind, project);
  }

  async #place(project: Project): Promise<{ readonly blobs: Blobs; readonly owner: string }> {
    if (this.#options.blobs === undefined)
      throw new SnapshotFailed(
        "Snapshots can't be kept here: add @ambit/blobs-folder or @ambit/blobs-s3 to the configuration's plugins.",
      );
    return { blobs: await this.#options.blobs(), owner: this.#ownerOf(project) };
  }
}

/** A snapshot that was begun so long ago and isn't done is its replica's, which has ended. */
const abandonedMs = 3_600_000;
/** How often a place is asked for while other replicas ask for it at the same moment. */
const maxAttempts = 6;
const maxPauseMs = 200;

interface Asked {
  readonly blobs: Blobs;
  readonly owner: string;
  readonly id: string;
}

/**
 * Places of each project's snapshots, counted over all replicas: a snapshot's first file, which its replica writes before it takes the
 * snapshot, has one.
 */
class SnapshotPlaces {
  readonly #maxPerProject: number;
  readonly #abandonedMs: number;
  /** By owner: the snapshots that this process writes now, whose first file may not be listed yet. */
  readonly #unfinished = new Map<string, Set<string>>();

  constructor({ maxPerProject, timeoutMs }: { readonly maxPerProject: number; readonly timeoutMs: number }) {
    this.#maxPerProject = maxPerProject;
    this.#abandonedMs = Math.max(abandonedMs, 2 * timeoutMs);
  }

  /**
   * Takes a place for a snapshot, until it is given back.
   * @param begin writes the snapshot's first file. @param withdraw removes it. @throws SnapshotFailed, StoreFailed
   */
  async take(asked: Asked, begin: () => Promise<void>, withdraw: () => Promise<void>): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const others = await this.#others(asked);
      if (this.#isFull(asked, others)) throw this.#full();
      this.#unfinished.set(asked.owner, new Set([...this.#own(asked), asked.id]));
      try {
        await begin();
        // A replica that wrote before this one's file was there is listed now; one that writes later finds that file.
        const seen = await this.#others(asked);
        if (!this.#isFull(asked, seen)) return;
      } catch (error) {
        this.giveBack(asked);
        throw error;
      }
      this.giveBack(asked);
      await withdraw();
      if (attempt === maxAttempts) throw this.#full();
      // Others may have withdrawn in the same moment.
      await sleep(Math.random() * maxPauseMs * attempt);
    }
  }

  /** It is there, or given up. */
  giveBack({ owner, id }: Pick<Asked, "owner" | "id">): void {
    const left = [...(this.#unfinished.get(owner) ?? [])].filter((one) => one !== id);
    if (left.length > 0) this.#unfinished.set(owner, new Set(left));
    else this.#unfinished.delete(owner);
  }

  #isFull(asked: Asked, listed: ReadonlySet<string>): boolean {
    const others = listed.union(this.#own(asked));
    others.delete(asked.id);
    return others.size >= this.#maxPerProject;
  }

  #own({ owner }: Asked): ReadonlySet<string> {
    return this.#unfinished.get(owner) ?? new Set();
  }

  async #others({ blobs, owner }: Asked): Promise<ReadonlySet<string>> {
    const since = Date.now() - this.#abandonedMs;
    const ids = new Set<string>();
    for await (const { name, at } of blobs.files(owner)) {
      const id = idIn(name, "manifest") ?? (at < since ? undefined : idIn(name, "state"));
      if (id !== undefined) ids.add(id);
    }
    return ids;
  }

  #full(): SnapshotFailed {
    return new SnapshotFailed(
      `The project has ${this.#maxPerProject} snapshots already: delete one (DELETE /snapshots/{snapshotId}), or raise workspace.maxSnapshotsPerProject of the server's configuration.`,
    );
  }
}
