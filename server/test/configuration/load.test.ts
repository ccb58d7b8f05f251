import { mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { defaultPlugins } from "../../src/configuration/defaults.js";
import { takeEnvironment } from "../../src/configuration/environment.js";
import { loadSettings } from "../../src/configuration/load.js";
import { configurationJsonSchema } from "../../src/configuration/schema.js";

async function folderWith(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "ambit-configuration-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const [path, content] of Object.entries(files)) {
    await mkdir(join(folder, path, ".."), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return folder;
}

const load = (folder: string, variables: NodeJS.ProcessEnv = {}, overrides = {}) =>
  loadSettings(takeEnvironment(variables), overrides, { folder });

describe("loadSettings", () => {
  it("has a default for everything, and Ambit's own plugins", async () => {
    const settings = await load(await folderWith({}));
    expect(settings).toMatchObject({
      plugins: defaultPlugins,
      server: { host: "127.0.0.1", port: 8765, allowedHosts: [], drainMs: 10_000 },
      permissionCeiling: [],
      token: undefined,
      file: undefined,
    });
  });

  it.each([
    ["ambit.config.json", '{"server":{"port":1}}'],
    ["ambit.config.mjs", "export default { server: { port: 1 } }"],
  ])("finds %s", async (name, content) => {
    const folder = await folderWith({ [name]: content });
    expect(await load(folder)).toMatchObject({ server: { port: 1 }, file: join(folder, name) });
  });

  it.each([
    ["there", ".", "."],
    ["in a folder of it", ".", "inner"],
    ["there, by a link", "link", "."],
  ])("takes none from a folder that an agent changes, unless it is named: %s", async (_where, copied, at) => {
    const folder = await folderWith({ [join(at, "ambit.config.mjs")]: "throw new Error('it ran')" });
    await symlink(folder, join(folder, "link"));
    const source = { folder: join(folder, at), copied: join(folder, copied) };
    const found = join(folder, at, "ambit.config.mjs");
    await expect(loadSettings(takeEnvironment({}), {}, source)).rejects.toThrow(
      `${found}: lies in the folder that the agent's changes are for, and would run outside the sandbox: if you trust it, add --config ${found}`,
    );
    await expect(loadSettings(takeEnvironment({}), { config: found }, source)).rejects.toThrow("it ran");
  });

  it("takes none whose link leads into such a folder", async () => {
    const copied = await folderWith({ "mine.json": "{}" });
    const folder = await folderWith({});
    await symlink(join(copied, "mine.json"), join(folder, "ambit.config.json"));
    const source = { folder, copied };
    await expect(loadSettings(takeEnvironment({}), {}, source)).rejects.toThrow("lies in the folder");
  });

  it("takes one beside such a folder", async () => {
    const folder = await folderWith({
      "ambit.config.json": '{"server":{"port":1}}',
      "project/a": "",
      "p/b": "",
    });
    const source = { folder, copied: join(folder, "p") };
    expect(await loadSettings(takeEnvironment({}), {}, source)).toMatchObject({ server: { port: 1 } });
  });

  it("never ignores a key similar to a boundary's name", async () => {
    const folder = await folderWith({
      "ambit.config.json": '{"contract":{"ignoredKeys":["uiHints","sandboxPermision"]}}',
    });
    await expect(load(folder)).rejects.toThrow(
      "contract.ignoredKeys[1] `sandboxPermision` is too close to what restricts a run or carries a credential (sandboxPermission)",
    );
  });

  it.each([
    [
      "a.json",
      '{\n  "plugins": [\n    "x",\n  ]\n}',
      "a.json: is not JSON: line 4, column 3: Value expected",
    ],
    ["a.json", '{\n  "log": x\n}', "is not JSON: line 2, column 10: Invalid symbol"],
  ])("names the line of a syntax error in %s", async (config, content, message) => {
    const folder = await folderWith({ [config]: content });
    await expect(load(folder, {}, { config })).rejects.toThrow(message);
  });

  it.each([
    ["@ambit/sandbox-locl", 'did you mean "@ambit/sandbox-local"?'],
    ["sandbox-local", 'did you mean "@ambit/sandbox-local"?'],
    ["@ambit/sandbox-daytona", /^install it next to the configuration: npm install @ambit\/sandbox-daytona$/],
    [
      "my-plugin",
      "check the name; if it is right, install it next to the configuration: npm install my-plugin",
    ],
  ])("says what to do about the plugin %s that isn't found", async (name, fix) => {
    const folder = await folderWith({ "ambit.config.json": JSON.stringify({ plugins: [name] }) });
    const { importPlugin } = await load(folder);
    await expect(importPlugin(name)).rejects.toMatchObject({ fix: expect.stringMatching(fix) });
  });

  it("prefers --config to AMBIT_CONFIG, and arguments to variables to the file", async () => {
    const folder = await folderWith({
      "a.json": '{"server":{"host":"127.0.0.2","port":1},"log":{"level":"error"}}',
      "b.json": '{"server":{"port":9}}',
    });
    const variables = { AMBIT_CONFIG: "b.json", AMBIT_PORT: "2", AMBIT_LOG_LEVEL: "debug" };
    expect(await load(folder, variables, { config: "a.json" })).toMatchObject({
      server: { host: "127.0.0.2", port: 2 },
      logLevel: "debug",
    });
    expect(await load(folder, variables, { port: 3 })).toMatchObject({ server: { port: 3 } });
  });

  it("adds the environment's denials to the file's", async () => {
    const folder = await folderWith({ "ambit.config.json": '{"permissions":{"deny":["Bash"]}}' });
    expect((await load(folder, { AMBIT_DENY_PERMISSIONS: "write" })).permissionCeiling).toEqual([
      "Bash",
      "write",
    ]);
    expect((await load(folder, { AMBIT_DENY_PERMISSIONS: "true" })).permissionCeiling).toBe(true);
  });

  it.each([
    ['{"sever":{}}', "sever is not a known setting: did you mean `server`?"],
    ['{"server":{"prot":1}}', "server.prot is not a known setting: did you mean `port`?"],
    ['{"limits":{"idelMs":1}}', "limits.idelMs is not a known setting: did you mean `idleMs`?"],
    ['{"server":{"port":-1}}', "server.port must be 0 or more"],
    ['{"server":{"port":"80"}}', "server.port must be a number, not a string"],
    ['{"server":{"port":1.5}}', "server.port must be a whole number"],
    ['{"server":{"host":""}}', "server.host must not be empty"],
    ['{"server":8765}', "server must be an object, not a number"],
    ['{"server":{"auth":"nine"}}', 'server.auth must be one of "token", "none"; did you mean "none"?'],
    ['{"limits":{"concurrentRuns":null}}', "limits.concurrentRuns must be a number, not null"],
    ['{"plugins":"@ambit/sandbox-local"}', "plugins must be a list, not a string"],
    ['{"log":{"level":"loud"}}', 'log.level must be one of "debug"'],
    ['{"permissions":{"deny":"Bash"}}', "permissions.deny must be true, or a list, not a string"],
    ['{"tokens":[{"project":"one"}]}', "tokens[0].token is required: a string"],
    ['{"tokens":[{"token":"x","project":"one"}]}', "`ambit token` makes both"],
    ['{"require":{"network":"on"}}', 'require.network must be one of "allowlist", "off"'],
    [
      '{"server":{"xyz":1}}',
      "server.xyz is not a known setting: known are host, auth, port, console, allowedHosts",
    ],
    ['{"permissions":{"deny":["Bash(rm *)"]}}', "Name(prefix:*)"],
    [
      '{"permissions":{"deny":["Bash","mcp__*"]}}',
      "permissions.deny[1] must name the tool: a name has no wildcard",
    ],
    ['{"permissions":{"deny":["*(rm:*)"]}}', "permissions.deny[0] must name the tool"],
    ['{"server":{"preview":{"url":"https://*.a.example"}}}', "server.preview.port is needed beside `url`"],
    ["{", "is not JSON"],
    ['// A comment.\n{"server":{"port":1},}', "is not JSON: line 2, column 22"],
  ])("says what is wrong with %s", async (content, message) => {
    const folder = await folderWith({ "ambit.config.json": content });
    await expect(load(folder)).rejects.toThrow(message);
  });

  it("notices a health listener's host that has no port", async () => {
    const [folder, withPort] = [
      await folderWith({ "ambit.config.json": "{}" }),
      await folderWith({ "ambit.config.json": '{"server":{"health":{"port":0}}}' }),
    ];
    const host = { AMBIT_HEALTH_HOST: "0.0.0.0" };
    expect((await load(folder, host)).notices).toEqual([
      "AMBIT_HEALTH_HOST has no effect without a port: set AMBIT_HEALTH_PORT too, or unset it",
    ]);
    expect((await load(folder, { ...host, AMBIT_HEALTH_PORT: "0" })).notices).toEqual([]);
    expect((await load(withPort, host)).notices).toEqual([]);
  });

  it("reads JSON with comments", async () => {
    const text = '// As on the page.\n{ "server": { "port": 1 /* one */, "allowedHosts": ["//not-one"] } }';
    const { server } = await load(await folderWith({ "ambit.config.json": text }));
    expect(server).toMatchObject({ port: 1, allowedHosts: ["//not-one"] });
  });

  it("reports all problems at once", async () => {
    const folder = await folderWith({ "ambit.config.json": '{"sever":{},"server":{"prot":1,"port":-1}}' });
    await expect(load(folder)).rejects.toMatchObject({ problems: { length: 3 } });
  });

  it.each([
    [{ "ambit.config.json": "{}", "ambit.config.mjs": "" }, {}, "keep one"],
    [{}, { config: "none.json" }, "none.json: there is no such file"],
    [{ "a.yaml": "" }, { config: "a.yaml" }, "must be a .mjs, .js or .json file"],
    [{ "a.mjs": "export const plugins = []" }, { config: "a.mjs" }, "has no default export"],
    [{ "ambit.config.json": '{"plugins":[{"usse":"x"}]}' }, {}, "must be a package's name, a plugin"],
    [{ "a.mjs": "throw new Error('broken')" }, { config: "a.mjs" }, "can't be imported: broken"],
  ])("refuses what can't be read: %o %o", async (files, overrides, message) => {
    await expect(load(await folderWith(files), {}, overrides)).rejects.toThrow(message);
  });

  it("imports a package by name from the configuration's folder, not from Ambit's", async () => {
    const folder = await folderWith({
      "ambit.config.json": '{"plugins":["my-plugin"]}',
      "node_modules/my-plugin/package.json": '{"name":"my-plugin","type":"module","exports":"./index.js"}',
      "node_modules/my-plugin/index.js": "export default { mine: true }",
    });
    const { importPlugin } = await load(folder);
    expect(await importPlugin("my-plugin")).toEqual({ mine: true });
    await expect(importPlugin("vitest-is-ours-not-theirs")).rejects.toThrow("no package of that name");
  });

  it("publishes its schema", () => {
    expect(configurationJsonSchema()).toMatchObject({
      type: "object",
      additionalProperties: false,
      properties: { server: { properties: { port: { default: 8765 } } } },
    });
  });
});
