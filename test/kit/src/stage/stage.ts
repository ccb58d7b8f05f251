import {
  type BoundaryOverrides,
  type DecoyProcess,
  type Decoys,
  demandFor,
  type Stage,
  startDecoyProcess,
} from "@ambit/attacks";
import type { ActorGap, Boundary, Capability, Sandbox, SandboxSpec, Scope } from "@ambit/core/plugin";
import { unprivilegedUser } from "../control/unprivileged-user.js";
import { KitScope } from "./kit-scope.js";
import { startRunnerProcess } from "./runner-process.js";
import { SandboxRecord } from "./sandbox-record.js";

export interface StageOptions {
  readonly capability: Capability;
  readonly claims: readonly Capability[];
  readonly decoys: Decoys;
  readonly runnerModule?: URL | undefined;
  readonly near?: Stage["near"] | undefined;
  open(spec: SandboxSpec, scope: Scope): Promise<Sandbox>;
  /** The parts of a boundary that the backend reports as gaps. Default: none. */
  readonly gaps?: ((boundary: Boundary) => readonly ActorGap[]) | undefined;
}

/** The backend refuses the boundary, as it reports. */
export class StageRefused extends Error {
  override readonly name = "StageRefused";
}

export interface OpenStage extends Stage {
  /** Why one of its sandboxes was lost; undefined while none was. */
  whyLost(): string | undefined;
  /** Closes the sandbox, its neighbours and the decoy process. */
  close(): Promise<void>;
}

let opened = 0;

/** A new name for a sandbox of the kit. */
export function freshId(): string {
  opened += 1;
  return `kit-${process.pid}-${opened}`;
}

/** Opens one sandbox with the smallest boundary that requires the capability. */
export async function openStage(options: StageOptions): Promise<OpenStage> {
  const { capability, claims, decoys } = options;
  const scope = new KitScope();
  const record = new SandboxRecord();
  let lost: string | undefined;
  const specFor = (overrides?: BoundaryOverrides): SandboxSpec => ({
    id: freshId(),
    ...demandFor(capability, claims, decoys, overrides),
    ...(capability === "secrets.hidden" && decoys.keys !== undefined
      ? { secrets: decoys.keys.credentials(decoys.secret) }
      : {}),
    requiredPaths: [],
    onDecision: (decision) => record.keep(decision),
    onFailure: ({ message }) => {
      lost ??= message;
    },
    log: record.log,
  });
  const open = async (spec: SandboxSpec) => {
    const sandbox = await options.open(spec, scope);
    scope.defer(() => sandbox.close());
    return sandbox;
  };
  const spec = specFor();
  const sandbox = await open(spec);
  let decoyProcess: Promise<DecoyProcess> | undefined;
  return {
    spec,
    sandbox,
    decoys,
    ...(options.near === undefined ? {} : { near: options.near }),
    recordedText: () => record.text,
    whyLost: () => lost,
    openAnother: async (overrides) => {
      const another = specFor(overrides);
      const [gap] = options.gaps?.(another.boundary) ?? [];
      try {
        return await open(another);
      } catch (cause) {
        throw gap === undefined ? cause : new StageRefused(`${gap.capability}: ${gap.reason}`, { cause });
      }
    },
    decoyProcess: () => {
      decoyProcess ??= startDecoyProcess(decoys.secret, userOf(sandbox), namespaceOf(sandbox)).then(
        (started) => {
          scope.defer(() => started.close());
          return started;
        },
      );
      return decoyProcess;
    },
    ...(options.runnerModule === undefined
      ? {}
      : { startRunner: startRunnerWith(options.runnerModule, () => specFor(), scope, decoys) }),
    close: () => scope.close(),
  };
}

function startRunnerWith(
  module: URL,
  specFor: () => SandboxSpec,
  scope: Scope,
  { folder }: Decoys,
): NonNullable<Stage["startRunner"]> {
  return async ({ argv, inheritedFile }) => {
    const { id, boundary, required } = specFor();
    const request = { module: module.href, id, boundary, required, argv };
    const runner = startRunnerProcess(request, { temporaryFolder: folder.path, inheritedFile });
    scope.defer(() => runner.kill());
    return runner;
  };
}

/** The host user of a sandbox's processes, as it reports itself: decoys of the same user are the easiest to reach. */
function userOf({ evidence }: Sandbox): { uid: number; gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const { uid } = evidence;
  return typeof uid === "number" ? { uid, gid: uid } : unprivilegedUser();
}

/** The user namespace of a control, for the decoys: the control reports it if it has a shared one. */
function namespaceOf({ evidence }: Sandbox): string | undefined {
  const { sharedUserNamespace } = evidence;
  return typeof sharedUserNamespace === "string" ? sharedUserNamespace : undefined;
}
