import type { IncomingMessage } from "node:http";
import { inOffer, type Log, offerTitle, ofOffer, type Registry, stateFolder } from "@ambit/core";
import type { UpstreamProxy } from "@ambit/core/plugin";
import type { RecordedRuns } from "@ambit/durable";
import { operatorPolicy, whyForbidden } from "@ambit/egress";
import { exchange, openResponse } from "@ambit/egress/client";
import {
  KeptOutputs,
  type LocalEntry,
  type OpenedDownload,
  OutputsRetention,
  Snapshots,
  type signerOf,
  type WorkspaceSettings,
  Workspaces,
} from "@ambit/workspace";
import { type Blobs, type FileSealing, openedBlobs, sealedBlobs } from "@ambit/workspace/blobs";

/** Bytes of an answer of a forge. */
const maxApiBytes = 1_048_576;

/** Suspended sessions of one project, on all replicas. */
const maxSuspended = 1_000;

export interface KeptFilesOptions {
  readonly registry: Registry;
  readonly settings: WorkspaceSettings;
  readonly upstreamProxy: UpstreamProxy | undefined;
  readonly log: Log;
  /** Whether they are kept apart from other processes' files, and deleted when they are closed. */
  readonly temporary: boolean;
  /** Undefined where files are kept as they are. Rejects where the key can't be read. */
  readonly sealing: (() => Promise<FileSealing>) | undefined;
  /** Encrypts what belongs to a session besides its files, in any case. */
  readonly stateSealing: () => Promise<FileSealing>;
  /** What of this host comes into every new workspace after its sources. Default: nothing. */
  readonly local?: (() => readonly LocalEntry[]) | undefined;
  /** Signs commits. Undefined: they aren't signed. */
  readonly sign: ReturnType<typeof signerOf> | undefined;
}

/** The files of runs' outputs, in the place that a plugin offers. It is opened when it is first needed. */
export class KeptFiles {
  readonly workspaces: Workspaces;
  /** Copies of sessions. */
  readonly snapshots: Snapshots;
  /** Files of sessions whose server stopped, for their next runs. */
  readonly suspended: Snapshots;
  #opened: Promise<Blobs> | undefined;
  #retention: OutputsRetention | undefined;

  constructor(readonly options: KeptFilesOptions) {
    const { registry, settings, sign, stateSealing: sealing, upstreamProxy, local } = options;
    const addresses = operatorPolicy({ privateHosts: "refuse", allowedRanges: settings.allowedRanges });
    const guard = {
      whyClosed: (address: string, port: number) => whyForbidden([addresses], address, port),
      upstreamProxy,
    };
    const { maxEntries, maxSnapshotMiB, maxSnapshotsPerProject: maxPerProject } = settings;
    const folder = stateFolder("spool");
    const blobs = registry.blobs === undefined ? undefined : () => this.blobs();
    const limits = { maxEntries, maxBytes: maxSnapshotMiB * 1_048_576 };
    const common = { blobs, sealing, folder, limits };
    this.snapshots = new Snapshots({
      ...common,
      kind: "snapshots",
      maxPerProject,
      timeoutMs: settings.snapshotTimeoutMs,
      maxAgeMs: settings.snapshotMaxAgeMs,
    });
    this.suspended = new Snapshots({
      ...common,
      kind: "suspended",
      // Not more than all replicas keep: each has at most `limits.sessions`.
      maxPerProject: maxSuspended,
      timeoutMs: settings.suspendTimeoutMs,
      maxAgeMs: settings.suspendedMaxAgeMs,
    });
    const preparedFolder = settings.preparedFolder ?? stateFolder("prepared");
    this.workspaces = new Workspaces({
      settings,
      folder,
      preparedFolder,
      blobs,
      blobsTitle: registry.blobs && offerTitle(registry.blobs),
      snapshots: this.snapshots,
      whyForbidden: guard.whyClosed,
      // What ends with this process is of no use to the next one.
      suspended: options.temporary ? undefined : this.suspended,
      send: (request, signal) => exchange(request, guard, { maxBytes: maxApiBytes, signal }),
      openDownload: async (request, signal) => opened(await openResponse(request, guard, signal)),
      local,
      sign,
    });
  }

  get isOffered(): boolean {
    return this.options.registry.blobs !== undefined;
  }

  /** @throws Error where it can't be opened, or no plugin offers one */
  blobs(): Promise<Blobs> {
    this.#opened ??= this.#open().catch((error: unknown) => {
      // Perhaps somebody mends it.
      this.#opened = undefined;
      throw error;
    });
    return this.#opened;
  }

  /** Undefined for a run without outputs. @param owner the run's key */
  async of(owner: string): Promise<KeptOutputs | undefined> {
    return this.isOffered ? await KeptOutputs.of(owner, await this.blobs()) : undefined;
  }

  async delete(owner: string): Promise<void> {
    if (this.isOffered) await (await this.blobs()).delete(owner);
  }

  /** From now on, files are deleted with their runs. */
  retainWith({ store, options }: Pick<RecordedRuns, "store" | "options">): void {
    if (!this.isOffered) return;
    this.#retention = new OutputsRetention({
      blobs: () => this.blobs(),
      maxAgeMs: options.settings.maxAgeMs,
      existing: async (owners) => new Set((await store.heads(owners)).map(({ id }) => id)),
      snapshots: [this.snapshots, this.suspended],
      log: this.options.log,
    });
    this.#retention.start();
  }

  async close(): Promise<void> {
    await this.#retention?.close();
    const opened = await this.#opened?.catch(() => undefined);
    await opened?.close();
  }

  async #open(): Promise<Blobs> {
    const { registry, log, temporary, sealing } = this.options;
    const backend = registry.blobs;
    if (backend === undefined) throw new Error("no plugin offers a place for files");
    const seal = await sealing?.();
    const place: unknown = await inOffer(backend, () => backend.open({ log, temporary }));
    const opened = ofOffer(backend, openedBlobs(backend, place));
    return seal === undefined ? opened : sealedBlobs(opened, seal);
  }
}

function opened(response: IncomingMessage): OpenedDownload {
  const { statusCode: status = 0, headers } = response;
  const length = headers["content-length"];
  return {
    status,
    location: headers.location,
    size: length === undefined ? undefined : Number(length),
    content: response,
    close: () => void response.destroy(),
  };
}
