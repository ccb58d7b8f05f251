/** A runner that only starts jails, so that a test may kill it during a start. */
import { configSchema, LocalSandbox } from "../../dist/index.js";

const [config, spec] = process.argv.slice(2).map((text) => JSON.parse(text));
const nothing = () => undefined;
const log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
const backend = new LocalSandbox(configSchema.parse(config));
const scope = { signal: new AbortController().signal, defer: nothing };
const sandbox = await backend.open({ ...spec, onDecision: nothing, log }, scope);
process.stdout.write("up\n");
const startForEver = async () => {
  for (;;) {
    const started = await sandbox.spawn({ argv: ["/bin/sh", "-c", ":"], env: { PATH: "/usr/bin:/bin" } });
    await started.exit;
  }
};
await Promise.all([1, 2, 3, 4].map(startForEver));
