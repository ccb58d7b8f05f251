import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { AcpHarness } from "../../src/index.js";
import { demo } from "../../src/profiles/demo.js";
import { opencode } from "../../src/profiles/opencode.js";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "ambit-install-"));
  vi.stubEnv("XDG_DATA_HOME", folder);
  vi.stubEnv("PATH", `${join(folder, "bin")}${delimiter}${process.env.PATH}`);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

const agents = () => join(folder, "ambit", "agents");
const installation = () => new AcpHarness(opencode, { folder }).installation;

/** Replaces npm: installs these files, and records these digests. */
async function npmThatInstalls(change: (digest: string) => string): Promise<void> {
  const lock = JSON.parse(
    await readFile(new URL("../../pins/opencode/package-lock.json", import.meta.url), "utf8"),
  );
  const packages: Record<string, object> = {};
  for (const [path, { integrity }] of Object.entries<{ integrity: string }>(lock.packages)) {
    if (path !== "") packages[path] = { integrity: change(integrity) };
  }
  const script = `#!/bin/sh
mkdir -p node_modules/opencode-ai node_modules/opencode-$(${node("process.platform+'-'+process.arch")})/bin
echo '${JSON.stringify({ packages })}' > node_modules/.package-lock.json
echo '{"name":"opencode-ai","version":"1.18.33"}' > node_modules/opencode-ai/package.json
cd node_modules/opencode-$(${node("process.platform+'-'+process.arch")})
echo '{"name":"opencode-binary","version":"1.18.33"}' > package.json
touch bin/opencode
`;
  await mkdir(join(folder, "bin"));
  await writeFile(join(folder, "bin", "npm"), script, { mode: 0o755 });
}

const node = (expression: string) => `${process.execPath} -p "${expression}"`;

it("installs an agent into Ambit's data folder, and finds it there", async () => {
  await npmThatInstalls((digest) => digest);
  expect(installation()).toMatchObject({ packages: [{ name: "opencode-ai", version: "1.18.33" }] });
  expect(installation()?.installed()).toBeUndefined();
  await installation()?.install(() => {});
  expect(installation()?.installed()).toMatchObject({ version: "1.18.33", tested: "1.18.33" });
  const binary = join(agents(), "opencode/node_modules", `opencode-${process.platform}-${process.arch}`);
  await writeFile(join(binary, "package.json"), '{"name":"opencode-binary","version":"1.19.0"}');
  expect(installation()?.installed()).toMatchObject({ version: "1.19.0", tested: "1.18.33" });
  expect(await readdir(agents())).toEqual(["opencode"]);
});

it("rejects a package whose digest isn't the pinned one, and keeps the previous installation", async () => {
  const before = join(agents(), "opencode", "before");
  await mkdir(before, { recursive: true });
  await npmThatInstalls((digest) => `${digest}x`);
  await expect(installation()?.install(() => {})).rejects.toThrow("no digest of (opencode-ai");
  expect(await readdir(agents())).toEqual(["opencode"]);
  expect(await readdir(join(agents(), "opencode"))).toEqual(["before"]);
});

it.each([
  ["darwin", "arm64"],
  ["linux", "arm64"],
])("reports before any download that a binary isn't pinned for %s on %s", async (platform, arch) => {
  await npmThatInstalls((digest) => digest);
  vi.stubGlobal("process", { ...process, platform, arch, env: process.env });
  const refused = installation()?.install(() => {});
  await expect(refused).rejects.toThrow(`OpenCode is pinned for linux-x64, not for ${platform}-${arch}`);
  vi.unstubAllGlobals();
  await expect(readdir(agents())).rejects.toThrow("ENOENT");
});

it("passes on npm's output for a failure", async () => {
  await mkdir(join(folder, "bin"));
  await writeFile(join(folder, "bin", "npm"), "#!/bin/sh\necho no network >&2\nexit 3\n", { mode: 0o755 });
  const lines: string[] = [];
  await expect(installation()?.install((line) => lines.push(line))).rejects.toThrow("exit code 3");
  expect(lines).toEqual(["no network"]);
  expect(await readdir(agents())).toEqual([]);
});

it("has nothing to install for an included agent", () => {
  expect(new AcpHarness(demo, { folder }).installation).toBeUndefined();
});
