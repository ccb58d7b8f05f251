import { searchPath } from "@ambit/attacks";
import type { SandboxBackend } from "@ambit/core/plugin";
import { KitScope, silentLog } from "./kit-scope.js";
import type { RunnerRequest } from "./runner-process.js";

/** The program of a runner in a separate process: `node runner-main.js <request as JSON>`. */
const request: RunnerRequest = JSON.parse(process.argv[2] ?? "{}");
const module: { default: () => SandboxBackend } = await import(request.module);
const scope = new KitScope();
const backend = module.default();
// Without a probe, like a runner that has kept evidence.
const sandbox = await backend.open(
  {
    id: request.id,
    boundary: request.boundary,
    required: request.required,
    ...(request.fence === undefined ? {} : { fence: request.fence }),
    requiredPaths: [],
    onDecision: () => undefined,
    log: silentLog,
  },
  scope,
);
if (sandbox.handover !== undefined) process.stdout.write(`handover ${sandbox.handover}\n`);
const started = await sandbox.spawn({ argv: request.argv, env: { PATH: searchPath } });
const forward = async (from: ReadableStream<Uint8Array>, to: NodeJS.WriteStream) => {
  for await (const chunk of from) to.write(chunk);
};
const [{ code }] = await Promise.all([
  started.exit,
  forward(started.stdout, process.stdout),
  forward(started.stderr, process.stderr),
]);
await sandbox.close();
await scope.close();
process.exitCode = code ?? 1;
