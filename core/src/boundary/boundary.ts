import type { filesystemModes, networkModes, SandboxPermission } from "../contract/index.js";

/** A name that the run may connect to: `example.com`, or `*.example.com` for every name below it. */
export interface HostRule {
  readonly kind: "host";
  /** Canonical: lower case, IDNA, no trailing dot, without the `*.`. */
  readonly name: string;
  readonly subdomains: boolean;
  /** Absent: every port. */
  readonly port?: number;
}

/** Addresses that the run may connect to. A single address is a range with a full prefix. */
export interface RangeRule {
  readonly kind: "range";
  /** Canonical CIDR: `10.0.0.0/8`, `2001:db8::/32`. */
  readonly cidr: string;
  readonly family: 4 | 6;
  readonly port?: number;
}

export type NetworkRule = HostRule | RangeRule;

export interface NetworkBoundary {
  /** Also `off` for an empty allowlist. */
  readonly mode: (typeof networkModes)[number];
  /** Not empty exactly when `mode` is `allowlist`. */
  readonly rules: readonly NetworkRule[];
}

export interface FilesystemBoundary {
  readonly mode: (typeof filesystemModes)[number];
  /** Paths relative to the workspace. */
  readonly readable: readonly string[];
  readonly writable: readonly string[];
  readonly denied: readonly string[];
}

export type ResourceLimits = NonNullable<SandboxPermission["resources"]>;

/** What the request lets the run touch, with shorthands resolved and every entry canonical. */
export interface Boundary {
  readonly network: NetworkBoundary;
  readonly filesystem: FilesystemBoundary;
  readonly resources: ResourceLimits;
  readonly secrets: "visible" | "hidden";
  /** The only ports inside that a connection from the runner may reach. Never empty. Absent: none. */
  readonly inbound?: readonly number[];
  readonly enforcement: "strict" | "best_effort";
}

/** Whether anything is restricted. If not, a sandbox has nothing to enforce. */
export function isRestricted(boundary: Boundary): boolean {
  return (
    boundary.network.mode !== "on" ||
    boundary.filesystem.mode !== "on" ||
    Object.values(boundary.resources).some((limit) => limit !== undefined) ||
    boundary.secrets === "hidden" ||
    boundary.inbound !== undefined
  );
}

/**
 * Variables that tell common tools the limits of a boundary. Inside a sandbox they see the whole host's processors and memory,
 * start as many workers, and are then slowed or killed. Pure.
 *
 * | limit | variables |
 * |---|---|
 * | `cpus`, rounded up | `GOMAXPROCS` (Go), `CARGO_BUILD_JOBS` (Cargo), `CMAKE_BUILD_PARALLEL_LEVEL` (CMake), `RAYON_NUM_THREADS` (Rayon), `OMP_NUM_THREADS` (OpenMP, NumPy, nproc), `PYTHON_CPU_COUNT` (Python) |
 * | `memoryMb` | `GOMEMLIMIT` (Go): nine tenths; `NODE_OPTIONS=--max-old-space-size` (Node): three quarters |
 *
 * The JVM has none that it reads without printing so on stderr.
 */
export function limitVariables({ cpus, memoryMb }: ResourceLimits): Readonly<Record<string, string>> {
  const jobs = cpus === undefined ? undefined : String(Math.max(1, Math.ceil(cpus)));
  return {
    ...(jobs === undefined
      ? {}
      : {
          GOMAXPROCS: jobs,
          CARGO_BUILD_JOBS: jobs,
          CMAKE_BUILD_PARALLEL_LEVEL: jobs,
          RAYON_NUM_THREADS: jobs,
          OMP_NUM_THREADS: jobs,
          PYTHON_CPU_COUNT: jobs,
        }),
    ...(memoryMb === undefined
      ? {}
      : {
          GOMEMLIMIT: `${Math.max(1, Math.floor(memoryMb * 0.9))}MiB`,
          NODE_OPTIONS: `--max-old-space-size=${Math.max(1, Math.floor(memoryMb * 0.75))}`,
        }),
  };
}
