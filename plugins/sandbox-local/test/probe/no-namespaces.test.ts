// needs: jail
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { claims } from "../../src/claims.js";
import { closed, everythingOn, openConfined, run } from "../support/specs.js";

const repository = fileURLToPath(new URL("../../../../", import.meta.url)).replace(/\/$/, "");
const built = fileURLToPath(new URL("../../dist/index.js", import.meta.url));

const program = (boundary: object, restricted: object) => `
  import { configSchema, LocalSandbox } from ${JSON.stringify(built)};
  const nothing = () => undefined;
  const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
  const scope = { signal: new AbortController().signal, defer: nothing };
  const open = async (id, boundary, config) => {
    const backend = new LocalSandbox(configSchema.parse({ dataFolder: "/tmp/data", ...config }));
    try {
      const spec = { id, boundary, required: [], requiredPaths: [], onDecision: nothing, log };
      const sandbox = await backend.open(spec, scope);
      await sandbox.close();
      return sandbox.confinement;
    } catch (error) {
      return error.message;
    }
  };
  const backend = new LocalSandbox(configSchema.parse({ dataFolder: "/tmp/data" }));
  console.log(JSON.stringify({
    findings: await backend.probe(AbortSignal.timeout(10_000)),
    restricted: await open("restricted", ${JSON.stringify(restricted)}, {}),
    free: await open("free", ${JSON.stringify(boundary)}, {}),
    refused: await open("refused", ${JSON.stringify(boundary)}, { unconfined: "refuse" }),
  }));`;

test("without namespaces, as in a default container, nothing is proven and every boundary is refused", async () => {
  // One of Ambit's jails is such a place: its filter refuses what a default container's refuses.
  const sandbox = await openConfined({}, { config: { readOnlyMounts: [repository] } });
  const script = program(everythingOn, closed);
  const { stdout, stderr } = await run(sandbox, [process.execPath, "--input-type=module", "-e", script]);
  expect(stderr).toBe("");
  const { findings, restricted, free, refused } = JSON.parse(stdout);
  expect(findings.map(({ capability }: { capability: string }) => capability).sort()).toEqual(
    [...claims].sort(),
  );
  for (const finding of findings) {
    expect(finding).toMatchObject({
      proven: false,
      reason: expect.stringMatching(/bwrap: .*namespace/),
      fix: expect.stringContaining("seccomp=unconfined"),
    });
  }
  expect(restricted).toMatch(/bwrap: .*namespace/);
  expect(free).toBe("unconfined");
  expect(refused).toMatch(/bwrap: .*namespace/);
});
