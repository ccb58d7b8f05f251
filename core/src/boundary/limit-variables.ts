import type { ResourceLimits } from "./boundary.js";

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
