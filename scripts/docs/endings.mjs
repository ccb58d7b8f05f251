/**
 * Writes the table of a session's endings into docs/reliability.md, as tests find them on each backend that runs here. Run after a build:
 * node scripts/docs/endings.mjs
 */
import { spawnSync } from "node:child_process";
import { exit } from "node:process";
import { fileURLToPath } from "node:url";

const { status } = spawnSync("npx", ["vitest", "run", "test/e2e/endings/endings.test.ts"], {
  cwd: fileURLToPath(new URL("../..", import.meta.url)),
  env: { ...process.env, AMBIT_WRITE_ENDINGS: "1" },
  stdio: "inherit",
});
exit(status ?? 1);
