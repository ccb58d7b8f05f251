// needs: jail
import { readdirSync, readlinkSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { systemTrust, trustVariables } from "@ambit/egress/credentials";
import { expect, onTestFinished, test } from "vitest";
import { argumentsOf, hostPids, statusRow } from "../support/host-processes.js";
import { closed, confinedBackend, openConfined, path, run, scope, shell, specOf } from "../support/specs.js";
import { isRoot } from "../support/user.js";

test("every process is shown to be confined and isolated from the others", async () => {
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

test("once jails come up here, a sandbox's first jail is that of its first program, and its evidence", async () => {
  const backend = await confinedBackend();
  await (await backend.open(specOf({ boundary: closed }), scope)).close();
  const spec = specOf({ boundary: closed });
  const sandbox = await backend.open(spec, scope);
  onTestFinished(() => sandbox.close());
  expect(sandbox.evidence).not.toHaveProperty("pidNamespace");
  const first = await sandbox.spawn({ argv: ["cat"], env: { PATH: path } });
  const commands = await Promise.all(hostPids().map(argumentsOf));
  expect(commands.filter((words) => words.includes(`/${spec.id}/1/`))).not.toEqual([]);
  expect(first.evidence).toHaveProperty("pidNamespace");
  expect(sandbox.evidence).toMatchObject(first.evidence);
  await sandbox.spawn({ argv: ["cat"], env: { PATH: path } });
  expect(sandbox.evidence).toMatchObject(first.evidence);
});

test("a process sees exactly the variables it names, and those that confinement needs", async () => {
  const sandbox = await openConfined({ network: { mode: "on", rules: [] } });
  const { stdout } = await run(sandbox, ["env"], { env: { PATH: path, GREETING: "hello" } });
  const leaks = ["ASAN_OPTIONS=detect_leaks=0", "LSAN_OPTIONS=detect_leaks=0"];
  const own = ["HOME=/home/tool", "LOGNAME=agent", "PWD=/workspace", "TMPDIR=/tmp", "USER=agent"];
  const named = ["GREETING=hello", `PATH=${path}`];
  const trust = Object.entries(trustVariables((await systemTrust()) ?? { authority: "", bundle: "" }))
    .filter(([, path]) => path !== "")
    .map(([name, path]) => `${name}=${path}`);
  expect(stdout.trim().split("\n").sort()).toEqual([...leaks, ...own, ...named, ...trust].sort());
});

test("the launcher has nothing of the runner's environment", async () => {
  const sandbox = await openConfined();
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

test("the system's files are present and can't be changed", async () => {
  const sandbox = await openConfined();
  const script = `
    id -un; cat /etc/hostname; ls /usr/bin/env; cat /etc/passwd | wc -l
    for place in / /usr /etc /dev /run /proc /home; do touch $place/x 2>/dev/null && echo "wrote $place"; done
    for place in /workspace /tmp /var/tmp /dev/shm $HOME; do touch $place/x || echo "no $place"; done
    ls /root /home/agent 2>/dev/null; ls /sys /sys/devices | sort -u; ls /sys/devices/system | grep -vx 'cpu\\|node'
     cat /etc/shadow 2>/dev/null; echo ran`;
  expect((await run(sandbox, shell(script))).stdout).toBe(
    "agent\nsandbox\n/usr/bin/env\n3\n\n/sys/devices:\n/sys:\ndevices\nsystem\nran\n",
  );
});

test("a scratch file system has the configured size", async () => {
  const sandbox = await openConfined({}, { config: { scratchMb: 4 } });
  const { stdout } = await run(
    sandbox,
    shell("head -c 16777216 /dev/zero > /tmp/fill; stat -c %s /tmp/fill; echo ran"),
  );
  expect(stdout).toBe("4194304\nran\n");
});
