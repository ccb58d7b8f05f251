// needs: jail
import { PassThrough, Readable } from "node:stream";
import type { Boundary, Sandbox } from "@ambit/core/plugin";
import { describe, expect, onTestFinished, test } from "vitest";
import { gateWords } from "../../src/confined/jail.js";
import { beginningOf } from "../../src/process/host-processes.js";
import { closed, run, specOf } from "../support/specs.js";
import type { RemovableMechanism } from "./jails/index.ts";
import { weakenedSandboxes } from "./sandboxes.ts";

/**
 * Each way to attack the jail's first process: prints `reached` or the kernel's error. It writes only what was there
 * before.
 */
const attack = `
import ctypes, errno, os, sys
first = int(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
def checked(result):
    if result < 0: raise OSError(ctypes.get_errno(), "")
    return result
class Part(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("length", ctypes.c_size_t)]
def stack():
    line = next(line for line in open("/proc/%d/maps" % first) if "[stack]" in line)
    return int(line.split("-")[1].split()[0], 16) - 4096
def memory():
    descriptor = os.open("/proc/%d/mem" % first, os.O_RDWR)
    os.pwrite(descriptor, os.pread(descriptor, 8, stack()), stack())
def trace():
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    checked(libc.ptrace(16, first, None, None))
    os.waitpid(first, 0x40000000)
    checked(libc.ptrace(17, first, None, None))
def vm():
    here = ctypes.create_string_buffer(8)
    local = Part(ctypes.addressof(here), 8)
    try: address = stack()
    except PermissionError: address = 4096
    remote = Part(address, 8)
    for call in (libc.process_vm_readv, libc.process_vm_writev):
        checked(call(first, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0))
def gate():
    descriptor = checked(libc.syscall(438, checked(libc.syscall(434, first, 0)), 3, 0))
    try:
        while True: os.write(descriptor, b"x" * 65536)
    except (BrokenPipeError, ConnectionResetError):
        print("gate leads nowhere")
for name, way in (("memory", memory), ("trace", trace), ("vm", vm), ("gate", gate)):
    try:
        way()
        print(name, "reached")
    except OSError as error:
        print(name, errno.errorcode[error.errno])
`;

const filter = "system call filter" satisfies RemovableMechanism;
const guard = "guard of the first process" satisfies RemovableMechanism;

async function openWithout(
  without: readonly RemovableMechanism[],
  filesystem: Partial<Boundary["filesystem"]> = {},
): Promise<Sandbox> {
  const weakened = await weakenedSandboxes();
  const sandbox = await weakened.open(
    specOf({ boundary: { ...closed, filesystem: { ...closed.filesystem, ...filesystem } } }),
    without,
    { folders: [], environment: {} },
    closed.network,
  );
  onTestFinished(() => sandbox.close());
  return sandbox;
}

describe("a payload and its jail's first process, which has the same user", () => {
  test.each<[string, readonly RemovableMechanism[], readonly string[]]>([
    [
      "without the filter and the guard the payload can change it, and its gate leads nowhere",
      [filter, guard],
      ["memory reached", "trace reached", "vm reached", "gate leads nowhere", "gate reached"],
    ],
    [
      "the filter alone doesn't protect its memory",
      [guard],
      ["memory reached", "trace EPERM", "vm EPERM", "gate EPERM"],
    ],
    ["the guard alone keeps it out", [filter], ["memory EACCES", "trace EPERM", "vm EPERM", "gate EPERM"]],
    ["both keep it out", [], ["memory EACCES", "trace EPERM", "vm EPERM", "gate EPERM"]],
  ])("%s", async (_name, without, expected) => {
    const sandbox = await openWithout(without);
    const { stdout, stderr } = await run(sandbox, ["/usr/bin/python3", "-c", attack, "1"]);
    expect({ lines: stdout.trim().split("\n"), stderr }).toEqual({ lines: expected, stderr: "" });
  });

  test("in a jail with mounts in its workspace, the second bubblewrap is the first process: no user of it can reach it", async () => {
    const sandbox = await openWithout([filter, guard], { denied: ["key"] });
    const attacked = async (first: string) =>
      (await run(sandbox, ["/usr/bin/python3", "-c", attack, first])).stdout.trim().split("\n");
    expect(await attacked("1")).toEqual(["memory EACCES", "trace EPERM", "vm EPERM", "gate EPERM"]);
    // The control: the shell that it started has the payload's user namespace.
    expect(await attacked("2")).toContain("memory reached");
    const whole = await openWithout([], { denied: ["key"] });
    const { stdout } = await run(whole, ["/usr/bin/python3", "-c", attack, "2"]);
    expect(stdout.trim().split("\n")).toEqual(["memory EACCES", "trace EPERM", "vm EPERM", "gate EPERM"]);
  });
});

describe("what a jail reports before it is up", () => {
  test("is read line by line, in any chunks", async () => {
    const lines: string[] = [];
    for await (const line of gateWords(Readable.from(["1", "7\nu", "p\n"].map(Buffer.from))))
      lines.push(line);
    expect(lines).toEqual(["17", "up"]);
  });

  test("is refused when it doesn't end, and no more of it is read", async () => {
    let pieces = 0;
    const endless = Readable.from(
      (function* () {
        for (; pieces < 100_000; pieces++) yield Buffer.alloc(64);
      })(),
      { objectMode: false },
    );
    await expect(gateWords(endless).next()).rejects.toThrow(/sent an unexpected message/);
    expect(pieces).toBeLessThan(10_000);
    expect(endless.destroyed).toBe(true);
  });

  test("and its last output is kept up to a limit", async () => {
    const stream = new PassThrough();
    const kept = beginningOf(stream);
    for (let piece = 0; piece < 100; piece++) stream.write("x".repeat(1000));
    stream.end();
    expect(await kept).toBe("x".repeat(4096));
  });
});
