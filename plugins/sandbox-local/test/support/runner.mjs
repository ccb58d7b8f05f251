/** A runner in a separate process, so that a test may kill it: opens a sandbox, starts a daemon, and waits. */
import { configSchema, LocalSandbox } from "../../dist/index.js";

const [config, spec, script] = process.argv.slice(2).map((text) => JSON.parse(text));
const nothing = () => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const backend = new LocalSandbox(configSchema.parse(config));
const scope = { signal: new AbortController().signal, defer: nothing };
const sandbox = await backend.open({ ...spec, onDecision: nothing, log }, scope);
const started = await sandbox.spawn({
  argv: ["/bin/sh", "-c", script],
  env: { PATH: "/usr/local/bin:/usr/bin:/bin" },
});
const reader = started.stdout.getReader();
const { value } = await reader.read();
process.stdout.write(
  `${JSON.stringify({ said: new TextDecoder().decode(value), evidence: started.evidence, remains: sandbox.remains })}\n`,
);
// A voluntary exit with the sandbox still open.
process.on("SIGUSR2", () => process.exit(0));
setInterval(nothing, 1_000);
