// needs: jail
import { chmod, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findBubblewrap, inspectBubblewrap, warningOf } from "../../../src/confined/jail-setup.js";
import { busy, confinedBackend, openConfined, temporaryFolder } from "../../support/specs.js";

/** A program with bubblewrap's name that runs `script` when it isn't asked for its version. */
async function standIn(script: string): Promise<{ program: string; folder: string }> {
  const folder = await temporaryFolder();
  const program = join(folder, "bwrap");
  const version = '[ "$1" = --version ] && { echo bubblewrap 0.12.1; exit; }';
  await writeFile(program, `#!/bin/sh\n${version}\n${script}\n`);
  await chmod(program, 0o755);
  return { program, folder };
}

test("a hole of bubblewrap is named if it works here, whatever the version says", async () => {
  // $3 is the folder with the link, to a folder beside it.
  const open = await standIn('echo > "$(dirname "$3")/decoy/made"; exit 1');
  expect(await inspectBubblewrap(open.program, open.folder)).toEqual({
    bubblewrap: "0.12.1",
    bubblewrapWarning: warningOf("0.12.1"),
  });
  const closed = await standIn("exit 1");
  expect(await inspectBubblewrap(closed.program, closed.folder)).toEqual({ bubblewrap: "0.12.1" });
  for (const { folder } of [open, closed]) expect(await readdir(folder)).toEqual(["bwrap"]);
});

test(
  "Debian 12's bubblewrap has it: each sandbox and each finding on files says so, with the fix",
  busy,
  async ({ skip }) => {
    const bubblewrap = await findBubblewrap();
    const folder = await temporaryFolder();
    const facts = await inspectBubblewrap(bubblewrap, folder);
    const { bubblewrapWarning: warning } = facts;
    if (warning === undefined) return skip(`host: bubblewrap ${facts.bubblewrap} doesn't have this hole`);
    expect(warning).toMatch(/^bubblewrap 0\.\d+.*CVE-2026-87766.*install bubblewrap 0\.12/);
    expect((await openConfined()).evidence).toMatchObject(facts);
    const findings = await (await confinedBackend()).probe(AbortSignal.timeout(busy.timeout));
    const warned = findings.filter((finding) => finding.proven && finding.warning === warning);
    expect(warned.map(({ capability }) => capability).sort()).toEqual([
      "filesystem.host-hidden",
      "filesystem.none",
      "filesystem.read-only",
      "filesystem.workspace-only",
    ]);
  },
);
