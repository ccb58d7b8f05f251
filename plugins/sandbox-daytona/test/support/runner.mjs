// A runner of its own, to be killed: opens a sandbox with a secret, says so, and waits.
import { DaytonaSandbox } from "../../dist/index.js";

const { settings, id } = JSON.parse(process.argv[2] ?? "{}");
const log = { debug: () => undefined, info: () => undefined, warn: () => undefined, error: () => undefined };
const spec = {
  id,
  boundary: {
    network: { mode: "allowlist", rules: [{ kind: "host", name: "name.example.test", subdomains: false }] },
    filesystem: { mode: "on", readable: [], writable: [], denied: [] },
    resources: {},
    secrets: "hidden",
    enforcement: "strict",
  },
  required: [],
  requiredPaths: [],
  secrets: [{ name: "KEY", value: "value", hosts: ["name.example.test"] }],
  onDecision: () => undefined,
  log,
};
const scope = { signal: new AbortController().signal, defer: () => undefined };
await new DaytonaSandbox(settings).open(spec, scope);
process.stdout.write("open\n");
setInterval(() => undefined, 60_000);
