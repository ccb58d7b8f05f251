import type { Capability } from "@ambit/core/plugin";
import type { Attack, NonEmptyArray } from "./attack.js";
import { environmentNamedOnly } from "./environment-named-only.js";
import { environmentPerTool } from "./environment-per-tool.js";
import { filesystemHostHidden } from "./filesystem-host-hidden.js";
import { filesystemNone } from "./filesystem-none.js";
import { filesystemReadOnly } from "./filesystem-read-only.js";
import { filesystemWorkspaceOnly } from "./filesystem-workspace-only.js";
import { inboundPorts } from "./inbound-ports.js";
import { networkAllowCidr } from "./network-allow-cidr.js";
import { networkAllowHost } from "./network-allow-host.js";
import { networkDeny } from "./network-deny.js";
import { processContained } from "./process-contained.js";
import { resourcesCpu } from "./resources-cpu.js";
import { resourcesDisk } from "./resources-disk.js";
import { resourcesMemory } from "./resources-memory.js";
import { resourcesProcesses } from "./resources-processes.js";
import { secretsHidden } from "./secrets-hidden.js";

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
