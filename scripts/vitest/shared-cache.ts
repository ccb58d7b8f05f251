import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const variable = "AMBIT_TEST_CACHE";

/**
 * One cache folder for a test run in place of the tester's own: the programs and servers that tests start share
 * compiled code there, and the evidence of this host.
 */
export function setup(): (() => void) | undefined {
  if (process.env[variable] !== undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "ambit-test-cache-"));
  const { XDG_CACHE_HOME: testers } = process.env;
  process.env[variable] = folder;
  process.env.XDG_CACHE_HOME = folder;
  return () => {
    delete process.env[variable];
    if (testers === undefined) delete process.env.XDG_CACHE_HOME;
    else process.env.XDG_CACHE_HOME = testers;
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  };
}
