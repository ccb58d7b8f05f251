import type { SecureContext } from "node:tls";
import type { Capability, Sandbox, SandboxSpec, Scope } from "@ambit/core/plugin";
import type { NodeInside } from "../inside/look.js";
import type { FixFor } from "../probe/findings.js";
import type { SeccompArchitecture, SyscallName } from "../system-calls/index.js";

/** Replacements for the host's own settings, for probes and tests. */
export interface SandboxOverrides {
  /** All addresses that a name leads to. Default: as this host resolves it. */
  readonly lookup?: ((name: string) => Promise<readonly string[]>) | undefined;
  /** Authorities in PEM of servers that credentials may be sent to. */
  readonly trusted?: readonly string[] | undefined;
}

export interface KernelInside {
  readonly machine: SeccompArchitecture;
  /** It is inside the sandbox, and answers system calls itself. It reports less about processes and mounts. */
  readonly isGvisor: boolean;
}

export interface ProbedSandbox extends Sandbox {
  /** The part of a sandbox's report that a probe needs, such as the bridge's `RemoteSandbox`. */
  readonly facts?: {
    /** Why processes inside see each other; undefined if they don't. */
    readonly whyShared?: string | undefined;
  };
}

/** An address inside a sandbox's reach. */
export interface ProbeTarget {
  readonly host: string;
  readonly port: number;
}

/** Absolute paths. One that the kernel doesn't have counts as covered. */
export interface KernelPaths {
  readonly covered: readonly string[];
  readonly readOnly: readonly string[];
}

/** A backend under probe. Node.js 18 or newer must be inside. */
export interface StandardProbe<Box extends ProbedSandbox = ProbedSandbox> {
  readonly claims: readonly Capability[];
  /** Opens a sandbox regardless of earlier findings about the backend. */
  open(spec: SandboxSpec, scope: Scope, options: SandboxOverrides): Promise<Box>;
  readonly node: NodeInside;
  /** `/bin/sh`, `head`, `tail`, `stat` and `sleep` are inside too: attempts on limits then start sooner. Default: false. */
  readonly hasShell?: boolean;
  /** The kernel inside, if it is known. Default: it is asked. */
  readonly kernel?: KernelInside;
  /**
   * Absolute paths inside that no process of a run may write to, in addition to the system's. The folder of each may be
   * mounted writable, for root. Default: none.
   */
  readonly closedPaths?: readonly string[];
  /** Files and folders of this host that no process of a run may read or list. Default: `/etc/shadow`. */
  readonly hiddenPaths?: readonly string[];
  /** Absolute paths below a hidden path that the backend shows on purpose. Folders on the way to one hold nothing else. Default: none. */
  readonly shownPaths?: readonly string[];
  /**
   * The address at which a sandbox without limits reaches this host, if it has this host's network: the decoys listen only there.
   * Default: every address of this host, and a sandbox's router.
   */
  readonly reachedAt?: "127.0.0.1";
  /** Variables that the backend gives every process, besides `HOME`, `PATH` and `TMPDIR`. Default: none. */
  readonly variables?: readonly string[];
  /** Folders of scratch in addition to `/tmp`, `/var/tmp`, `/run`, `/dev/shm` and the home. Default: none. */
  readonly scratch?: readonly string[];
  /**
   * The platform mounts scratch without `nosuid` and `nodev`, and no process inside may change that: no process of a run gains
   * privileges by a file or makes a device, which `process.contained` shows. Default: false.
   */
  readonly hasPlainScratch?: boolean;
  /**
   * Linux capabilities, without `CAP_`, that the backend's own programs inside need, so that the run's processes have them
   * in their bounding set. Default: none. Processes of a run never hold one.
   */
  readonly bounding?: readonly string[];
  /** System calls that its filter refuses, in addition to those that no namespace separates. Default: none. */
  readonly refusedCalls?: readonly SyscallName[];
  /** The kernel's tables that something else is mounted over, and its settings that are mounted read-only. */
  readonly kernelPaths?: KernelPaths;
  /**
   * Addresses beyond this host that a sandbox without limits reaches. They are needed where limited sandboxes keep a network
   * link, which a policy closes; without any, a link other than `lo` refutes `network.*`.
   */
  readonly beyond?: readonly ProbeTarget[];
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
