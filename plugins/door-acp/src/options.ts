import { parseArgs } from "node:util";
import type { RunRequest } from "@ambit/client";
import { isJsonObject, RequestInvalid } from "@ambit/core/plugin";

type Permission = NonNullable<RunRequest["sandboxPermission"]>;
type Filesystem = Exclude<Permission["filesystem"], string | undefined>;
type Mode = NonNullable<NonNullable<RunRequest["permissions"]>["default"]>;

/** What the command line says. */
export interface CommandOptions {
  /** The request without its messages. */
  readonly template: RunRequest;
  readonly models: readonly string[];
  /** Whether the editor's MCP servers are left out. */
  readonly withoutMcp: boolean;
}

const permissionModes: readonly Mode[] = ["allow", "allow_reads", "ask", "deny"];

const options = {
  agent: { type: "string" },
  sandbox: { type: "string" },
  model: { type: "string", multiple: true },
  network: { type: "string" },
  filesystem: { type: "string" },
  memory: { type: "string" },
  secrets: { type: "string" },
  boundary: { type: "string" },
  permissions: { type: "string" },
  "without-mcp": { type: "boolean" },
} as const;

/** Milliseconds that a question waits for the editor's user: a day. */
const waitMs = 86_400_000;

/**
 * The words after `ambit acp`, over the configuration's request. The boundary that they leave open is that of `ambit run`: no
 * network, and no writing outside of the folder.
 * @throws RequestInvalid that names the option
 */
export function optionsOf(words: readonly string[], configured: RunRequest): CommandOptions {
  const { values } = parsed(words);
  const { agent, sandbox, model: models = [], permissions } = values;
  const [model] = models;
  const mode = permissionModes.find((one) => one === permissions);
  if (permissions !== undefined && mode === undefined)
    throw invalid("--permissions", `must be one of ${permissionModes.join(", ")}`);
  const template: RunRequest = {
    interactions: { waitMs },
    ...configured,
    ...(agent === undefined ? {} : { harness: agent }),
    ...(sandbox === undefined ? {} : { sandbox }),
    ...(model === undefined ? {} : { model }),
    ...(mode === undefined ? {} : { permissions: { ...configured.permissions, default: mode } }),
    sandboxPermission: boundaryOf(values, configured.sandboxPermission),
  };
  return { template, models, withoutMcp: values["without-mcp"] === true };
}

function parsed(words: readonly string[]) {
  try {
    return parseArgs({ args: [...words], options, strict: true, allowPositionals: false });
  } catch (error) {
    const optionNames = Object.keys(options).map((name) => `--${name}`);
    const message = `${error instanceof Error ? error.message : String(error)}. The options are ${optionNames.join(", ")}`;
    throw invalid("arguments", message);
  }
}

type Values = ReturnType<typeof parsed>["values"];

function boundaryOf(
  { network, filesystem, memory, secrets, boundary }: Values,
  configured: Permission = {},
): Permission {
  const boundaryPermission = boundary === undefined ? configured : permissionIn(boundary);
  const memoryMb = memory === undefined ? undefined : Number(memory);
  return {
    ...boundaryPermission,
    network: network === undefined ? (boundaryPermission.network ?? "off") : networkOf(network),
    filesystem:
      modeOf("--filesystem", filesystem, ["workspace", "readonly"] as const) ??
      boundaryPermission.filesystem ??
      "workspace",
    ...(memoryMb === undefined ? {} : { resources: { ...boundaryPermission.resources, memoryMb } }),
    ...(secrets === undefined
      ? {}
      : { secrets: modeOf("--secrets", secrets, ["hidden", "visible"] as const) }),
  };
}

/** It is validated with the request. */
function permissionIn(text: string): Permission {
  try {
    const value: unknown = JSON.parse(text);
    if (isJsonObject(value)) return value;
  } catch {
    // It is no JSON.
  }
  throw invalid("--boundary", 'must be a JSON object, as sandboxPermission of a request: {"network":"off"}');
}

function networkOf(text: string): NonNullable<Permission["network"]> {
  if (text === "on" || text === "off") return text;
  return { allowlist: text.split(",").map((entry) => entry.trim()) };
}

function modeOf<Mode extends string>(
  option: string,
  value: string | undefined,
  modes: readonly Mode[],
): Mode | undefined {
  if (value === undefined) return undefined;
  const mode = modes.find((one) => one === value);
  if (mode === undefined) throw invalid(option, `must be one of ${modes.join(", ")}`);
  return mode;
}

const invalid = (path: string, message: string) => new RequestInvalid([{ path, message }]);

/** The request in a folder of the user's, whose paths that git runs or reads can't be written. Pure. */
export function inFolder(
  request: RunRequest,
  { readable, denied }: { readonly readable: readonly string[]; readonly denied: readonly string[] },
): RunRequest {
  const { sandboxPermission = {} } = request;
  const { filesystem } = sandboxPermission;
  const workspaceFilesystem: Filesystem | undefined =
    filesystem === "workspace"
      ? { mode: filesystem }
      : typeof filesystem === "object"
        ? filesystem
        : undefined;
  // Nothing is written there.
  if (workspaceFilesystem?.mode !== "workspace") return request;
  const guarded = {
    ...workspaceFilesystem,
    readable: [...new Set([...(workspaceFilesystem.readable ?? []), ...readable])],
    denied: [...new Set([...(workspaceFilesystem.denied ?? []), ...denied])],
  };
  return { ...request, sandboxPermission: { ...sandboxPermission, filesystem: guarded } };
}
