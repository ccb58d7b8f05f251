// A separate runner, to be killed: opens a sandbox with a secret, or one to be taken over, reports that, and waits.
import { DaytonaSandbox } from "../../dist/index.js";

const { settings, id, fence } = JSON.parse(process.argv[2] ?? "{}");
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
  ...(fence === undefined ? {} : { fence }),
  onDecision: () => undefined,
  log,
};
const scope = { signal: new AbortController().signal, defer: () => undefined };
const { handover } = await new DaytonaSandbox(settings).open(spec, scope);
process.stdout.write(`${handover ?? "open"}\n`);
setInterval(() => undefined, 60_000);
