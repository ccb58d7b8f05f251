import { limits } from "../limits.js";
import { acts, type FieldMeanings } from "./field.js";

/** What the agent may use, and who decides whether it may. */
export const toolFields: FieldMeanings = {
  customTools: acts(`Tools, ${limits.tools.toLocaleString("en")} at most.`),
  "customTools[].name": acts("1 to 128 of `A-Z a-z 0-9 _ . -`; unique."),
  "customTools[].description": acts("Tells the model what the tool does."),
  "customTools[].inputSchema": acts(
    "JSON Schema of the arguments: handed to the agent unchanged, and every call is checked against it. Default: an object without properties.",
  ),
  "customTools[].kind": acts(
    "Who executes it: `callback` (the default), `code`, `client`, or a kind of a loaded plugin.",
  ),
  "customTools[].permission": acts(
    "`allow`, `ask` or `deny`: overrides server, rules and default.",
    "`needsApproval: true` (→ `ask`)",
  ),
  "customTools[].readOnly": acts("Whether it only reads: under `allow_reads` such a tool runs, others ask."),
  "customTools[].render": acts(
    "How a user interface may show it: copied onto its `tool_call` and `tool_result` events. Its `kind` is `component`, `source`, `spec`, `connect`, `elicitation`, or any other text.",
  ),
  "customTools[].timeoutMs": acts(
    "Milliseconds a call may take, 24 h at most. Default: the runner's limit for tools.",
  ),
  "customTools[].callRef": acts("`callback`: the name that the platform knows it by."),
  "customTools[].call": acts(
    "`callback`: a call that goes straight to a path of the platform. Excludes `callRef`.",
  ),
  "customTools[].call.method": acts("`GET`, `POST`, `PUT` or `DELETE`."),
  "customTools[].call.path": acts("Absolute path, on the origin of `toolCallback.endpoint`."),
  "customTools[].call.body": acts("Fields that the model can't change."),
  "customTools[].call.context": acts("Dotted path in the body to `$ctx.…`, filled from `runContext`."),
  "customTools[].call.args_into": acts("Dotted path in the body where the arguments go. Default: its root."),
  "customTools[].contextBindings": acts(
    "Dotted path in the arguments to `$ctx.…`, filled from `runContext`.",
  ),
  "customTools[].ephemeralArgs": acts("Names of arguments that people see, and the platform isn't sent."),
  "customTools[].runtime": acts("`code`: `python` or `node`."),
  "customTools[].code": acts("`code`: the source; it defines `main`."),
  "customTools[].env": acts(
    "`code`: variables of this tool's process alone; no other process can read them.",
  ),
  "customTools[].options": acts("What a plugin's own kind needs beyond these fields."),
  toolCallback: acts("Where `callback` tools are executed. Without an endpoint it is as good as absent."),
  "toolCallback.endpoint": acts(
    "The http(s) URL that calls are posted to. A destination of the run: a restricted network must list it.",
  ),
  "toolCallback.authorization": acts(
    "Sent verbatim as the `Authorization` header. Never enters the sandbox.",
  ),
  mcpServers: acts(`MCP servers of the user, ${limits.mcpServers} at most.`),
  "mcpServers[].name": acts("1 to 64 of `A-Z a-z 0-9 _ -`; unique. `ambit` is the runner's own."),
  "mcpServers[].connection": acts("How it is reached.", "`transport`, `stdio` when absent"),
  "mcpServers[].connection.type": acts(
    "`http`: called by the runner. `stdio`: a process inside the sandbox.",
    "`transport`",
  ),
  "mcpServers[].connection.url": acts(
    "`http`: http(s) URL. A destination of the run: a restricted network must list it.",
    "`url`",
  ),
  "mcpServers[].connection.headers": acts("`http`: headers that are no secrets."),
  "mcpServers[].connection.credentials": acts(
    "`http`: headers that are. They never enter the sandbox.",
    "`env`, with the transport `http`",
  ),
  "mcpServers[].connection.credentials[].binding": acts("Where the value goes."),
  "mcpServers[].connection.credentials[].binding.kind": acts("`header`."),
  "mcpServers[].connection.credentials[].binding.name": acts("The header's name."),
  "mcpServers[].connection.credentials[].value": acts("The secret; one line."),
  "mcpServers[].connection.credentials[].usage": acts(
    "`opaque_http`, the default: only the server reads it.",
  ),
  "mcpServers[].connection.command": acts("`stdio`: the program, run inside the sandbox.", "`command`"),
  "mcpServers[].connection.args": acts("`stdio`: its arguments.", "`args`"),
  "mcpServers[].connection.env": acts("`stdio`: variables of this server's process alone.", "`env`"),
  "mcpServers[].policy": acts("What the agent may use of it. Default: all its tools, by `permissions`."),
  "mcpServers[].policy.tools": acts("Which of its tools the agent sees."),
  "mcpServers[].policy.tools.mode": acts("`all`, the default, or `include`."),
  "mcpServers[].policy.tools.names": acts(
    "With `include`: the tools that are shown. Refused with `all`.",
    "`tools`; an empty list meant all",
  ),
  "mcpServers[].policy.permission": acts(
    "`allow`, `ask` or `deny`: overrides rules and default.",
    "`permission`",
  ),
  permissions: acts(
    "Whether a call may run, when neither its tool nor its server says.",
    "`permissionPolicy`",
  ),
  "permissions.default": acts(
    "`allow`, `ask`, `deny`, or `allow_reads`, the default: tools that only read run, the rest ask. It holds for the agent's own tools too, or the run is refused.",
    "`permissionPolicy`: `auto` (→ `allow`), `deny`",
  ),
  "permissions.rules": acts("Rules on tools by name, 1,000 at most; the strictest that matches holds."),
  "permissions.rules[].pattern": acts(
    "`Name`, or `Name(prefix:*)`, with a prefix of 256 characters at most; `shell`, `edit`, `read` and `fetch` name the agent's own tools by what they do, as do `Bash`, `Edit`, `Write`, `Read` and `WebFetch`. A `deny` or `ask` matches if any text among the arguments begins with it, an `allow` only if the argument that names the command does. A prefix is no shell policy; the boundary is one.",
  ),
  "permissions.rules[].permission": acts("`allow`, `ask` or `deny`."),
};
