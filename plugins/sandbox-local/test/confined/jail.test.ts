import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { type AddressInfo, createServer } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import {
  closed,
  confinedBackend,
  finish,
  isRunning,
  openConfined,
  openUnconfined,
  path,
  run,
  scope,
  shell,
  specOf,
} from "../support/specs.js";
import { isRoot } from "../support/user.js";

test("every process is shown to be confined, and each is apart from the others", async () => {
  const sandbox = await openConfined();
  expect(sandbox.confinement).toBe("confined");
  const own = Number(/\d+/.exec(readlinkSync("/proc/self/ns/pid"))?.[0]);
  const [one, other] = await Promise.all(
    [1, 2].map(() => sandbox.spawn({ argv: ["cat"], env: { PATH: path } })),
  );
  for (const evidence of [sandbox.evidence, one?.evidence, other?.evidence]) {
    expect(evidence).toMatchObject({
      confinement: "confined",
      capabilities: "none",
      noNewPrivileges: true,
      seccomp: 2,
    });
    expect(evidence?.uid).not.toBe(0);
    expect(evidence?.pidNamespace).not.toBe(own);
  }
  for (const name of ["pidNamespace", "netNamespace", "mntNamespace", "ipcNamespace"]) {
    expect(one?.evidence[name]).not.toBe(other?.evidence[name]);
  }
});

test("a process sees exactly the variables it names, and what confinement needs", async () => {
  const sandbox = await openConfined({ network: { mode: "on", rules: [] } });
  const { stdout } = await run(sandbox, ["env"], { env: { PATH: path, GREETING: "hello" } });
  expect(stdout.trim().split("\n").sort()).toEqual(
    ["GREETING=hello", "HOME=/home/tool", `PATH=${path}`, "PWD=/workspace", "TMPDIR=/tmp"].sort(),
  );
});

test("neither the launcher nor any process inside has anything of the runner's environment", async () => {
  process.env.AMBIT_TEST_CANARY = "canary-93f";
  onTestFinished(() => {
    delete process.env.AMBIT_TEST_CANARY;
  });
  // The control: a plain child has it.
  expect(spawnSync("env", { encoding: "utf8" }).stdout).toContain("canary-93f");
  const sandbox = await openConfined();
  const { stdout } = await run(
    sandbox,
    shell("cat /proc/1/environ /proc/*/environ | tr '\\0' '\\n'; echo ran"),
  );
  expect(stdout).toContain(`PATH=${path}\n`);
  expect(stdout).toContain("ran");
  expect(stdout).not.toContain("canary-93f");

  const started = await sandbox.spawn({ argv: ["cat"], env: { PATH: path } });
  const launchers = hostPids().filter(
    (pid) => statusRow(pid, "Name") === "bwrap" && statusRow(pid, "PPid") === `${process.pid}`,
  );
  expect(launchers).toHaveLength(1);
  if (isRoot) {
    const environment = await readFile(`/proc/${launchers[0]}/environ`, "latin1");
    expect(
      environment
        .split("\0")
        .filter(Boolean)
        .map((entry) => entry.split("=")[0]),
    ).toEqual(["PATH"]);
  }
  await started.kill();
});

test("the launcher's own arguments hold no variable's value", async () => {
  const sandbox = await openConfined();
  const started = await sandbox.spawn({ argv: ["cat"], env: { PATH: path, SECRET: "value-51c" } });
  const lines = await Promise.all(
    readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .map((pid) => readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "")),
  );
  const launchers = lines.filter((line) => line.includes("--args\u0000"));
  expect(launchers.length).toBeGreaterThan(0);
  expect(lines.filter((line) => line.includes("value-51c"))).toEqual([]);
  await started.kill();
});

test("streams, exit code and signal come through", async () => {
  const sandbox = await openConfined();
  const started = await sandbox.spawn({ argv: shell("cat; echo problem >&2; exit 7"), env: { PATH: path } });
  const writer = started.stdin.getWriter();
  await writer.write(new TextEncoder().encode("through"));
  await writer.close();
  expect(await finish(started)).toEqual({ stdout: "through", stderr: "problem\n", code: 7, signal: null });

  const killed = await sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path } });
  await Promise.all([killed.kill(), killed.kill()]);
  expect(await killed.exit).toEqual({ code: null, signal: "SIGKILL" });
  await killed.kill();

  const asked = await sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path } });
  await asked.kill("SIGTERM");
  expect(await asked.exit).toEqual({ code: null, signal: "SIGTERM" });

  const polite = await sandbox.spawn({
    argv: shell('trap "exit 3" TERM; echo up; while :; do sleep 0.05; done'),
    env: { PATH: path },
  });
  await polite.stdout.getReader().read();
  await polite.kill("SIGTERM");
  expect(await polite.exit).toEqual({ code: 3, signal: null });
});

test("an aborted signal ends the process, also before it began", async () => {
  const sandbox = await openConfined();
  const abort = new AbortController();
  const started = await sandbox.spawn({
    argv: shell('trap "" TERM INT HUP; echo up; while :; do sleep 1; done'),
    env: { PATH: path },
    signal: abort.signal,
  });
  await started.stdout.getReader().read();
  abort.abort();
  expect(await started.exit).toEqual({ code: null, signal: "SIGKILL" });
  await expect(sandbox.spawn({ argv: ["true"], env: {}, signal: abort.signal })).rejects.toThrow(/abort/i);
});

test.each([
  [["no-such-program"], {}, /no-such-program can't be started: .*ENOENT/],
  [["/workspace/missing"], {}, /\/workspace\/missing can't be started/],
  [["true"], { cwd: "/nowhere" }, /bwrap: Can't chdir to \/nowhere/],
] as const)("%j with %j fails the spawn in words", async (argv, options, message) => {
  const sandbox = await openConfined();
  await expect(sandbox.spawn({ argv, env: { PATH: path }, ...options })).rejects.toThrow(message);
});

test("what detaches, forks twice and ignores every signal ends with its jail, at exit and at kill", async () => {
  const daemon = `setsid sh -c 'trap "" TERM HUP INT; sleep 31557601 & wait' </dev/null >/dev/null 2>&1 &`;
  const script = `${daemon} ${daemon} sleep 0.2; echo up`;
  const control = await openUnconfined();
  const bare = await control.spawn({ argv: shell(`${script}; read _`), env: { PATH: path } });
  await bare.stdout.getReader().read();
  const count = async () =>
    (await Promise.all(hostPids().map((pid) => argumentsOf(pid)))).filter(isDaemon).length;
  // The control: nothing but our own search would have ended these.
  expect(await count()).toBe(2);
  await bare.kill();

  const sandbox = await openConfined();
  const killed = await sandbox.spawn({ argv: shell(`${script}; read _`), env: { PATH: path } });
  await killed.stdout.getReader().read();
  expect(await count()).toBe(2);
  await killed.kill();
  expect(await count()).toBe(0);

  const ended = await sandbox.spawn({ argv: shell(`${script}; read _`), env: { PATH: path } });
  await ended.stdout.getReader().read();
  expect(await count()).toBe(2);
  await ended.stdin.close();
  await ended.exit;
  expect(await count()).toBe(0);
});

test("nothing of a jail is left to be collected, neither after its end nor after a kill", async () => {
  const sandbox = await openConfined();
  const start = async () => {
    const known = new Set(hostPids());
    const started = await sandbox.spawn({ argv: shell("sleep 60 & echo up; read _"), env: { PATH: path } });
    await started.stdout.getReader().read();
    const uid = `${started.evidence.uid}`;
    const own = hostPids().filter((pid) => !known.has(pid) && statusRow(pid, "Uid")?.startsWith(uid));
    expect(own.length).toBeGreaterThanOrEqual(4);
    return { started, own };
  };
  const isThere = (pid: string) => statusRow(pid, "Name") !== undefined;
  const ended = await start();
  await ended.started.stdin.close();
  await ended.started.exit;
  // Not even as a zombie: a runner that is a container's first process collects nobody else's children.
  expect(ended.own.filter(isThere)).toEqual([]);
  const killed = await start();
  await killed.started.kill();
  expect(killed.own.filter(isThere)).toEqual([]);
});

/** One row of a process's status; undefined when there is no such process. */
function statusRow(pid: string, name: string): string | undefined {
  try {
    return new RegExp(`^${name}:\\s*(.*)$`, "m").exec(readFileSync(`/proc/${pid}/status`, "latin1"))?.[1];
  } catch (error) {
    if (error instanceof Error && "code" in error) return undefined;
    throw error;
  }
}

function hostPids(): readonly string[] {
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
}

async function argumentsOf(pid: string): Promise<string> {
  // Gone since it was listed: not there.
  return readFile(`/proc/${pid}/cmdline`, "latin1").catch(() => "");
}

const isDaemon = (line: string) => line === "sleep\u000031557601\u0000";

test("a process of the host can't be seen or signalled; the same user outside could", async () => {
  const sandbox = await openConfined();
  const uid = Number(sandbox.evidence.uid);
  const user = process.getuid?.() === 0 ? { uid, gid: uid } : {};
  const decoy = spawn("/bin/sleep", ["60"], { stdio: "ignore", cwd: "/", ...user });
  onTestFinished(() => void decoy.kill("SIGKILL"));
  await once(decoy, "spawn");
  const pid = decoy.pid ?? 0;
  expect(await isRunning(pid)).toBe(true);
  expect(pid).toBeGreaterThan(200);
  const outside = spawn("/bin/sh", ["-c", `kill -0 ${pid}`], { stdio: "ignore", cwd: "/", ...user });
  expect((await once(outside, "exit"))[0]).toBe(0);
  const { stdout } = await run(
    sandbox,
    shell(`kill -0 ${pid} && echo signalled; ls -d /proc/${pid}; echo ran`),
  );
  expect(stdout).toBe("ran\n");
});

test("a listener of the host's loopback is out of reach; with the network on it isn't", async () => {
  const server = createServer((connection) => connection.end("host\n")).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const dial = ["socat", "-u", `TCP4:127.0.0.1:${port}`, "-"] as const;
  const open = await openConfined({ network: { mode: "on", rules: [] } });
  expect((await run(open, dial)).stdout).toBe("host\n");
  const sandbox = await openConfined();
  const refused = await run(sandbox, dial);
  expect(refused.stdout).toBe("");
  expect(refused.stderr).toContain("Connection refused");
});

test("the filter is there: no namespace can be made, and what it refuses works without a jail", async () => {
  const control = await openUnconfined();
  const attempt = shell("unshare -U true && echo made; echo ran");
  expect((await run(control, attempt)).stdout).toBe("made\nran\n");
  expect((await run(await openConfined(), attempt)).stdout).toBe("ran\n");
});

test("the system is there and can't be changed", async () => {
  const sandbox = await openConfined();
  const script = `
    id -un; cat /etc/hostname; ls /usr/bin/env; cat /etc/passwd | wc -l
    for place in / /usr /etc /dev /run /proc /home; do touch $place/x 2>/dev/null && echo "wrote $place"; done
    for place in /workspace /tmp /var/tmp /dev/shm $HOME; do touch $place/x || echo "no $place"; done
    ls /root /home/agent /sys 2>/dev/null; cat /etc/shadow 2>/dev/null; echo ran`;
  expect((await run(sandbox, shell(script))).stdout).toBe("agent\nsandbox\n/usr/bin/env\n2\nran\n");
});

test("a scratch file system has its size", async () => {
  const sandbox = await openConfined({}, { config: { scratchMb: 4 } });
  const { stdout } = await run(
    sandbox,
    shell("head -c 16777216 /dev/zero > /tmp/fill; stat -c %s /tmp/fill; echo ran"),
  );
  expect(stdout).toBe("4194304\nran\n");
});

test("the agent keeps its home; a tool's is scratch, and neither sees the other's", async () => {
  const sandbox = await openConfined();
  const agent = { role: "agent" } as const;
  expect((await run(sandbox, shell("echo kept > $HOME/note; echo $HOME"), agent)).stdout).toBe(
    "/home/agent\n",
  );
  expect((await run(sandbox, shell("cat $HOME/note"), agent)).stdout).toBe("kept\n");
  expect((await run(sandbox, shell("ls -A $HOME /home; echo x > $HOME/x"))).stdout).not.toContain("note");
  expect((await run(sandbox, shell("ls -A $HOME"))).stdout).toBe("");
  expect(new TextDecoder().decode(await sandbox.readFile("/home/agent/note"))).toBe("kept\n");
});

test("a sandbox that can't open leaves nothing, and says why", async () => {
  const backend = await confinedBackend({ userIds: { first: 64_000, count: 1_000 } });
  const spec = specOf({ boundary: closed, runtimes: [{ path: "/nowhere/agent", what: "The agent" }] });
  await expect(backend.open(spec, scope)).rejects.toThrow(/The agent isn't at \/nowhere\/agent/);
  // The same id again: neither its folder nor its user is taken.
  const sandbox = await backend.open({ ...spec, runtimes: [] }, scope);
  await sandbox.close();
});

test("what was never claimed is refused, also without a boundary", async () => {
  const backend = await confinedBackend({ unconfined: "allow" });
  await expect(backend.open(specOf({ required: ["secrets.hidden"] }), scope)).rejects.toThrow(
    /secrets.hidden/,
  );
});

test("without a boundary it is confined where the host can, unless configured otherwise", async () => {
  const confined = await (await confinedBackend()).open(specOf(), scope);
  onTestFinished(() => confined.close());
  expect(confined.confinement).toBe("confined");
  const preferred = await (await confinedBackend({ unconfined: "prefer" })).open(specOf(), scope);
  onTestFinished(() => preferred.close());
  expect(preferred.confinement).toBe("unconfined");
});

test("close ends everything and may be called twice; opening and closing leaks no descriptor", async () => {
  const backend = await confinedBackend();
  const cycle = async () => {
    const sandbox = await backend.open(specOf({ boundary: closed }), scope);
    await sandbox.expose(() => new Response("up"));
    const started = await sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path } });
    await Promise.all([sandbox.close(), sandbox.close()]);
    expect(await started.exit).toEqual({ code: null, signal: "SIGKILL" });
    await expect(sandbox.spawn({ argv: ["true"], env: {} })).rejects.toThrow(/is closed/);
  };
  await cycle();
  const before = readdirSync("/proc/self/fd").length;
  for (let each = 0; each < 10; each++) await cycle();
  await Promise.all(Array.from({ length: 10 }, cycle));
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(readdirSync("/proc/self/fd").length).toBeLessThanOrEqual(before);
});

test("a spawn that races with close doesn't outlive it", async () => {
  const sandbox = await openConfined();
  const spawning = sandbox.spawn({ argv: ["sleep", "31557602"], env: { PATH: path } });
  const refused = expect(spawning).rejects.toThrow(/is closed/);
  await sandbox.close();
  await refused;
  const lines = await Promise.all(hostPids().map((pid) => argumentsOf(pid)));
  expect(lines.filter((line) => line.includes("31557602"))).toEqual([]);
  await expect(stat(sandbox.workspace)).rejects.toThrow();
});
