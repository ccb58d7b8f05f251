// A separate runner, to be killed: opens a sandbox, reports that, and waits.
import { configSchema, DockerSandbox } from "../../dist/index.js";

const { settings, id } = JSON.parse(process.argv[2] ?? "{}");
const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const spec = {
  id,
  boundary: {
    network: { mode: "off", rules: [] },
    filesystem: { mode: "workspace", readable: [], writable: [], denied: [] },
    resources: {},
    secrets: "visible",
    enforcement: "strict",
  },
  required: [],
  requiredPaths: [],
  onDecision: () => undefined,
  log,
};
const scope = { signal: new AbortController().signal, defer: () => undefined };
await new DockerSandbox(configSchema.parse(settings)).open(spec, scope);
process.stdout.write("open\n");
setInterval(() => undefined, 60_000);
