import { limits } from "../limits.js";
import { acts, type FieldMeanings, informational } from "./field.js";

/** What the run may touch, and how the agent reaches its model. */
export const boundaryFields: FieldMeanings = {
  sandboxPermission: acts("The boundary: what the run may touch. It is guaranteed, or the run is refused."),
  "sandboxPermission.network": acts(
    'The object, or `"on"`, `"off"`, or `"restricted"`, which is the same as `"off"`.',
  ),
  "sandboxPermission.network.mode": acts(
    "`on`: no boundary, the host's own loopback is reachable · `off`: nothing is · `allowlist`: only what is listed. Default: `allowlist` where there is a list, else `on`.",
  ),
  "sandboxPermission.network.allowlist": acts(
    `\`name\`, \`*.suffix\`, \`address\` or \`range/prefix\`, each with an optional \`:port\`; ${limits.allowlist.toLocaleString("en")} at most. Empty allows nothing; refused under \`on\` and \`off\`.`,
  ),
  "sandboxPermission.filesystem": acts(
    'The object, or its mode alone; `"restricted"` is the same as `"off"`.',
  ),
  "sandboxPermission.filesystem.mode": acts(
    "`on`: no boundary · `workspace`: writes stay in the workspace and scratch · `readonly`: in scratch · `off`: there is no workspace. All but `on` hide the host's files.",
  ),
  "sandboxPermission.filesystem.readable": acts(
    "Paths of the workspace that can be read and not written. Paths, not patterns, in all three lists.",
  ),
  "sandboxPermission.filesystem.writable": acts("The only paths of the workspace that can be written."),
  "sandboxPermission.filesystem.denied": acts(
    "Paths of the workspace that can't be touched, with all that is in them.",
  ),
  "sandboxPermission.resources": acts("Limits of the whole session, tools included. Absent: none."),
  "sandboxPermission.resources.memoryMb": acts("MiB of memory, file pages of scratch included."),
  "sandboxPermission.resources.processes": acts("Processes and threads at one time."),
  "sandboxPermission.resources.cpus": acts("Processor cores; fractions allowed."),
  "sandboxPermission.resources.diskMb": acts("MiB of workspace disk."),
  "sandboxPermission.secrets": acts(
    "`hidden`: no credential of this request can be read in the sandbox. Default: `visible`; the receipt names those that are.",
  ),
  "sandboxPermission.enforcement": acts(
    "`strict`, the default: every gap refuses the run. `best_effort` accepts gaps of what acts outside the sandbox, and the receipt names them; it never weakens the sandbox.",
  ),
  modelConnection: acts(
    "How the agent reaches its model.",
    "`secrets`, `provider`, `deployment`, `endpoint`, `credentialMode`",
  ),
  "modelConnection.provider": acts(
    "Who issued the credential: `anthropic`, `openai`, `google`, …",
    "`provider`",
  ),
  "modelConnection.deployment": acts(
    "How the provider is reached, where an agent distinguishes.",
    "`deployment`",
  ),
  "modelConnection.endpoint": acts(
    "The model's address. A destination of the run: a restricted network must list it.",
    "`endpoint`",
  ),
  "modelConnection.endpoint.baseUrl": acts("An http(s) URL. Default: the provider's own."),
  "modelConnection.endpoint.apiVersion": acts(
    "The version of the interface, where a deployment has several.",
  ),
  "modelConnection.endpoint.region": acts("The region, where a deployment has several."),
  "modelConnection.endpoint.headers": acts("Headers to send along, where the agent can."),
  "modelConnection.credentialMode": acts(
    "`env`, the default: `credentials` · `runtime_provided`: the agent's own login · `none`.",
    "`credentialMode`",
  ),
  "modelConnection.environment": acts("Variables of the agent's process that are no secrets."),
  "modelConnection.credentials": acts("The credentials. Default: none.", "`secrets`"),
  "modelConnection.credentials[].binding": acts("Where the value goes."),
  "modelConnection.credentials[].binding.kind": acts("`environment`."),
  "modelConnection.credentials[].binding.name": acts("The variable's name, without `=` and NUL."),
  "modelConnection.credentials[].value": acts("The secret, without NUL."),
  "modelConnection.credentials[].usage": acts(
    "`opaque_http`, the default: only the provider reads it · `local_use`: a program inside signs with it.",
  ),
  credentials: acts(
    `Credentials that stay outside the sandbox: a placeholder inside, the value put on by the egress proxy on the way to its hosts. ${limits.credentials} at most. A sandbox that can't do that refuses the run.`,
  ),
  "credentials[].name": acts("The agent's variable that holds the placeholder."),
  "credentials[].value": acts(
    `The secret: 8 to ${limits.credentialCharacters.toLocaleString("en")} characters of printable ASCII. As \`basic\`: the password, or \`user:password\`.`,
  ),
  "credentials[].hosts": acts(
    "Names that it may be sent to, over TLS, each with an optional `:port` (default 443). The network's allowlist must hold them.",
  ),
  "credentials[].as": acts(
    "`bearer` or `basic` (in `Authorization`), or `{header}`: a header that holds it as it is. It is replaced there alone.",
  ),
  "credentials[].as.header": acts("The header's name."),
  "credentials[].methods": acts("The only HTTP methods that it is used with. Default: all."),
  "credentials[].paths": acts("The only paths that it is used with: exact, or `/prefix/*`. Default: all."),
  "credentials[].access": acts(
    "`read`: only requests that read (GET, HEAD, OPTIONS, git fetch); a git push is refused. `write`, the default: all.",
  ),
  connection: informational(
    "The platform's own name for the connection that `modelConnection` was resolved from.",
  ),
  "connection.mode": informational("How the platform resolved it."),
  "connection.slug": informational("Its name there."),
};
