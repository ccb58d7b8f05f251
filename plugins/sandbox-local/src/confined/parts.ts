import type { Duplex } from "node:stream";
import {
  type FileOwner,
  type PathMapping,
  SafeSessionFiles,
  type SessionFiles,
} from "@ambit/backend-kit/safe-fs";
import type { SandboxFailed, SandboxSpec } from "@ambit/core/plugin";
import type { EgressChecks } from "@ambit/egress/proxy";
import type { LocalConfig } from "../config.js";
import type { JailInbound } from "../expose/inbound.js";
import { leaseUserId, type UserIdLease } from "../identity/user-ids.js";
import { enterJails } from "./enter.js";
import type { Expected } from "./evidence.js";
import { type RulesOptions, WorkspaceRules } from "./files/workspace-rules.js";
import type { CommandLine } from "./launch/arguments.js";

/** How a jail is launched, as it follows from its session. */
export interface JailLaunchPlan {
  /** Of each bubblewrap. */
  readonly commandLines: readonly CommandLine[];
  /** The program that starts the first one, with its arguments; empty for none. */
  readonly launcher: readonly string[];
  /** Descriptors that the runner inherited, which are closed. */
  readonly inheritable: readonly number[];
  readonly expected: Omit<Expected, "uid">;
}

/** What a launch can be given besides its plan. */
export interface LaunchResources {
  /** On the host: what is mounted onto itself in the workspace. */
  readonly shown: readonly string[];
  /** Gives the launch an open descriptor. @returns its number there. */
  give(descriptor: number): number;
  /** Called when the launch has ended. */
  defer(close: () => void): void;
}

/**
 * What a session and its jails are composed of. The sandbox has one composition, `wholeParts`, and nothing configures another.
 * The controls of the conformance kit compose jails that lack one part.
 */
export interface SessionParts {
  /** Reserves the session's own host user. */
  lease(ids: LocalConfig["userIds"]): Promise<UserIdLease>;
  /** Determines what jails mount in the workspace. */
  rules(options: RulesOptions): Pick<WorkspaceRules, "hold">;
  /** Reads and writes the session's files for the runner. */
  files(mappings: readonly PathMapping[], owner: FileOwner | undefined): SessionFiles;
  /** Undefined: the proxy's own. */
  readonly egressChecks: EgressChecks | undefined;
  /** Connects the runner to a port inside. */
  enter(spec: SandboxSpec, jails: readonly JailInbound[], port: number): Promise<Duplex>;
  complete(plan: JailLaunchPlan, resources: LaunchResources): JailLaunchPlan;
  /** @throws SandboxFailed when a jail that isn't as planned must not start anything. */
  refuse(difference: SandboxFailed, of: "jail" | "first process"): void;
}

export const wholeParts: SessionParts = {
  lease: (ids) => leaseUserId(ids, ids.records),
  rules: (options) => new WorkspaceRules(options),
  files: (mappings, owner) => new SafeSessionFiles(mappings, owner),
  egressChecks: undefined,
  enter: enterJails,
  complete: (plan) => plan,
  refuse: (difference) => {
    throw difference;
  },
};
