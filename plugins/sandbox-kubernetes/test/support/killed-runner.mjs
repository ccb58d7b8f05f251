/** A runner that opens a pod, says so, and is killed. Its settings are its argument. */
import { probeSpec } from "@ambit/backend-kit";
import { configSchema, KubernetesSandbox } from "@ambit/sandbox-kubernetes";

const backend = new KubernetesSandbox(configSchema.parse(JSON.parse(process.argv[2] ?? "")));
const scope = { signal: new AbortController().signal, defer: () => undefined };
const sandbox = await backend.open(
  { ...probeSpec({ network: { mode: "off", rules: [] } }), id: "killed" },
  scope,
);
await sandbox.spawn({ argv: ["/bin/sleep", "86400"], env: {}, signal: scope.signal });
console.log(sandbox.evidence["kubernetes.pod"]);
setInterval(() => undefined, 1_000);
