import { expect, test } from "vitest";
import { limitVariables } from "../../src/boundary.js";

test.each([
  [{}, {}],
  [{ processes: 10, diskMb: 5 }, {}],
  [
    { cpus: 0.5 },
    {
      GOMAXPROCS: "1",
      CARGO_BUILD_JOBS: "1",
      CMAKE_BUILD_PARALLEL_LEVEL: "1",
      RAYON_NUM_THREADS: "1",
      OMP_NUM_THREADS: "1",
      PYTHON_CPU_COUNT: "1",
    },
  ],
  [{ cpus: 2.5 }, expect.objectContaining({ GOMAXPROCS: "3" })],
  [{ memoryMb: 512 }, { GOMEMLIMIT: "460MiB", NODE_OPTIONS: "--max-old-space-size=384" }],
  [{ memoryMb: 1 }, { GOMEMLIMIT: "1MiB", NODE_OPTIONS: "--max-old-space-size=1" }],
])("of %j are %j", (limits, variables) => {
  expect(limitVariables(limits)).toEqual(variables);
});
