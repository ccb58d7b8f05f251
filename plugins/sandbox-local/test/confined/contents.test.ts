// needs: jail
import { expect, test } from "vitest";
import { openConfined, path, run } from "../support/specs.js";

test("a sandbox shows its files and processes from outside, without the jail's own", async () => {
  const sandbox = await openConfined();
  expect(await sandbox.contents?.()).toEqual({ files: [], processes: 0 });
  await sandbox.writeFiles([{ path: `${sandbox.home}/.config/known`, content: "" }]);
  const script = `mkdir -p a/b && touch a/b/c && ln -s /etc "$HOME/link" && (sleep 60 & setsid sleep 60 &) && echo up && cat`;
  const agent = await sandbox.spawn({ argv: ["/bin/sh", "-c", script], env: { PATH: path }, role: "agent" });
  const reader = agent.stdout.getReader();
  await reader.read();
  const { files = [] } = (await sandbox.contents?.()) ?? {};
  expect(files.toSorted()).toEqual(
    [
      ...["a", "a/b", "a/b/c"].map((name) => `${sandbox.workspace}/${name}`),
      ...[".config", ".config/known", "link"].map((name) => `${sandbox.home}/${name}`),
    ].toSorted(),
  );
  // The shell and `cat`, which it starts now, are one each; what left its parent counts too.
  await expect.poll(async () => (await sandbox.contents?.())?.processes).toBe(4);
  await agent.kill();
  expect((await sandbox.contents?.())?.processes).toBe(0);
});

test("it shows a thousand files at most", async () => {
  const sandbox = await openConfined();
  await run(sandbox, ["sh", "-c", "mkdir many && cd many && seq 1 1500 | xargs touch"]);
  expect((await sandbox.contents?.())?.files.length).toBe(1_000);
});
