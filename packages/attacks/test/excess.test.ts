import { describe, expect, it } from "vitest";
import { excessMounts, isReadOnlyMount } from "../src/standard-probe/mounts.js";
import { excessIn } from "../src/standard-probe/trials/privileges.js";

const status = (fields: Readonly<Record<string, string>>) =>
  Object.entries({
    CapInh: "0",
    CapPrm: "0",
    CapEff: "0",
    CapBnd: "0",
    CapAmb: "0",
    NoNewPrivs: "1",
    Seccomp: "2",
    ...fields,
  })
    .map(([name, value]) => `${name}:\t${value}`)
    .join("\n");

describe("privileges in a process's status", () => {
  it.each<[string, Readonly<Record<string, string>>, readonly string[]]>([
    ["none", {}, []],
    ["those that the backend names", { CapBnd: "00000000000000fb" }, []],
    ["one more to gain", { CapBnd: "00000000000020fb" }, ["capabilities aren't dropped (CapBnd: NET_RAW)"]],
    ["one that it holds", { CapEff: "0000000000200000" }, ["it has capabilities (CapEff: SYS_ADMIN)"]],
    ["set-user-ID programs", { NoNewPrivs: "0" }, ["a set-user-ID program gives it privileges (NoNewPrivs)"]],
    ["every system call", { Seccomp: "0" }, ["no filter of system calls holds for it (Seccomp)"]],
  ])("are found: %s", (_what, fields, found) => {
    const bounding = ["CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID"];
    expect(excessIn(status(fields), { bounding }, false)).toEqual(found);
  });

  it("aren't assumed to be missing where nothing is shown", () => {
    expect(excessIn("", { bounding: [] }, true)).toEqual(["its capabilities aren't shown"]);
  });
});

describe("mounts that allow more than writing the run's files", () => {
  const folders = {
    workspace: "/box/session/workspace",
    home: "/box/session/home",
    scratch: ["/tmp", "/dev/shm"],
    closed: ["/etc/store"],
  };
  const line = (path: string, options: string, type = "tmpfs") =>
    `1 2 0:3 / ${path} ${options} - ${type} none rw`;
  it.each<[string, string, readonly string[]]>([
    ["a read-only root", line("/", "ro,relatime", "overlay"), []],
    ["a folder that only root can write", line("/etc/store", "rw"), []],
    ["one below it", line("/etc/store/open", "rw"), ["/etc/store/open is mounted writable"]],
    ["a writable root", line("/", "rw,relatime", "overlay"), ["/ is mounted writable"]],
    ["a root that is covered later", [line("/x", "rw"), line("/x", "ro")].join("\n"), []],
    ["the folder of the workspace", line("/box", "rw"), []],
    ["a folder whose name begins alike", line("/boxes", "rw"), ["/boxes is mounted writable"]],
    ["scratch", line("/tmp", "rw,nosuid,nodev"), []],
    ["scratch with set-user-ID bits", line("/tmp", "rw,nodev"), ["/tmp is mounted without nosuid"]],
    ["scratch with devices", line("/dev/shm", "rw,nosuid"), ["/dev/shm is mounted without nodev"]],
    [
      "the kernel's own",
      [line("/proc", "rw", "proc"), line("/dev", "rw"), line("/proc/keys", "rw")].join("\n"),
      [],
    ],
  ])("are found: %s", (_what, mountinfo, found) => {
    expect(excessMounts(mountinfo, folders, false)).toEqual(found);
  });

  it("belong to the nearest mount", () => {
    const mountinfo = [line("/proc", "rw", "proc"), line("/proc/sys", "ro", "proc")].join("\n");
    expect(isReadOnlyMount(mountinfo, "/proc/sys/kernel")).toBe(true);
    expect(isReadOnlyMount(mountinfo, "/proc/system")).toBe(false);
  });
});
