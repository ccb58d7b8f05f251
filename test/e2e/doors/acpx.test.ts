// needs: jail, git
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { pinnedPackages } from "../../../scripts/pinned-packages.mjs";
import { ambitCommand } from "../support/ambit.js";
import { processes } from "../support/processes.js";

const pinned = fileURLToPath(new URL("../../../scripts/acpx", import.meta.url));
/** As root, a session has a user of its own, who may not write the folder. */
const user = process.getuid?.() === 0 ? { uid: 12_345, gid: 12_345 } : {};
const agent = [...ambitCommand, "acp", "--agent", "demo"].map((word) => `'${word}'`).join(" ");

let top: string;
let program: string;
const folders: string[] = [];

beforeAll(async () => {
  program = join(await pinnedPackages(pinned), "node_modules/acpx/dist/cli.js");
  top = mkdtempSync(join(tmpdir(), "ambit-e2e-acpx-"));
  chmodSync(top, 0o755);
  madeFolder("home");
}, 120_000);

afterAll(async () => {
  // Each session has a process that waits for its next prompt.
  for (const folder of folders) await acpx(folder, ["sessions", "close"]);
  rmSync(top, { recursive: true, force: true });
}, 60_000);

function madeFolder(name: string): string {
  const folder = join(top, name);
  mkdirSync(folder);
  if (user.uid !== undefined) chownSync(folder, user.uid, user.gid);
  return folder;
}

/** acpx in a folder, where it has a session. Its output is the messages of the protocol, each in a line. */
function acpx(folder: string, args: readonly string[], command = agent) {
  const options = ["--cwd", folder, "--format", "json", "--agent", command];
  return execa(process.execPath, [program, ...options, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH, HOME: join(top, "home") },
    extendEnv: false,
    reject: false,
    ...user,
  });
}

async function openedSession(name: string): Promise<string> {
  const folder = madeFolder(name);
  folders.push(folder);
  const { stderr, exitCode } = await acpx(folder, ["sessions", "new"]);
  expect(exitCode, stderr).toBe(0);
  return folder;
}

describe("acpx with ambit acp", { timeout: 240_000 }, () => {
  it("prompts, and answers what the agent asks", async () => {
    const folder = await openedSession("answers");
    const allowed = await acpx(folder, ["--approve-all", "prompt", "say hi\nwrite a.txt x"]);
    expect(allowed.stdout, allowed.stderr).toMatch(
      /"text":"hi"[\s\S]*"method":"session\/request_permission"[\s\S]*"stopReason":"end_turn"/,
    );
    const denied = await acpx(folder, ["--deny-all", "prompt", "write b.txt x\nsay after"]);
    expect(denied.stdout, denied.stderr).toMatch(/"optionId":"reject"[\s\S]*"text":"\\?n?after"/);
    expect(["a.txt", "b.txt"].map((file) => existsSync(join(folder, file)))).toEqual([true, false]);
  });

  it("says why a turn failed, and why a session was refused", async () => {
    const folder = await openedSession("fails");
    expect((await acpx(folder, ["prompt", "fail no luck"])).stdout).toContain("no luck");
    const refused = await acpx(madeFolder("refused"), ["sessions", "new"], `${agent} --sandbox docker`);
    expect(refused.exitCode).not.toBe(0);
    expect(`${refused.stdout}${refused.stderr}`).toContain("Ambit refuses to start the agent");
  });

  it("cancels a prompt in the middle of a command", async () => {
    const folder = await openedSession("cancels");
    const prompting = acpx(folder, ["--approve-all", "prompt", "run sleep 1000"]);
    const isAllowed = new Promise<void>((resolve) => {
      prompting.stdout.on("data", (text) => {
        if (String(text).includes('"outcome":"selected"')) resolve();
      });
    });
    await Promise.race([isAllowed, prompting]);
    expect((await acpx(folder, ["cancel"])).stdout).toContain('"cancelled":true');
    expect((await prompting).stdout).toContain('"stopReason":"cancelled"');
  });

  it("goes on with its session in a new process of the agent", async () => {
    const folder = await openedSession("goes-on");
    const first = await acpx(folder, ["prompt", "say remember"]);
    const { pid } = z.object({ pid: z.int() }).parse(JSON.parse((await acpx(folder, ["status"])).stdout));
    process.kill(pid);
    await expect
      .poll(() => processes().some((running) => running.pid === pid), { timeout: 60_000 })
      .toBe(false);
    const { stdout, stderr } = await acpx(folder, ["prompt", "say back"]);
    const sessionOf = (text: string) => /"session\/prompt","params":\{"sessionId":"([^"]+)"/.exec(text)?.[1];
    expect(stdout, stderr).toMatch(/"method":"session\/(load|resume)"[\s\S]*"text":"[^"]*back"/);
    expect(sessionOf(stdout)).toBe(sessionOf(first.stdout));
  });
});
