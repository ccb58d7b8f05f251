import type { SecureContext } from "node:tls";
import type { Capability, Sandbox, SandboxSpec, Scope } from "@ambit/core/plugin";
import type { FixFor } from "../probe/findings.js";

/** Replacements for the host's own settings, for probes and tests. */
export interface OpenOptions {
  /** All addresses that a name leads to. Default: as this host resolves it. */
  readonly lookup?: ((name: string) => Promise<readonly string[]>) | undefined;
  /** Authorities in PEM of servers that credentials may be sent to. */
  readonly trusted?: readonly string[] | undefined;
}

export interface ProbedSandbox extends Sandbox {
  /** The part of a sandbox's report that a probe needs, such as the bridge's `RemoteSandbox`. */
  readonly facts?: {
    /** Why processes inside see each other; undefined if they don't. */
    readonly whyShared?: string | undefined;
  };
}

/** A backend under probe. Node.js 18 or newer must be inside. */
export interface StandardProbe {
  readonly claims: readonly Capability[];
  /** Opens a sandbox regardless of earlier findings about the backend. */
  open(spec: SandboxSpec, scope: Scope, options: OpenOptions): Promise<ProbedSandbox>;
  /** Node.js inside: a name on the image's `PATH`, or a path. */
  readonly node: string;
  /** Absolute paths inside that no process of a run may write to, in addition to the system's. Default: none. */
  readonly closedPaths?: readonly string[];
  /** Makes a server's certificates, for `secrets.hidden`: `makeAuthority` of @ambit/egress. */
  readonly makeAuthority?: () => Promise<{
    /** PEM. */
    readonly certificate: string;
    contextFor(name: string): Promise<SecureContext>;
  }>;
  /** The fix for processes that see each other. */
  readonly perToolFix?: string;
  readonly fixFor: FixFor;
}
