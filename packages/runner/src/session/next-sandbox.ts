import { type AcceptedPlan, requiredPathsOf } from "@ambit/core";
import type { FilesystemBoundary } from "@ambit/core/plugin";
import { lostBecause } from "./lost-files.js";

/** A session whose sandbox is there, as the next run of its name finds it. */
export interface PresentSandbox {
  /** Why no run may have it any more. */
  readonly failure: { readonly message: string } | undefined;
  /** Of the plan that it was opened for. */
  readonly fingerprint: string;
  readonly backend: string;
  readonly secrets: {
    readonly all: ReadonlySet<string>;
    mayRemember(secrets: readonly string[]): boolean;
  };
  readonly hadVisibleCredentials: boolean;
  /** The host's files that it shows to the agent. */
  readonly paths: ReadonlySet<string>;
}

/** What the next run needs. */
export interface NeededSandbox {
  readonly fingerprint: string;
  readonly backend: string;
  readonly filesystem: FilesystemBoundary["mode"];
  /** Every credential of its request. */
  readonly secrets: readonly string[];
  /** The host's files that its agent doesn't start without: others than before, where its program was replaced. */
  readonly paths: readonly string[];
}

/**
 * - `reuse`: the run gets the sandbox.
 * - `move`: a new sandbox gets its files.
 * - `refuse`: a new sandbox couldn't get them, so the run fails, and the session stays as it is.
 * - `lost`: there is nothing that could be moved.
 */
export type NextSandbox =
  | { readonly how: "reuse" }
  | {
      readonly how: "move";
      /** Why only the workspace is moved. Undefined: the home is moved too, with the agent's conversation. */
      readonly withoutHome: string | undefined;
    }
  | { readonly how: "refuse"; readonly why: string }
  | { readonly how: "lost"; readonly why: string };

/** Decides what becomes of a session's sandbox. Pure. */
export function nextSandbox(present: PresentSandbox, needed: NeededSandbox): NextSandbox {
  if (present.failure !== undefined) return { how: "lost", why: lostBecause.failed(present.failure) };
  if (!present.secrets.mayRemember(needed.secrets))
    return { how: "lost", why: "its runs have had more credentials than are kept apart" };
  const showsProgram = needed.paths.every((path) => present.paths.has(path));
  if (present.fingerprint === needed.fingerprint && showsProgram) return { how: "reuse" };
  if (needed.filesystem === "readonly" || needed.filesystem === "off")
    return { how: "refuse", why: unwritable(needed.filesystem) };
  return { how: "move", withoutHome: whyWithoutHome(present, needed) };
}

export function unwritable(filesystem: NeededSandbox["filesystem"]): string {
  return `sandboxPermission.filesystem is "${filesystem}", so its files can't be written there`;
}

/** No sandbox gets a copy of a credential that its own request doesn't have. Pure. */
export function whyWithoutHome(
  present: Pick<PresentSandbox, "backend" | "fingerprint" | "hadVisibleCredentials"> & {
    readonly secrets: Pick<PresentSandbox["secrets"], "all">;
  },
  needed: Pick<NeededSandbox, "backend" | "fingerprint" | "secrets">,
): string | undefined {
  if (present.fingerprint === needed.fingerprint) return undefined;
  if (present.backend !== needed.backend) return `it was made in a sandbox on ${present.backend}`;
  if (present.hadVisibleCredentials && !present.secrets.all.isSubsetOf(new Set(needed.secrets)))
    return "an earlier run's agent could read credentials there that this request doesn't have";
  return undefined;
}

/** What a plan needs of its session's sandbox. */
export function neededBy(plan: AcceptedPlan, fingerprint: string, secrets: readonly string[]): NeededSandbox {
  return {
    fingerprint,
    backend: plan.sandbox.actor.name,
    filesystem: plan.boundary.filesystem.mode,
    secrets,
    paths: requiredPathsOf(plan.harness.actor, plan.sandbox.actor).flatMap(({ path, isOptional }) =>
      isOptional === true ? [] : [path],
    ),
  };
}
