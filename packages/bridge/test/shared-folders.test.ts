import { readdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isolateTmp } from "../src/guest/users.js";

const one = { uid: 61_900, gid: 61_900 };
const other = { uid: 61_901, gid: 61_900 };
const trials = () => readdirSync("/tmp").filter((name) => /^ambit-[0-9a-f]{32}$/.test(name));

describe("folders that everyone may write to", () => {
  let umask: number;
  beforeEach((context) => {
    if (process.getuid?.() !== 0) context.skip("host: other users' processes need root");
    umask = process.umask();
  });
  afterEach(() => {
    process.umask(umask);
  });

  it.each([
    [0o022, other, /^what one user writes to \/tmp, another can read$/],
    [0o007, other, /^what one user writes to \/tmp, another can read$/],
    [0o007, { ...other, gid: other.uid }, undefined],
    [0o077, other, undefined],
  ])("keep users apart or say which doesn't, with the umask %o", (mask, second, reason) => {
    const before = trials();
    process.umask(mask);
    const found = isolateTmp(one, second, false);
    if (reason === undefined) expect(found).toBeUndefined();
    else expect(found).toMatch(reason);
    expect(trials().filter((name) => !before.includes(name))).toEqual([]);
  });
});
