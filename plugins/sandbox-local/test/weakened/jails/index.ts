import { closeSync, existsSync, openSync, readdirSync } from "node:fs";
import { chmod, mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type {
  Capability,
  Evidence,
  Finding,
  NetworkBoundary,
  Sandbox,
  SandboxSpec,
} from "@ambit/core/plugin";
import type { Lookup } from "@ambit/egress/proxy";
import { claims } from "../../../dist/claims.js";
import type { LocalConfig } from "../../../dist/config.js";
import type { CommandLine } from "../../../dist/confined/arguments.js";
import { asPlace, WorkspaceRules } from "../../../dist/confined/files/workspace-rules.js";
import type { SessionParts } from "../../../dist/confined/jail.js";
import { hostShell, type JailSetup, makeJailSetup } from "../../../dist/confined/jail-setup.js";
import type { ConfinedSandbox, SessionOptions, SessionOverrides } from "../../../dist/confined/session.js";
import { openConfined, wholeParts } from "../../../dist/confined/session.js";
import {
  claimRunnerFolder,
  openRunner,
  type RunnerFolder,
  reap,
  writeReadable,
} from "../../../dist/folders/data-folder.js";
import { leaseUserId, type UserIdLease } from "../../../dist/identity/user-ids.js";
import { probeConfinement, trialsOf } from "../../../dist/probe/probe.js";
import { systemCalls } from "../../../dist/probe/system-calls.js";
import type { LocalTrial } from "../../../dist/probe/trial.js";
import { weakenedArguments } from "./arguments.ts";
import { weakenedBoundary } from "./boundary.ts";
import { weakenedChecks } from "./checks.ts";
import { weakenedEntrance } from "./entrance.ts";
import { LinkedFiles } from "./linked-files.ts";
import type { JailDecoys, RemovableMechanism } from "./mechanisms.ts";
import { type PartProbe, probeInTurn } from "./part-probe.ts";
import { withoutPart } from "./parts.ts";
import { endRelays } from "./relays.ts";
import { openUserNamespace } from "./user-namespace.ts";

export { type FilterPart, filterParts } from "./filters.ts";
export { type JailDecoys, type RemovableMechanism, removableMechanisms, withoutFor } from "./mechanisms.ts";
export type { PartProbe } from "./part-probe.ts";
export { type JailPart, jailParts } from "./parts.ts";

/** What is removed from every jail in addition to the mechanisms: one part of it, for the mutation run. */
export interface JailChange {
  /** Name of a part of bubblewrap's command line; a jail without that part stays as it is. */
  readonly part?: string;
  /** A system call filter that replaces the whole one. */
  readonly filter?: Buffer;
  /** Also opens a jail that differs from the plan. Default: refuses it as usual. */
  readonly isOpenedAnyway?: boolean;
  /** Keeps the runner's own user if that is root. */
  readonly keepsRoot?: boolean;
  /** Called with the command lines of every jail, before anything is removed. */
  readonly onPlanned?: (planned: readonly CommandLine[]) => void;
}

/** What the local sandbox that these are compared with was made with. */
export interface LocalSetup {
  readonly config: LocalConfig;
  readonly dataFolder: string;
  readonly lookup?: Lookup | undefined;
}

/**
 * Jails of the local sandbox with named mechanisms removed, for the controls of the conformance kit, which run nothing but
 * its own bounded attacks on decoys. Composed of the built plugin's own parts: the plugin has no switch for it.
 */
export class WeakenedSandboxes {
  readonly #setup: LocalSetup;
  readonly #runners = new Map<boolean, Promise<Runner>>();
  #oneForAll: Promise<UserIdLease> | undefined;

  constructor(setup: LocalSetup) {
    this.#setup = setup;
  }

  /** The configuration of the sandbox that these are compared with. */
  get config(): LocalSetup["config"] {
    return this.#setup.config;
  }

  /** What the complete sandbox enforces. */
  get claims(): readonly Capability[] {
    return claims;
  }

  /**
   * Opens a confined sandbox without the mechanisms; all others are unchanged.
   *
   * @param listed an allowlist of decoys only, if the run's own doesn't apply.
   * @throws SandboxFailed when a jail can't be opened; nothing runs unconfined instead.
   */
  async open(
    spec: SandboxSpec,
    without: readonly RemovableMechanism[],
    decoys: JailDecoys,
    listed: NetworkBoundary,
    change: JailChange = {},
    options: Pick<SessionOverrides, "lookup"> = {},
  ): Promise<Sandbox> {
    return this.#open(spec, without, decoys, listed, change, options);
  }

  /**
   * What the sandbox's own probe finds in jails without the parts that enforce most capabilities, up to the first trial
   * that proves nothing.
   */
  async probe(change: JailChange, signal: AbortSignal): Promise<PartProbe> {
    return probeInTurn(trialsOf(this.#setup.config, this.#setup.dataFolder), (trial) =>
      this.#probe(change, signal, [trial]),
    );
  }

  /** The same for system calls only, in one jail. */
  async probeCalls(change: JailChange, signal: AbortSignal): Promise<readonly Finding[]> {
    const findings = await this.#probe(change, signal, [systemCalls], { isTried: false });
    return findings.filter(({ capability }) => systemCalls.shows.some((shown) => shown === capability));
  }

  async #probe(
    change: JailChange,
    signal: AbortSignal,
    trials: readonly LocalTrial[],
    more: SessionOverrides = {},
  ): Promise<readonly Finding[]> {
    const nothing = { folders: [], environment: {} };
    return probeConfinement(
      (spec, options) =>
        this.#open(spec, [], nothing, spec.boundary.network, change, { ...options, ...more }),
      signal,
      trials,
    );
  }

  async #open(
    spec: SandboxSpec,
    without: readonly RemovableMechanism[],
    decoys: JailDecoys,
    listed: NetworkBoundary,
    change: JailChange,
    { lookup = this.#setup.lookup, ...options }: SessionOverrides = {},
  ): Promise<ConfinedSandbox> {
    const { folder, jailSetup } = await this.#ownRunner(without);
    const { config, dataFolder } = this.#setup;
    const boundary = weakenedBoundary(spec.boundary, without, listed);
    const weakened = await this.#parts(spec.id, without, decoys, change, { folder, jailSetup });
    return openConfined({
      spec: { ...spec, boundary, required: [] },
      config: without.includes("path rules") ? { ...config, protectedPaths: [] } : config,
      dataFolder,
      runner: folder,
      lookup,
      ...options,
      ...weakened,
    });
  }

  async #parts(
    id: string,
    without: readonly RemovableMechanism[],
    decoys: JailDecoys,
    change: JailChange,
    { folder, jailSetup }: Runner,
  ): Promise<Weakened> {
    const lacks = (mechanism: RemovableMechanism) => without.includes(mechanism);
    const scratch = lacks("private scratch") ? join(folder.path, `scratch-${id}`) : undefined;
    if (scratch !== undefined) {
      await mkdir(scratch);
      await chmod(scratch, 0o1777);
    }
    const lease = change.keepsRoot === true ? root : await this.#lease(without);
    const filter = change.filter === undefined ? undefined : join(folder.path, `filter-${id}.bpf`);
    if (filter !== undefined && change.filter !== undefined) await writeReadable(filter, change.filter);
    const namespace = lacks("user namespace") ? await openUserNamespace(lease) : undefined;
    const complete: SessionParts["complete"] = (plan, { shown, give, defer }) => {
      change.onPlanned?.(plan.commandLines);
      const userNamespace = namespace === undefined ? undefined : give(jailSetup.devNull);
      const mounted = (lacks("second bubblewrap") ? shown : []).map((path) => {
        const place = openSync(path, asPlace);
        defer(() => closeSync(place));
        return give(place);
      });
      const sessions = lacks("session separation") ? workspacesIn(folder.path) : [];
      const rewriting = { without, decoys, scratch, sessions, userNamespace, mounted };
      const lines = weakenedArguments(plan.commandLines, rewriting);
      const { part } = change;
      return {
        commandLines: part === undefined ? lines : lines.map((line) => withoutPart(line, part)),
        // Opened by the session's user, over the descriptor number that was reserved for it. Debian's sh takes no number of
        // two digits.
        launcher:
          namespace === undefined
            ? []
            : ["/bin/bash", "-c", `exec ${userNamespace}<"$1"; shift; exec "$@"`, "sh", namespace.path],
        inheritable: lacks("closed descriptors") ? [] : plan.inheritable,
        expected: {
          shared: [
            ...plan.expected.shared,
            ...(lacks("ipc namespace") ? (["ipc"] as const) : []),
            ...(lacks("pid namespace") ? (["pid"] as const) : []),
          ],
          seccomp: lacks("system call filter") ? undefined : plan.expected.seccomp,
        },
      };
    };
    return {
      jailSetup: {
        ...jailSetup,
        ...(filter === undefined ? {} : { seccompFile: filter }),
        ...(lacks("guard of the first process") ? { shell: hostShell } : {}),
      },
      parts: {
        ...wholeParts,
        complete,
        egressChecks: weakenedChecks(without),
        enter: weakenedEntrance(without),
        refuse: (difference, of) => {
          const isExpected = of === "first process" && lacks("guard of the first process");
          if (!isExpected && change.isOpenedAnyway !== true) throw difference;
        },
        ...(lease === undefined ? {} : { lease: () => Promise.resolve(lease) }),
        ...(lacks("rules for all jails that live")
          ? { rules: (asked) => ({ hold: (role) => new WorkspaceRules(asked).hold(role) }) }
          : {}),
        ...(lacks("no-follow file access")
          ? { files: (places, owner) => new LinkedFiles(places, owner, decoys.folders) }
          : {}),
      },
      evidence: namespace === undefined ? {} : { sharedUserNamespace: namespace.path },
      onClose: async () => {
        await namespace?.close();
        if (lacks("pid namespace")) await endRelays(id);
        for (const path of [scratch, filter]) {
          if (path !== undefined) await rm(path, { recursive: true, force: true });
        }
      },
    };
  }

  /** A user id that is known before the session opens; undefined if the session reserves its own. */
  async #lease(without: readonly RemovableMechanism[]): Promise<UserIdLease | undefined> {
    if (process.getuid?.() !== 0) return undefined;
    const { userIds } = this.#setup.config;
    if (without.includes("session separation")) {
      this.#oneForAll ??= leaseUserId(userIds, userIds.records);
      // Freed when this process ends: no session knows that it is the last one.
      return { ...(await this.#oneForAll), release: () => Promise.resolve() };
    }
    return without.includes("user namespace") ? leaseUserId(userIds, userIds.records) : undefined;
  }

  async #ownRunner(without: readonly RemovableMechanism[]): Promise<Runner> {
    const isWatched = !without.includes("exit with the runner");
    const known = this.#runners.get(isWatched);
    if (known !== undefined) return known;
    const { dataFolder } = this.#setup;
    const runner = (isWatched ? openRunner(dataFolder, 0) : openUnwatched(dataFolder)).then(
      async (folder) => ({
        folder,
        jailSetup: await makeJailSetup(folder.path),
      }),
    );
    this.#runners.set(isWatched, runner);
    return runner;
  }
}

/** A session's composition, and what it adds to the evidence. */
interface Weakened extends Required<Pick<SessionOptions, "jailSetup" | "parts" | "onClose">> {
  readonly evidence: Evidence;
}

interface Runner {
  readonly folder: RunnerFolder;
  readonly jailSetup: JailSetup;
}

async function openUnwatched(dataFolder: string): Promise<RunnerFolder> {
  const runner = await claimRunnerFolder(dataFolder);
  await reap(dataFolder, runner.trash, 0);
  return runner;
}

/** Not reserved: no other session has to be kept from it. */
const root: UserIdLease = { uid: 0, gid: 0, release: () => Promise.resolve() };

function workspacesIn(runnerFolder: string): readonly string[] {
  return readdirSync(runnerFolder)
    .map((name) => join(runnerFolder, name, "workspace"))
    .filter((path) => existsSync(path));
}
