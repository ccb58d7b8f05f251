import type { Receipt } from "../server/client.js";

export type Capability = Receipt["required"][number];

/** Each promise in a few words. */
export const promises: Readonly<Record<Capability, string>> = {
  "network.deny": "No outbound connection succeeds",
  "network.allow-cidr": "Only listed address ranges are reached",
  "network.allow-host": "Only listed names are reached",
  "filesystem.read-only": "Nothing is written outside of scratch",
  "filesystem.workspace-only": "Nothing is written outside of the workspace",
  "filesystem.none": "There is no workspace",
  "filesystem.host-hidden": "The host's files can't be read",
  "process.contained": "No process sees another's, or outlives the run",
  "environment.named-only": "Only named variables are visible",
  "environment.per-tool": "No tool reads another's secrets",
  "resources.memory": "Memory is limited",
  "resources.processes": "Processes are limited",
  "resources.cpu": "Processors are limited",
  "resources.disk": "Disk space is limited",
  "secrets.hidden": "No credential can be read inside",
  "inbound.ports": "Only its own previews reach its ports",
};
