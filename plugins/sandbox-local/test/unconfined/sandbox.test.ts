// needs: jail
import { mkdir, readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Command } from "@ambit/core/plugin";
import { systemTrust, trustVariables } from "@ambit/egress/credentials";
import { expect, onTestFinished, test } from "vitest";
import {
  everythingOn,
  finish,
  isRunning,
  openUnconfined,
  path,
  run,
  scope,
  shell,
  specOf,
  temporaryFolder,
  unconfinedBackend,
} from "../support/specs.js";

test("a process sees exactly the variables it names, and its home, scratch and mark", async () => {
  process.env.AMBIT_TEST_CANARY = "canary-7c1";
  onTestFinished(() => {
    delete process.env.AMBIT_TEST_CANARY;
  });
  const sandbox = await openUnconfined();
  const control = shell('echo "$AMBIT_TEST_CANARY"');
  const named = await run(sandbox, control, { env: { PATH: path, AMBIT_TEST_CANARY: "named" } });
  expect(named.stdout).toBe("named\n");

  const { stdout } = await run(sandbox, ["/usr/bin/env"], { env: { PATH: path, GREETING: "hello" } });
  const names = stdout
    .trim()
    .split("\n")
    .map((line) => line.split("=")[0]);
  const trust = await systemTrust();
  const trusting = trust === undefined ? [] : Object.keys(trustVariables(trust));
  const others = ["AMBIT_SANDBOX", "GREETING", "HOME", "PATH", "TMPDIR"];
  expect(names.sort()).toEqual([...others, ...trusting].sort());
  expect(stdout).not.toContain("canary-7c1");
});

test("streams, exit code and signal are passed on", async () => {
  const sandbox = await openUnconfined();
  const started = await sandbox.spawn({ argv: shell("cat; echo problem >&2; exit 7"), env: { PATH: path } });
  const writer = started.stdin.getWriter();
  await writer.write(new TextEncoder().encode("through"));
  await writer.close();
  expect(await finish(started)).toEqual({ stdout: "through", stderr: "problem\n", code: 7, signal: null });

  const killed = await sandbox.spawn({ argv: ["sleep", "60"], env: { PATH: path } });
  await killed.kill();
  expect(await killed.exit).toEqual({ code: null, signal: "SIGKILL" });
});

test("unread output is still available after the exit", async () => {
  const sandbox = await openUnconfined();
  const started = await sandbox.spawn({ argv: ["echo", "late"], env: { PATH: path } });
  await started.exit;
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(await new Response(started.stdout).text()).toBe("late\n");
});

test.each<[Command["argv"], Partial<Command>, RegExp]>([
  [["no-such-program"], {}, /no-such-program can't be started: .*ENOENT/],
  [["true", "a\0b"], {}, /must not contain NUL/],
  [["true"], { cwd: "elsewhere" }, /must be an absolute path/],
  [["true", "x".repeat(200_000)], {}, /can't be started: .*E2BIG/],
])("%# fails the spawn with the reason", async (argv, options, message) => {
  const sandbox = await openUnconfined();
  await expect(sandbox.spawn({ argv, env: { PATH: path }, ...options })).rejects.toThrow(message);
});

test("a writer whose reader is gone gets an error, and the runner lives", async () => {
  const sandbox = await openUnconfined();
  const started = await sandbox.spawn({ argv: ["true"], env: { PATH: path } });
  await started.exit;
  const writer = started.stdin.getWriter();
  writer.closed.catch(() => undefined);
  await expect(writer.write(new Uint8Array(100_000))).rejects.toThrow();
});

test("processes left in a separate session end with the process that started them", async () => {
  const sandbox = await openUnconfined();
  const script =
    'setsid sh -c "trap \\"\\" TERM HUP INT; while :; do sleep 1; done" </dev/null >/dev/null 2>&1 & echo $!';
  const started = await sandbox.spawn({ argv: shell(`${script}; read _`), env: { PATH: path } });
  const reader = started.stdout.getReader();
  const { value } = await reader.read();
  const pid = Number(new TextDecoder().decode(value));
  expect(await isRunning(pid)).toBe(true);
  await started.stdin.close();
  await started.exit;
  expect(await isRunning(pid)).toBe(false);
});

test("an aborted signal ends the process, also when it ignores everything", async () => {
  const sandbox = await openUnconfined();
  const abort = new AbortController();
  const started = await sandbox.spawn({
    argv: shell('trap "" TERM INT HUP; echo up; while :; do sleep 1; done'),
    env: { PATH: path },
    signal: abort.signal,
  });
  await started.stdout.getReader().read();
  abort.abort();
  expect(await started.exit).toEqual({ code: null, signal: "SIGKILL" });
});

test("SIGTERM lets a process end by itself, and kills one that doesn't", async () => {
  const sandbox = await openUnconfined();
  const polite = await sandbox.spawn({
    argv: shell('trap "exit 3" TERM; echo up; while :; do sleep 0.05; done'),
    env: { PATH: path },
  });
  await polite.stdout.getReader().read();
  await polite.kill("SIGTERM");
  expect(await polite.exit).toEqual({ code: 3, signal: null });

  const stubborn = await sandbox.spawn({
    argv: shell('trap "" TERM; echo up; while :; do sleep 0.05; done'),
    env: { PATH: path },
  });
  await stubborn.stdout.getReader().read();
  await stubborn.kill("SIGTERM");
  expect(await stubborn.exit).toEqual({ code: null, signal: "SIGKILL" });
});

test("the agent keeps its home; a tool has a private home and scratch, which are removed with it", async () => {
  const sandbox = await openUnconfined();
  const agent = { role: "agent" } as const;
  await run(sandbox, shell("echo kept > $HOME/note"), agent);
  expect((await run(sandbox, shell("cat $HOME/note"), agent)).stdout).toBe("kept\n");
  const tool = await run(sandbox, shell("ls -A $HOME; echo $HOME; echo x > $TMPDIR/x"));
  expect(tool.stdout).not.toContain("note");
  await expect(stat(tool.stdout.trim())).rejects.toThrow("ENOENT");
});

test("files are written and read in workspace and home, never through a link", async () => {
  const sandbox = await openUnconfined();
  const outside = await temporaryFolder();
  await writeFile(join(outside, "secret"), "outside");
  await sandbox.writeFiles([
    { path: `${sandbox.workspace}/a/b/run.sh`, content: "#!/bin/sh\necho ran\n", executable: true },
    { path: `${sandbox.home}/.settings`, content: new Uint8Array([104, 105]) },
  ]);
  expect((await run(sandbox, ["./a/b/run.sh"])).stdout).toBe("ran\n");
  expect(new TextDecoder().decode(await sandbox.readFile(`${sandbox.home}/.settings`))).toBe("hi");

  await symlink(outside, join(sandbox.workspace, "link"));
  await symlink(join(outside, "secret"), join(sandbox.workspace, "file-link"));
  // The control: the links lead there.
  expect(await readFile(join(sandbox.workspace, "link", "secret"), "utf8")).toBe("outside");
  await expect(sandbox.readFile(`${sandbox.workspace}/link/secret`)).rejects.toThrow(
    /without following links/,
  );
  await expect(sandbox.readFile(`${sandbox.workspace}/file-link`)).rejects.toThrow(/without following links/);
  await expect(sandbox.writeFiles([{ path: `${sandbox.workspace}/link/new`, content: "x" }])).rejects.toThrow(
    /without following links/,
  );
  await sandbox.writeFiles([{ path: `${sandbox.workspace}/file-link`, content: "inside now" }]);
  expect(await readFile(join(outside, "secret"), "utf8")).toBe("outside");
  expect(await readdir(outside)).toEqual(["secret"]);
});

test.each(["/etc/passwd", "relative", "WORKSPACE", "WORKSPACE/../x", "WORKSPACE/a\0b", "WORKSPACE-beside/x"])(
  "a file can't be written to %s",
  async (place) => {
    const sandbox = await openUnconfined();
    const target = place.replace("WORKSPACE", sandbox.workspace);
    await expect(sandbox.writeFiles([{ path: target, content: "x" }])).rejects.toThrow(/isn't in/);
    await expect(sandbox.readFile(target)).rejects.toThrow(/isn't in/);
  },
);

test("reading a pipe, a folder or a missing file fails without waiting", async () => {
  const sandbox = await openUnconfined();
  await run(sandbox, ["mkfifo", "pipe"]);
  await mkdir(join(sandbox.workspace, "folder"));
  for (const name of ["pipe", "folder", "missing"]) {
    await expect(sandbox.readFile(`${sandbox.workspace}/${name}`)).rejects.toThrow(name);
  }
});

test("an exposed handler responds inside, only to its token, until it is closed", async () => {
  const sandbox = await openUnconfined();
  const exposure = await sandbox.expose(async (request) => new Response(`got ${await request.text()}`));
  const call = `fetch(process.argv[1], { method: "POST", body: "this", headers: { authorization: "Bearer " + process.argv[2] } })
    .then(async (r) => console.log(r.status, await r.text()))`;
  const inside = (token: string) => run(sandbox, ["node", "-e", call, exposure.url, token]);
  expect((await inside(exposure.token)).stdout).toBe("200 got this\n");
  expect((await inside("guessed")).stdout).toMatch(/^401 /);
  await exposure.close();
  await expect(fetch(exposure.url)).rejects.toThrow();
});

test("close ends everything, leaves nothing, and may be called twice", async () => {
  const dataFolder = await temporaryFolder();
  const backend = await unconfinedBackend(dataFolder);
  const sandbox = await backend.open(specOf(), scope);
  const exposure = await sandbox.expose(() => new Response("up"));
  const started = await sandbox.spawn({
    argv: shell("setsid sleep 60 & echo $!; sleep 60"),
    env: { PATH: path },
  });
  const { value } = await started.stdout.getReader().read();
  const pid = Number(new TextDecoder().decode(value));
  expect(await isRunning(pid)).toBe(true);
  await Promise.all([sandbox.close(), sandbox.close()]);
  await sandbox.close();
  expect(await isRunning(pid)).toBe(false);
  await expect(stat(sandbox.workspace)).rejects.toThrow("ENOENT");
  await expect(fetch(exposure.url)).rejects.toThrow();
  await expect(sandbox.spawn({ argv: ["true"], env: {} })).rejects.toThrow(/is closed/);
});

test("two sandboxes can't share an id, and a bad id is refused", async () => {
  const backend = await unconfinedBackend();
  const spec = specOf();
  const sandbox = await backend.open(spec, scope);
  onTestFinished(() => sandbox.close());
  await expect(backend.open(spec, scope)).rejects.toThrow(/is open already/);
  await expect(backend.open(specOf({ id: "../up" }), scope)).rejects.toThrow(/must match/);
});

test("a sandbox with a boundary is never opened unconfined", async () => {
  const backend = await unconfinedBackend();
  const spec = specOf({ boundary: { ...everythingOn, network: { mode: "off", rules: [] } } });
  const opened = await backend.open(spec, scope).catch((error: unknown) => error);
  if (opened instanceof Error) expect(opened.message).toMatch(/confine/);
  else expect(opened).toMatchObject({ confinement: "confined" });
});
