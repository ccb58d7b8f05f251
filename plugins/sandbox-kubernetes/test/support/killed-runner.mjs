/** A runner that opens a pod, says so, and is killed. Its settings are its argument. With gates, it says its gate too. */
import { probeSpec } from "@ambit/backend-kit";
import { configSchema, KubernetesSandbox } from "@ambit/sandbox-kubernetes";

const config = configSchema.parse(JSON.parse(process.argv[2] ?? ""));
const backend = new KubernetesSandbox(config);
const scope = { signal: new AbortController().signal, defer: () => undefined };
const mode = config.egress === "gate" ? "allowlist" : "off";
const sandbox = await backend.open({ ...probeSpec({ network: { mode, rules: [] } }), id: "killed" }, scope);
await sandbox.spawn({ argv: ["/bin/sleep", "86400"], env: {}, signal: scope.signal });
console.log([sandbox.evidence["kubernetes.pod"], sandbox.evidence["kubernetes.gate"]].join(" ").trim());
setInterval(() => undefined, 1_000);
