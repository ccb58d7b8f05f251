import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // The kit starts processes and servers, which takes longer on a busy machine.
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
