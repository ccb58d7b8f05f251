// needs: jail
import { spawn } from "node:child_process";
import { chmod, link, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Boundary, FilesystemBoundary, Sandbox } from "@ambit/core/plugin";
import { describe, expect, onTestFinished, test } from "vitest";
import { scanHardLinks } from "../../../src/confined/files/workspace-rules.js";
import { configSchema, LocalSandbox } from "../../../src/index.js";
import {
  closed,
  everythingOn,
  openConfined,
  run,
  scope,
  shell,
  specOf,
  temporaryFolder,
} from "../../support/specs.js";

const filesystem = (over: Partial<FilesystemBoundary>): Partial<Boundary> => ({
  filesystem: { ...everythingOn.filesystem, mode: "workspace", ...over },
});

/** A sandbox, and its workspace on the host, where an operator or an earlier run may have left files. */
async function openWithHostSide(
  boundary: Partial<Boundary>,
  config: object = {},
): Promise<{ sandbox: Sandbox; workspace: string }> {
  const dataFolder = await temporaryFolder();
  await chmod(dataFolder, 0o711);
  const spec = specOf({ boundary: { ...closed, ...boundary } });
  const backend = new LocalSandbox(configSchema.parse({ dataFolder, ...config }));
  const sandbox = await backend.open(spec, scope);
  onTestFinished(() => sandbox.close());
  const [runner] = await readdir(join(dataFolder, "runners"));
  return { sandbox, workspace: join(dataFolder, "runners", String(runner), spec.id, "workspace") };
}

const attempts = (path: string) => `
echo x 2>/dev/null > ${path} && echo written
rm -f ${path} 2>/dev/null && echo removed
mv ${path} elsewhere 2>/dev/null && echo renamed
mv ${dirname(path)} away 2>/dev/null && echo moved
ln ${path} other 2>/dev/null && echo x > other && echo linked
cat ${path} 2>/dev/null
echo ran`;

describe("a protected path", () => {
  test("survives write, removal, renaming, hard links and the renaming of its folders", async () => {
    const file = { path: "/workspace/.git/hooks/pre-commit", content: "kept\n" };
    // The control: an unprotected path doesn't survive.
    const control = await openConfined({}, { config: { protectedPaths: [] } });
    await control.writeFiles([file]);
    expect((await run(control, shell(attempts(".git/hooks/pre-commit")))).stdout).toBe(
      "written\nremoved\nmoved\nran\n",
    );

    const sandbox = await openConfined();
    await sandbox.writeFiles([file]);
    expect((await run(sandbox, shell(attempts(".git/hooks/pre-commit")))).stdout).toBe("kept\nran\n");
    const inAncestor = await run(
      sandbox,
      shell("mv .git .git2; mkdir -p .git/hooks; echo x > .git/hooks/new; echo y > .git/z; ls -d .git*"),
    );
    expect(inAncestor.stderr).toMatch(/Device or resource busy/);
    expect(inAncestor.stdout).toBe(".git\n");
    expect(new TextDecoder().decode(await sandbox.readFile(file.path))).toBe("kept\n");
    expect(new TextDecoder().decode(await sandbox.readFile("/workspace/.git/z"))).toBe("y\n");
  });

  test("gets no placeholder if it doesn't exist", async () => {
    const { sandbox, workspace } = await openWithHostSide({});
    await run(sandbox, ["true"], { role: "agent" });
    expect(await readdir(workspace)).toEqual([]);
  });
});

describe("the request's lists", () => {
  test("readable is read-only; the rest can be written", async () => {
    const sandbox = await openConfined(filesystem({ readable: ["docs"] }));
    await sandbox.writeFiles([{ path: "/workspace/docs/a", content: "a" }]);
    const { stdout } = await run(
      sandbox,
      shell("cat docs/a; echo x > docs/a || echo; echo x > free && echo free"),
    );
    expect(stdout).toBe("a\nfree\n");
  });

  test("only writable paths can be written", async () => {
    const sandbox = await openConfined(filesystem({ writable: ["out/made"] }));
    await sandbox.writeFiles([{ path: "/workspace/in", content: "in\n" }]);
    const { stdout } = await run(
      sandbox,
      shell(
        "cat in; echo x > in || echo; echo x > new || echo; echo x > out/new || echo; echo x > out/made/a && echo made",
      ),
    );
    expect(stdout).toBe("in\n\n\n\nmade\n");
    expect(new TextDecoder().decode(await sandbox.readFile("/workspace/out/made/a"))).toBe("x\n");
  });

  test("denied can't be read or written, even below a writable path, and even if it didn't exist", async () => {
    const sandbox = await openConfined(
      filesystem({ writable: ["out"], denied: ["key", "out/keys", "later/key"] }),
    );
    await sandbox.writeFiles([
      { path: "/workspace/key", content: "secret" },
      { path: "/workspace/out/keys/one", content: "secret" },
    ]);
    const { stdout } = await run(
      sandbox,
      shell(
        "cat key; echo x > key; ls out/keys; echo x > out/keys/two; mv out/keys out/k; echo x > later/key/a; echo x > out/free; ls out; echo ran",
      ),
    );
    expect(stdout).toBe("free\nkeys\nran\n");
    expect(new TextDecoder().decode(await sandbox.readFile("/workspace/key"))).toBe("secret");
  });

  test("a link in a listed path is refused, and its target isn't shown", async () => {
    const secret = await temporaryFolder();
    await writeFile(join(secret, "key"), "outside", { mode: 0o644 });
    const { sandbox, workspace } = await openWithHostSide(filesystem({ writable: ["out"] }));
    await rm(join(workspace, "out"), { recursive: true, force: true });
    await symlink(secret, join(workspace, "out"));
    // The control: the link leads there.
    expect(await readFile(join(workspace, "out", "key"), "utf8")).toBe("outside");
    await expect(sandbox.spawn({ argv: ["cat", "out/key"], env: {} })).rejects.toThrow(
      /without following links/,
    );
    await rm(join(workspace, "out"));
    await mkdir(join(workspace, "real"));
    await rename(join(workspace, "real"), join(workspace, "out"));
    expect((await run(sandbox, ["ls", "out"])).code).toBe(0);
  });
});

test("a listed folder that is repeatedly exchanged for a link never leads outside", async () => {
  const secret = await temporaryFolder();
  await chmod(secret, 0o755);
  await writeFile(join(secret, "key"), "outside");
  const { sandbox, workspace } = await openWithHostSide(filesystem({ writable: ["out"] }));
  await run(sandbox, ["true"]);
  const exchange = `
    const fs = require("node:fs"), [secret] = process.argv.slice(1);
    const cell = new Int32Array(new SharedArrayBuffer(4));
    // The time between checking a path and mounting it.
    const rest = () => Atomics.wait(cell, 0, 0, 1 + Math.random() * 7);
    for (;;) {
      fs.renameSync("out", "hold"); fs.symlinkSync(secret, "out"); rest();
      fs.unlinkSync("out"); fs.renameSync("hold", "out"); rest();
    }`;
  const exchanger = spawn(process.execPath, ["-e", exchange, secret], { cwd: workspace, stdio: "ignore" });
  onTestFinished(() => void exchanger.kill("SIGKILL"));
  // The control: access by name leads outside sooner or later.
  await expect
    .poll(() => readFile(join(workspace, "out", "key"), "utf8").catch(() => "not now"), { interval: 3 })
    .toBe("outside");
  const outcomes = { opened: 0, refused: 0 };
  for (let each = 0; each < 300 && (each < 25 || outcomes.opened < 3); each++) {
    const outcome = await run(sandbox, shell("cat out/key; echo x > out/written; echo ran")).catch(String);
    if (typeof outcome === "string") {
      expect(outcome).toMatch(
        /without following links|No such file|The jail can't be opened: bwrap: |was exchanged \(out\)/,
      );
      outcomes.refused++;
    } else {
      expect(outcome.stdout).toBe("ran\n");
      outcomes.opened++;
    }
  }
  expect(outcomes.opened).toBeGreaterThan(0);
  expect(await readdir(secret)).toEqual(["key"]);
});

describe("modes", () => {
  test("off: there is no workspace, not even for the runner", async () => {
    const sandbox = await openConfined(filesystem({ mode: "off" }));
    await expect(sandbox.writeFiles([{ path: "/workspace/in", content: "in" }])).rejects.toThrow(/isn't in/);
    expect((await run(sandbox, shell("echo x > made; ls"))).stdout).toBe("made\n");
    expect((await run(sandbox, shell("ls; echo ran"))).stdout).toBe("ran\n");
    await expect(sandbox.readFile("/workspace/made")).rejects.toThrow(/isn't in/);
  });
});

describe("hard links that lead outside", () => {
  async function withLink(config: object) {
    const opened = await openWithHostSide({}, config);
    const outsideFile = join(dirname(dirname(dirname(dirname(opened.workspace)))), "outside");
    await writeFile(outsideFile, "outside\n", { mode: 0o666 });
    await link(outsideFile, join(opened.workspace, "inside"));
    await writeFile(join(opened.workspace, "one"), "own");
    await link(join(opened.workspace, "one"), join(opened.workspace, "two"));
    return { ...opened, outsideFile };
  }

  test("are distinguished from links among the workspace's own files", async () => {
    const { workspace } = await withLink({});
    expect((await scanHardLinks(workspace)).outsideLinks).toEqual([{ links: 2, paths: ["inside"] }]);
  });

  test("refuse the spawn and are named", async () => {
    const { sandbox } = await withLink({});
    await expect(sandbox.spawn({ argv: ["true"], env: {}, role: "agent" })).rejects.toThrow(
      /hard links\): inside/,
    );
  });

  test("become copies if configured, so that writes stay inside", async () => {
    const { sandbox, outsideFile, workspace } = await withLink({ hardLinks: "copy" });
    const { stdout } = await run(sandbox, shell("cat inside; ls"), { role: "agent" });
    expect(stdout).toBe("outside\ninside\none\ntwo\n");
    await writeFile(join(workspace, "inside"), "changed");
    expect(await readFile(outsideFile, "utf8")).toBe("outside\n");
  });
});

test("files belong to the session's user, and are never written through a link that a process made", async () => {
  const sandbox = await openConfined();
  await sandbox.writeFiles([
    { path: "/workspace/a/b/run.sh", content: "#!/bin/sh\necho ran >> log; cat log\n", executable: true },
    { path: "/home/agent/.settings", content: "mine" },
  ]);
  expect((await run(sandbox, shell("cd a/b && ./run.sh"))).stdout).toBe("ran\n");
  expect((await run(sandbox, shell("cat $HOME/.settings"), { role: "agent" })).stdout).toBe("mine");
  await run(sandbox, shell("ln -s /etc out; ln -s ../../../../../etc/passwd file; ln -s /var home"));
  await expect(sandbox.readFile("/workspace/out/passwd")).rejects.toThrow(/without following links/);
  await expect(sandbox.readFile("/workspace/file")).rejects.toThrow(/without following links/);
  await expect(sandbox.writeFiles([{ path: "/workspace/out/x", content: "x" }])).rejects.toThrow(
    /without following links/,
  );
  await sandbox.writeFiles([{ path: "/workspace/file", content: "inside" }]);
  expect(new TextDecoder().decode(await sandbox.readFile("/workspace/file"))).toBe("inside");
});
