import type { Capability } from "@ambit/core/plugin";
import type { Attack, NonEmptyArray } from "./attack.js";
import { environmentNamedOnly } from "./environment-named-only/index.js";
import { environmentPerTool } from "./environment-per-tool/index.js";
import { filesystemHostHidden } from "./filesystem-host-hidden/index.js";
import { filesystemNone } from "./filesystem-none/index.js";
import { filesystemReadOnly } from "./filesystem-read-only/index.js";
import { filesystemWorkspaceOnly } from "./filesystem-workspace-only/index.js";
import { inboundPorts } from "./inbound-ports/index.js";
import { networkAllowCidr } from "./network-allow-cidr/index.js";
import { networkAllowHost } from "./network-allow-host/index.js";
import { networkDeny } from "./network-deny/index.js";
import { processContained } from "./process-contained/index.js";
import { resourcesCpu } from "./resources-cpu/index.js";
import { resourcesDisk } from "./resources-disk/index.js";
import { resourcesMemory } from "./resources-memory/index.js";
import { resourcesProcesses } from "./resources-processes/index.js";
import { secretsHidden } from "./secrets-hidden/index.js";

/** Every attack, by the capability that it tests. A capability without one doesn't compile. */
export const attacks: Readonly<Record<Capability, NonEmptyArray<Attack>>> = {
  "network.deny": networkDeny,
  "network.allow-cidr": networkAllowCidr,
  "network.allow-host": networkAllowHost,
  "filesystem.read-only": filesystemReadOnly,
  "filesystem.workspace-only": filesystemWorkspaceOnly,
  "filesystem.none": filesystemNone,
  "filesystem.host-hidden": filesystemHostHidden,
  "process.contained": processContained,
  "environment.named-only": environmentNamedOnly,
  "environment.per-tool": environmentPerTool,
  "resources.memory": resourcesMemory,
  "resources.processes": resourcesProcesses,
  "resources.cpu": resourcesCpu,
  "resources.disk": resourcesDisk,
  "secrets.hidden": secretsHidden,
  "inbound.ports": inboundPorts,
};
