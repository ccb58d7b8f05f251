// needs: jail
import { chmod, readdir, rm, stat, symlink } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { leaseUserId } from "../../src/identity/user-ids.js";
import { startRunner } from "../support/runner.js";
import {
  closed,
  confinedBackend,
  path,
  run,
  scope,
  shell,
  specOf,
  temporaryFolder,
} from "../support/specs.js";
import { testAsRoot } from "../support/user.js";

test("a user id belongs to one session at a time, and is free again afterwards", async () => {
  const range = { first: 64_900, count: 2 };
  const folder = await temporaryFolder();
  const [one, other] = await Promise.all([leaseUserId(range, folder), leaseUserId(range, folder)]);
  expect(new Set([one.uid, other.uid]).size).toBe(2);
  await expect(leaseUserId(range, folder)).rejects.toThrow(/from 64900 to 64901 are in use/);
  await Promise.all([one.release(), one.release()]);
  const again = await leaseUserId(range, folder);
  expect(again.uid).toBe(one.uid);
  await Promise.all([other.release(), again.release()]);
  expect(await readdir(folder)).toEqual([]);
});

test("simultaneous requests all get different ids", async () => {
  const range = { first: 64_900, count: 12 };
  const folder = await temporaryFolder();
  const leases = await Promise.all(Array.from({ length: 12 }, () => leaseUserId(range, folder)));
  expect(new Set(leases.map(({ uid }) => uid)).size).toBe(12);
  await Promise.all(leases.map((lease) => lease.release()));
});

test("the folder of the records is closed to others; an unusable one is refused with the fix", async () => {
  const folder = await temporaryFolder();
  await chmod(folder, 0o777);
  await (await leaseUserId({ first: 64_900, count: 1 }, folder)).release();
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  await symlink(folder, `${folder}-link`);
  onTestFinished(() => rm(`${folder}-link`));
  await expect(leaseUserId({ first: 64_900, count: 1 }, `${folder}-link`)).rejects.toThrow(/userIds.records/);
});

testAsRoot("a run without a boundary can't block the user ids of others", async () => {
  const backend = await confinedBackend({ userIds: { first: 62_930, count: 2 } });
  const hostile = await backend.open(specOf(), scope);
  onTestFinished(() => hostile.close());
  // The host's network namespace includes its abstract sockets; the records once were such names.
  const script = `
import socket, sys
held = []
for number in (62930, 62931):
    one = socket.socket(socket.AF_UNIX)
    try: one.bind("\\0ambit-user-%d" % number); one.listen(); held.append(one)
    except OSError as error: print(error)
print("bound", len(held), flush=True)
sys.stdin.read()`;
  const started = await hostile.spawn({ argv: ["/usr/bin/python3", "-c", script], env: { PATH: path } });
  const { value } = await started.stdout.getReader().read();
  // The control: this run can take such names.
  expect(new TextDecoder().decode(value)).toBe("bound 2\n");
  const other = await backend.open(specOf({ boundary: closed }), scope);
  onTestFinished(() => other.close());
  expect(other.evidence.uid).not.toBe(hostile.evidence.uid);
  // Nor can it reach the records themselves.
  const look = await run(hostile, shell("ls /run/ambit/user-ids; echo ran"));
  expect(look.stdout).toBe("ran\n");
});

testAsRoot(
  "two runners on this host get different users, and a dead runner's user is free again",
  async () => {
    const dataFolder = await temporaryFolder();
    await chmod(dataFolder, 0o711);
    const config = { dataFolder, userIds: { first: 62_940, count: 2 } };
    const wait = "echo up; read _";
    const one = await startRunner(config, wait, { spec: { boundary: closed } });
    const other = await startRunner(config, wait, { spec: { boundary: closed } });
    expect(new Set([one.evidence.uid, other.evidence.uid])).toEqual(new Set([62_940, 62_941]));
    const third = await confinedBackend(config);
    await expect(third.open(specOf({ boundary: closed }), scope)).rejects.toThrow(/are in use/);
    await one.kill();
    const sandbox = await third.open(specOf({ boundary: closed }), scope);
    onTestFinished(() => sandbox.close());
    expect(sandbox.evidence.uid).toBe(one.evidence.uid);
  },
);

testAsRoot("run by root, each session has a different user on the host", async () => {
  const backend = await confinedBackend();
  const open = async () => {
    const sandbox = await backend.open(specOf({ boundary: closed }), scope);
    onTestFinished(() => sandbox.close());
    return sandbox;
  };
  const [one, other] = await Promise.all([open(), open()]);
  expect(one.evidence.uid).toBeGreaterThanOrEqual(64_000);
  expect(one.evidence.uid).not.toBe(other.evidence.uid);
  // The reason why bubblewrap as uid 0 is no sandbox: the kernel would run this as root.
  const { stdout } = await run(
    one,
    shell("true >> /proc/sys/kernel/core_pattern && echo opened; id -u; echo ran"),
  );
  expect(stdout).toBe("1000\nran\n");
  expect((await stat("/proc/sys/kernel/core_pattern")).uid).toBe(0);
});

testAsRoot("a data folder that a session's user can't reach is refused with the fix", async () => {
  const dataFolder = await temporaryFolder();
  const backend = await confinedBackend({ dataFolder: `${dataFolder}/closed/data` });
  await chmod(dataFolder, 0o700);
  await expect(backend.open(specOf({ boundary: closed }), scope)).rejects.toThrow(/o\+x/);
});
