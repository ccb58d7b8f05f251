import { type Capability, capabilities } from "@ambit/core/contract";
import type {
  FileEntry,
  Hiding,
  Sandbox,
  SandboxBackend,
  SandboxContents,
  SandboxSpec,
} from "@ambit/core/plugin";
import { proofsOf } from "./capabilities.js";

export interface SandboxBehaviour {
  readonly name?: string;
  readonly claims?: readonly Capability[];
  readonly confinement?: Sandbox["confinement"];
  /** Hides every credential, with these in their place. */
  readonly placeholders?: Readonly<Record<string, string>>;
  /** Names the files of each sandbox for the next runner. Default: they end with it. */
  readonly remains?: string;
  /** Lets another runner have each sandbox. Default: none can. */
  readonly handover?: string;
  /** Runs before the sandbox is there: waits, throws, or never returns. */
  onOpen?(spec: SandboxSpec, signal: AbortSignal): Promise<void> | void;
  onClose?(): Promise<void> | void;
  onWriteFiles?(): Promise<void> | void;
  /** Default: nothing, and one process. */
  onContents?(): Promise<SandboxContents> | SandboxContents;
}

/** A sandbox in memory: it confines nothing, and counts what is opened and closed. */
export class FakeSandboxBackend implements SandboxBackend {
  readonly name: string;
  readonly site = "sandbox";
  readonly claims: readonly Capability[];
  readonly opensFolders = true;
  readonly specs: SandboxSpec[] = [];
  readonly files: FileEntry[] = [];
  opened = 0;
  /** How often `close` was asked for. */
  closed = 0;
  /** How often a sandbox was left to another runner. */
  left = 0;
  probes = 0;

  constructor(readonly behaviour: SandboxBehaviour = {}) {
    this.name = behaviour.name ?? "fake";
    this.claims = behaviour.claims ?? capabilities;
  }

  hides(): Hiding {
    return (
      this.behaviour.placeholders !== undefined || {
        reason: "the fake hides nothing",
        fix: "give it placeholders",
      }
    );
  }

  touches(): [] {
    return [];
  }

  gaps(): [] {
    return [];
  }

  async probe() {
    this.probes += 1;
    return proofsOf(this.claims);
  }

  async open(spec: SandboxSpec, scope: { readonly signal: AbortSignal }): Promise<Sandbox> {
    this.specs.push(spec);
    await this.behaviour.onOpen?.(spec, scope.signal);
    this.opened += 1;
    let isClosed = false;
    return {
      workspace: "/workspace",
      home: "/home",
      confinement: this.behaviour.confinement ?? "confined",
      evidence: { uid: 64_001 },
      ...(this.behaviour.placeholders === undefined ? {} : { placeholders: this.behaviour.placeholders }),
      ...(this.behaviour.remains === undefined ? {} : { remains: this.behaviour.remains }),
      ...this.#handover(),
      contents: async () => (await this.behaviour.onContents?.()) ?? { files: [], processes: 1 },
      spawn: () => Promise.reject(new Error("nothing is spawned here")),
      writeFiles: async (files) => {
        await this.behaviour.onWriteFiles?.();
        this.files.push(...files);
      },
      readFile: () => Promise.reject(new Error("there are no files here")),
      expose: () => Promise.reject(new Error("nothing is exposed here")),
      close: async () => {
        if (isClosed) return;
        isClosed = true;
        this.closed += 1;
        await this.behaviour.onClose?.();
      },
    };
  }

  #handover(): Pick<Sandbox, "handover" | "leave"> {
    const { handover } = this.behaviour;
    if (handover === undefined) return {};
    const leave = async () => {
      this.left += 1;
    };
    return { handover, leave };
  }
}
