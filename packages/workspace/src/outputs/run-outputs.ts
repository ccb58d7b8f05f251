import { createHash } from "node:crypto";
import { isAmbitError, messageOf, OutputsFailed } from "@ambit/core";
import type { GitReceipt, GitSource, OutputsReceipt, OutputsRequest } from "@ambit/core/contract";
import type { Sandbox } from "@ambit/core/plugin";
import type { Blobs } from "../blobs.js";
import { type Collected, collect } from "../collect.js";
import type { SendToApi } from "../forge/api.js";
import { openPullRequest } from "../forge/pull-request.js";
import { pushChanges } from "../git/push.js";
import type { Sign } from "../git/signing.js";
import { stateOf } from "../inside/wish.js";
import { gitPatch, type PatchedFile } from "../patch/git-patch.js";
import type { WorkspaceSettings } from "../settings.js";
import { Spool } from "../spool.js";
import { blobNames, type OutputsManifest } from "./kept-outputs.js";
import { type Base, byPath, changeOf, fileOf, listed } from "./listed.js";

interface OutputsOptions {
  /** The owner of the blobs: the run's key. */
  readonly owner: string;
  readonly outputs: OutputsRequest;
  readonly settings: WorkspaceSettings;
  /** The folder for files on their way. */
  readonly folder: string;
  readonly blobs: () => Promise<Blobs>;
  /** The name of the place for files in errors. Default: `its place for files`. */
  readonly blobsTitle?: string | undefined;
  /** The repository that `outputs.git` is pushed to. */
  readonly repository?:
    | (Pick<GitSource, "url" | "into"> & {
        /** Sends requests to the API of its host. */
        readonly send: SendToApi;
        /** Undefined: its commits aren't signed. */
        readonly sign: Sign | undefined;
      })
    | undefined;
}

/** What leaves the workspace of one run. */
export class RunOutputs {
  readonly #options: OutputsOptions;
  #base: Base | undefined;
  #changes: readonly PatchedFile[] = [];

  constructor(options: OutputsOptions) {
    this.#options = options;
  }

  /** Takes what a patch compares with, once Ambit has filled the workspace. @throws OutputsFailed; the signal's reason */
  async started(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
    const { outputs, settings, folder } = this.#options;
    if (!outputs.patch) return;
    const spool = await Spool.open(folder);
    this.#base = { spool, files: new Map(), others: new Map() };
    const { files, omitted } = await this.#collect(sandbox, spool, signal, {
      include: [],
      known: [],
      maxFiles: settings.maxEntries,
      maxBytes: settings.maxBaseMiB * 1_048_576,
    });
    if (omitted.some(({ reason }) => reason === "too_large" || reason === "too_many")) {
      throw new OutputsFailed(
        `The workspace is larger than ${settings.maxBaseMiB} MiB at the run's start, so no patch can be made: leave outputs.patch out, or raise workspace.maxBaseMiB of the server's configuration.`,
      );
    }
    this.#base = {
      spool,
      files: new Map(files.map((file) => [file.path, file])),
      others: new Map(omitted.map((one) => [one.path, one])),
    };
  }

  /** Takes the files out and keeps them. @throws OutputsFailed; the signal's reason */
  async collect(sandbox: Sandbox, signal: AbortSignal): Promise<OutputsReceipt> {
    const { outputs, folder } = this.#options;
    const spool = this.#base?.spool ?? (await Spool.open(folder));
    try {
      const known = this.#base === undefined ? [] : knownOf(this.#base);
      const { include, maxFiles, maxBytes } = outputs;
      const collected = await this.#collect(sandbox, spool, signal, { include, known, maxFiles, maxBytes });
      return await this.#keep(collected, spool, signal);
    } finally {
      if (this.#base === undefined) await spool.close();
    }
  }

  /**
   * Pushes what changed, after `collect`. Undefined where nothing of the repository did.
   * @param from the commit that the workspace was at; undefined where that isn't known
   * @throws OutputsFailed, SandboxFailed; the signal's reason
   */
  async push(
    from: { readonly commit: string; readonly isEarlier: boolean } | undefined,
    open: () => Promise<Sandbox>,
    signal: AbortSignal,
  ): Promise<OutputsReceipt["git"]> {
    const { outputs, settings, repository } = this.#options;
    if (outputs.git === undefined || repository === undefined || this.#base === undefined) return undefined;
    if (from === undefined)
      throw new OutputsFailed(
        "outputs.git needs the commit that the workspace began with. An earlier run of the session changed it without pushing a commit, began it with other sources, or was on another replica: ask for outputs.git in each run, or use the patch.",
        { reason: "base_unknown" },
      );
    const below = repository.into === undefined ? "" : `${repository.into.replace(/\/+$/, "")}/`;
    const changes = this.#changes
      .filter(({ path }) => path.startsWith(below))
      .map((change) => ({ ...change, path: change.path.slice(below.length) }));
    if (changes.length === 0) return undefined;
    const late = AbortSignal.timeout(settings.sourcesTimeoutMs);
    const sandbox = await open();
    try {
      return await pushChanges({
        output: outputs.git,
        url: repository.url,
        base: from.commit,
        isContinued: from.isEarlier,
        changes,
        sandbox,
        spool: this.#base.spool,
        maxFileBytes: settings.maxSourceMiB * 1_048_576,
        signal: AbortSignal.any([signal, late]),
        at: Date.now(),
        sign: repository.sign,
        keep: (bundle) => this.#keepBundle(bundle),
      });
    } catch (error) {
      signal.throwIfAborted();
      if (!late.aborted) throw error;
      const message = `outputs.git couldn't be pushed within ${settings.sourcesTimeoutMs} ms: the run's patch is kept; raise workspace.sourcesTimeoutMs of the server's configuration.`;
      throw new OutputsFailed(message, { cause: error, reason: "timed_out" });
    } finally {
      await sandbox.close();
    }
  }

  /**
   * Opens the pull request of what was pushed. Undefined where none is asked for.
   * @throws OutputsFailed; the signal's reason
   */
  async openPullRequest(pushed: GitReceipt, signal: AbortSignal): Promise<GitReceipt["pullRequest"]> {
    const { outputs, repository } = this.#options;
    if (outputs.git === undefined || repository === undefined || !pushed.pushed) return undefined;
    return await openPullRequest(outputs.git, pushed, repository.send, signal);
  }

  async close(): Promise<void> {
    const base = this.#base;
    this.#base = undefined;
    await base?.spool.close();
  }

  async #collect(
    sandbox: Sandbox,
    spool: Spool,
    signal: AbortSignal,
    wish: Pick<Parameters<typeof collect>[1], "include" | "known" | "maxFiles" | "maxBytes">,
  ): Promise<Collected> {
    const { outputs, settings } = this.#options;
    const { maxEntries, outputsTimeoutMs } = settings;
    const late = AbortSignal.timeout(outputsTimeoutMs);
    const wholeWish = { ...wish, workspace: sandbox.workspace, patch: outputs.patch, maxEntries };
    try {
      return await collect(sandbox, wholeWish, spool, AbortSignal.any([signal, late]));
    } catch (error) {
      signal.throwIfAborted();
      if (!late.aborted) throw error;
      throw new OutputsFailed(
        `The workspace couldn't be read within ${outputsTimeoutMs} ms: raise workspace.outputsTimeoutMs of the server's configuration.`,
        { cause: error },
      );
    }
  }

  async #keep(collected: Collected, spool: Spool, signal: AbortSignal): Promise<OutputsReceipt> {
    const { outputs, owner } = this.#options;
    const { files: included, changes, complete, ...left } = listed(collected, this.#base);
    this.#changes = changes;
    const changed = new Set(changes.map(({ path }) => path));
    const keptFiles = collected.files.filter((file) => file.included || changed.has(file.path)).sort(byPath);
    const receipt: OutputsReceipt = { files: included.map(fileOf), ...left };
    try {
      const blobs = await this.#options.blobs();
      const files: OutputsManifest["files"] = [];
      for (const [index, file] of keptFiles.entries()) {
        signal.throwIfAborted();
        const name = blobNames.file(index);
        await blobs.put(owner, name, spool.read(file));
        files.push({ ...fileOf(file), name });
      }
      const patch = outputs.patch ? await this.#keepPatch(blobs, changes, spool, signal) : undefined;
      const manifest: OutputsManifest = { version: 1, createdAt: Date.now(), files, patch };
      await blobs.put(owner, blobNames.manifest, one(JSON.stringify(manifest)));
      if (patch === undefined) return receipt;
      return { ...receipt, patch: { ...patch, complete, changes: changes.map(changeOf) } };
    } catch (error) {
      signal.throwIfAborted();
      if (isAmbitError(error)) throw error;
      const { blobsTitle = "its place for files" } = this.#options;
      throw new OutputsFailed(`The run's files couldn't be kept: ${blobsTitle} failed.`, {
        cause: new Error(messageOf(error), { cause: error }),
      });
    }
  }

  async #keepPatch(
    blobs: Blobs,
    changes: readonly PatchedFile[],
    spool: Spool,
    signal: AbortSignal,
  ): Promise<{ readonly size: number; readonly sha256: string }> {
    const patch = async function* () {
      for await (const bytes of gitPatch(changes, spool)) {
        // It may take longer than the run may.
        signal.throwIfAborted();
        yield bytes;
      }
    };
    return await this.#keepCounted(blobs, blobNames.patch, patch());
  }

  async #keepBundle(bundle: AsyncIterable<Uint8Array>): Promise<GitReceipt["bundle"]> {
    const most = this.#options.settings.maxSourceMiB * 1_048_576;
    return await this.#keepCounted(await this.#options.blobs(), blobNames.bundle, atMost(bundle, most));
  }

  async #keepCounted(
    blobs: Blobs,
    name: string,
    content: AsyncIterable<Uint8Array>,
  ): Promise<{ readonly size: number; readonly sha256: string }> {
    const hash = createHash("sha256");
    let size = 0;
    const counted = async function* () {
      for await (const bytes of content) {
        hash.update(bytes);
        size += bytes.length;
        yield bytes;
      }
    };
    await blobs.put(this.#options.owner, name, counted());
    return { size, sha256: hash.digest("hex") };
  }
}

/** @throws OutputsFailed beyond the limit */
async function* atMost(content: AsyncIterable<Uint8Array>, max: number): AsyncGenerator<Uint8Array> {
  let size = 0;
  for await (const bytes of content) {
    size += bytes.length;
    if (size > max)
      throw new OutputsFailed(
        "outputs.git's commit is too large to be kept: change less, or raise workspace.maxSourceMiB of the server's configuration. The run's patch is kept.",
        { reason: "too_large" },
      );
    yield bytes;
  }
}

function knownOf({ files, others }: Base): (readonly [string, string])[] {
  return [
    ...[...files].map(([path, { sha256, executable }]) => [path, stateOf(sha256, executable)] as const),
    ...[...others].map(([path, { state }]) => [path, state] as const),
  ];
}

async function* one(text: string): AsyncGenerator<Buffer, void, undefined> {
  yield Buffer.from(text);
}
