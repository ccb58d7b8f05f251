import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openAmbit, startServer, takeEnvironment } from "ambit";
import openapiTS, { astToString } from "openapi-typescript";
import { beforeAll, describe, expect, it, onTestFinished, vi } from "vitest";

const example = dirname(dirname(fileURLToPath(import.meta.url)));
const tsc = fileURLToPath(new URL("../bin/tsc", import.meta.resolve("typescript")));

interface Ended {
  readonly code: number;
  readonly output: string;
}

function run(file: string, args: readonly string[], folder: string): Promise<Ended> {
  return new Promise((resolve) => {
    execFile(process.execPath, [file, ...args], { cwd: folder }, (error, stdout, stderr) => {
      resolve({
        code: typeof error?.code === "number" ? error.code : error === null ? 0 : 1,
        output: stdout + stderr,
      });
    });
  });
}

/**
 * A copy of the example next to it, where its dependencies are found, with the types generated from the document.
 *
 * @param sources in place of its own.
 */
async function copyWith(types: string, sources?: Readonly<Record<string, string>>): Promise<string> {
  const cache = join(example, ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "client-"));
  for (const name of ["package.json", "tsconfig.json"]) await cp(join(example, name), join(folder, name));
  await mkdir(join(folder, "generated"));
  await writeFile(join(folder, "generated/schema.d.ts"), types);
  if (sources === undefined) await cp(join(example, "src"), join(folder, "src"), { recursive: true });
  else await mkdir(join(folder, "src"));
  for (const [name, source] of Object.entries(sources ?? {}))
    await writeFile(join(folder, "src", name), source);
  return folder;
}

describe("a client that a generator makes", () => {
  const token = "a-token-of-this-test";
  let url: string;
  let types: string;

  beforeAll(async () => {
    const configuration = { plugins: ["@ambit/sandbox-local", "@ambit/harness-acp", "@ambit/mcp-http"] };
    const environment = takeEnvironment({ AMBIT_PORT: "0", AMBIT_TOKEN: token });
    const server = await startServer(await openAmbit({ environment, configuration, logLevel: "silent" }));
    url = server.url;
    types = astToString(await openapiTS(await (await fetch(`${url}/openapi.json`)).text()));
    return () => server.close();
  });

  it("compiles, and talks to the server", async () => {
    const folder = await copyWith(types);
    onTestFinished(() => rm(folder, { recursive: true }));
    expect(await run(tsc, ["-p", "."], folder)).toEqual({ code: 0, output: "" });
    vi.stubEnv("AMBIT_TOKEN", token);
    onTestFinished(() => void vi.unstubAllEnvs());
    const { code, output } = await run(join(folder, "dist/main.js"), [url], folder);
    expect(output.trim().split("\n")).toEqual([
      "said: hello",
      "refused: request_invalid messages",
      "streamed: true true",
      "cancelled: cancelled",
    ]);
    expect(code).toBe(0);
  }, 60_000);

  it("has the types that @ambit/client has", async () => {
    const document: object = JSON.parse(await (await fetch(`${url}/openapi.json`)).text());
    const generated = astToString(
      await openapiTS(JSON.stringify({ ...document, paths: {} }), { emptyObjectsUnknown: true }),
    );
    const contract = fileURLToPath(new URL("../src/contract.ts", import.meta.resolve("@ambit/client")));
    // `npm test -- examples/client -u` writes it again.
    await expect(generated).toMatchFileSnapshot(contract);
  });

  describe("compiled together,", () => {
    const wrong = [
      ["a misspelled boundary", `{ sandboxPermision: { network: "off" } }`, "sandboxPermision"],
      ["a mode that there isn't", `{ sandboxPermission: { network: { mode: "none" } } }`, "none"],
      ["a tool without a name", `{ customTools: [{ callRef: "a" }] }`, "name"],
    ] as const;
    const right = `{ sandboxPermission: { network: "off" } }`;
    const fileOf = (body: string) => `${[...wrong.map(([, given]) => given), right].indexOf(body)}.ts`;
    const sourceOf = (body: string) => `import type { components } from "../generated/schema.js";
export const request: components["schemas"]["RunRequest"] = ${body};`;
    let output: string;

    beforeAll(async () => {
      const bodies = [...wrong.map(([, body]) => body), right];
      const sources = Object.fromEntries(bodies.map((body) => [fileOf(body), sourceOf(body)]));
      const folder = await copyWith(types, sources);
      const ended = await run(tsc, ["-p", ".", "--pretty", "false"], folder);
      expect(ended.code).not.toBe(0);
      ({ output } = ended);
      await rm(folder, { recursive: true });
    }, 60_000);
    /** What the compiler reports on that file: an error begins with the file's name, and its details are indented. */
    const reportsOn = (file: string) =>
      output.split(/\n(?=\S)/).filter((report) => report.startsWith(`src/${file}(`));

    it.each(wrong)("%s is an error", (_what, body, named) => {
      expect(reportsOn(fileOf(body)).join("\n")).toContain(named);
    });

    it("a valid request is none", () => {
      expect(reportsOn(fileOf(right))).toEqual([]);
    });
  });
});
