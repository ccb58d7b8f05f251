// A runner in a separate process: one session, with one jail after the other. Prints what each wrote, as JSON.
import { configSchema, LocalSandbox } from "../../dist/index.js";

const [config, spec, scripts, role] = process.argv.slice(2).map((text) => JSON.parse(text));
const log = { debug() {}, info() {}, warn() {}, error() {} };
const scope = { signal: new AbortController().signal, defer: () => undefined };
const backend = new LocalSandbox(configSchema.parse(config));
const sandbox = await backend.open({ ...spec, log, onDecision: () => undefined }, scope);
const written = [];
for (const script of scripts) {
  const started = await sandbox.spawn({
    argv: ["/bin/sh", "-c", script],
    env: { PATH: "/usr/bin:/bin" },
    role,
  });
  written.push(await new Response(started.stdout).text());
  await started.exit;
}
await sandbox.close();
console.log(JSON.stringify(written));
