import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { openAmbit, startServer, takeEnvironment } from "ambit";
import openapiTS, { astToString } from "openapi-typescript";
import { beforeAll, describe, expect, it, onTestFinished } from "vitest";

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

/** A copy of the example next to it, where its dependencies are found, with the types generated from the document. */
async function generated(document: string, main?: string): Promise<string> {
  const cache = join(example, ".cache");
  await mkdir(cache, { recursive: true });
  const folder = await mkdtemp(join(cache, "client-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  for (const name of ["src", "package.json", "tsconfig.json"])
    await cp(join(example, name), join(folder, name), { recursive: true });
  await mkdir(join(folder, "generated"));
  await writeFile(join(folder, "generated/schema.d.ts"), astToString(await openapiTS(document)));
  if (main !== undefined) await writeFile(join(folder, "src/main.ts"), main);
  return folder;
}

describe("a client that a generator makes", () => {
  let url: string;
  let document: string;

  beforeAll(async () => {
    const configuration = { plugins: ["@ambit/sandbox-local", "@ambit/harness-acp", "@ambit/mcp-http"] };
    const environment = takeEnvironment({ AMBIT_PORT: "0" });
    const server = await startServer(await openAmbit({ environment, configuration, logLevel: "silent" }));
    url = server.url;
    document = await (await fetch(`${url}/openapi.json`)).text();
    return () => server.close();
  });

  it("compiles, and talks to the server", async () => {
    const folder = await generated(document);
    expect(await run(tsc, ["-p", "."], folder)).toEqual({ code: 0, output: "" });
    const { code, output } = await run(join(folder, "dist/main.js"), [url], folder);
    expect(output.trim().split("\n")).toEqual([
      "said: hello",
      "refused: request_invalid messages",
      "streamed: true true",
      "cancelled: cancelled",
    ]);
    expect(code).toBe(0);
  }, 60_000);

  it.each([
    ["a misspelled boundary", `{ sandboxPermision: { network: "off" } }`, "sandboxPermision"],
    ["a mode that there isn't", `{ sandboxPermission: { network: { mode: "none" } } }`, "none"],
    ["a tool without a name", `{ customTools: [{ callRef: "a" }] }`, "name"],
  ])(
    "doesn't compile with %s",
    async (_what, body, named) => {
      const main = `import type { components } from "../generated/schema.js";
      export const request: components["schemas"]["RunRequest"] = ${body};`;
      const { code, output } = await run(tsc, ["-p", "."], await generated(document, main));
      expect(code).not.toBe(0);
      expect(output).toContain(named);
    },
    60_000,
  );
});
