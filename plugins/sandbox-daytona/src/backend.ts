import { refuseBeyond } from "@ambit/backend-kit";
import {
  type ActorGap,
  type Boundary,
  type Capability,
  type Domain,
  domains,
  type Finding,
  type HiddenCredential,
  type Hiding,
  type Sandbox,
  type SandboxBackend,
  type SandboxLayers,
  type SandboxSpec,
  type SandboxTakeover,
  type Scope,
} from "@ambit/core/plugin";
import { Account } from "./account.js";
import { claimsOf, limitsOf } from "./claims.js";
import type { DaytonaConfig } from "./config.js";
import { takesSecret } from "./limits.js";

/** Sandboxes on Daytona, each reached over the bridge. */
export class DaytonaSandbox implements SandboxBackend {
  readonly name = "daytona";
  readonly site = "sandbox";
  readonly rootfs = "image";
  readonly image: string | undefined;
  readonly claims: readonly Capability[];
  readonly layers: SandboxLayers;
  readonly #account: Account;

  constructor(config: DaytonaConfig) {
    this.image = config.image;
    this.claims = claimsOf(config);
    this.#account = new Account(config);
    this.layers = this.#account.layers;
  }

  touches(): readonly Domain[] {
    return domains;
  }

  gaps(boundary: Boundary): readonly ActorGap[] {
    return limitsOf(boundary, this.#account.config);
  }

  hides(credential: HiddenCredential, boundary: Boundary): Hiding {
    return takesSecret(credential, boundary.network);
  }

  /** @param claims default: all. Tests ask for those that a change concerns. */
  async probe(signal: AbortSignal, claims: readonly Capability[] = this.claims): Promise<readonly Finding[]> {
    const key = this.#account.findKey();
    if (key === undefined) return this.#withoutKey();
    const { probeDaytona } = await import("./canary/canary.js");
    return probeDaytona(this.#account, key, signal, claims);
  }

  async open(spec: SandboxSpec, scope: Scope): Promise<Sandbox> {
    const gaps = this.gaps(spec.boundary);
    refuseBeyond({ sandbox: "The Daytona sandbox", claims: this.claims, gaps }, spec);
    // The platform's SDK and the bridge are loaded with the first sandbox or probe, so that a server starts without
    // them.
    const { openSandbox } = await import("./open/open.js");
    this.#account.reaper.reapInBackground(spec.log);
    return this.#opening(scope, () => openSandbox(this.#account, spec, scope));
  }

  async #opening(scope: Scope, open: () => Promise<Sandbox>): Promise<Sandbox> {
    const key = this.#account.key();
    const { isContradiction } = await import("./open/start-machine.js");
    try {
      return await open();
    } catch (error) {
      if (isContradiction(error)) {
        const { FindingStore } = await import("./canary/canary.js");
        await new FindingStore(this.#account).forget(key);
      }
      if (scope.signal.aborted) throw error;
      const { asSandboxFailed } = await import("./platform/failure.js");
      throw asSandboxFailed(error, "opening a sandbox");
    }
  }

  readonly takeover: SandboxTakeover = {
    takeOver: async (spec, handover, scope) => {
      const gaps = this.gaps(spec.boundary);
      refuseBeyond({ sandbox: "The Daytona sandbox", claims: this.claims, gaps }, spec);
      const { takeOverSandbox } = await import("./open/take-over.js");
      this.#account.reaper.reapInBackground(spec.log);
      return this.#opening(scope, () => takeOverSandbox(this.#account, spec, handover, scope));
    },
    discard: async (spec, handover) => {
      const { discardSandbox } = await import("./open/take-over.js");
      await discardSandbox(this.#account, spec, handover);
    },
  };

  #withoutKey(): readonly Finding[] {
    const [reason, fix] = ["no API key for Daytona is set", this.#account.keyInstructions()];
    return this.claims.map((capability) => ({ capability, proven: false, reason, fix }));
  }
}
