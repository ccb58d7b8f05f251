// needs: jail
import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { high, startRunner } from "../../support/runner.js";
import { closed, temporaryFolder } from "../../support/specs.js";

test("a descriptor that the runner itself inherited reaches no process, confined or not", async () => {
  const folder = await temporaryFolder();
  await chmod(folder, 0o711);
  await writeFile(join(folder, "secret"), "descriptor-secret");
  const extra = openSync(join(folder, "secret"), "r");
  onTestFinished(() => closeSync(extra));
  const look = "for fd in /proc/self/fd/*; do readlink $fd; done; cat /proc/$$/fd/40 2>/dev/null; echo ran";
  // The control: what is inherited can be read.
  const control = spawnSync(
    process.execPath,
    ["-e", `process.stdout.write(require("child_process").execSync(${JSON.stringify(look)}))`],
    {
      stdio: ["ignore", "pipe", "inherit", ...high(extra)],
      encoding: "utf8",
    },
  );
  expect(control.stdout).toContain("descriptor-secret");
  for (const boundary of [closed, undefined]) {
    const spec = boundary === undefined ? {} : { boundary };
    const config = { dataFolder: join(folder, "data"), unconfined: "prefer" };
    const runner = await startRunner(config, `seen=$(${look}); echo "$seen"; read _`, { extra, spec });
    expect(runner.evidence.confinement).toBe(boundary === undefined ? "unconfined" : "confined");
    expect(runner.said).toContain("ran");
    expect(runner.said).not.toContain("descriptor-secret");
    expect(runner.said).not.toContain(folder);
    await runner.kill();
  }
});
