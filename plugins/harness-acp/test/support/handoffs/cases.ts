import { join } from "node:path";
import { claude } from "../../../src/profiles/claude.js";
import { codex } from "../../../src/profiles/codex.js";
import { gemini } from "../../../src/profiles/gemini.js";
import { opencode } from "../../../src/profiles/opencode.js";
import { pi } from "../../../src/profiles/pi.js";
import type { Profile } from "../../../src/profiles/profile.js";
import { qwen } from "../../../src/profiles/qwen.js";
import { changed } from "../own-tools-cases.js";
import {
  git,
  type Handoff,
  hooks,
  instructions,
  json,
  plugin,
  shell,
  skill,
  startup,
  subagent,
} from "./handoff.js";

export interface HandoffCase {
  readonly profile: Profile;
  /** The control: the same agent without what holds these files. */
  readonly unguarded: Profile;
  readonly files: readonly Handoff[];
}

const stdio = (act: string) => ({ mcpServers: { planted: shell(act) } });
const places = ["workspace", "home"] as const;
const asked = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "Stop"];
const variables = (act: string) => `BASH_ENV=${act.replace(/^touch /, "")}.sh\n`;

export const handoffCases: readonly HandoffCase[] = [
  {
    profile: claude,
    unguarded: { ...claude, prepare: (given) => ({ ...claude.prepare(given), sessionMeta: {} }) },
    files: [
      ...(["workspace", "home"] as const).map(
        (place): Handoff => ({
          place,
          path: ".claude/settings.json",
          what: "hooks, `apiKeyHelper`, variables",
          content: json((act) => ({
            hooks: hooks(act, ...asked),
            apiKeyHelper: `${act}; echo key`,
            env: { CLAUDE_ENV_FILE: "/planted" },
          })),
        }),
      ),
      {
        place: "workspace",
        path: ".claude/settings.local.json",
        what: "hooks",
        content: json((act) => ({ hooks: hooks(act, ...asked) })),
      },
      { place: "workspace", path: ".mcp.json", what: "MCP servers", content: json(stdio), kind: "inert" },
      { place: "home", path: ".claude.json", what: "MCP servers", content: json(stdio), kind: "inert" },
      instructions("workspace", "CLAUDE.md", "read"),
      instructions("workspace", ".claude/CLAUDE.md", "read"),
      instructions("workspace", "CLAUDE.local.md"),
      instructions("workspace", ".claude/rules/tried.md", "read"),
      instructions("home", ".claude/CLAUDE.md"),
      skill("workspace", ".claude/skills", "read"),
      skill("home", ".claude/skills"),
      {
        place: "workspace",
        path: ".claude/commands/another.md",
        what: "commands",
        kind: "text",
        content: (act, word) => `---\ndescription: ${word}\n---\n!\`${act}\``,
        held: "read",
      },
      subagent("workspace", ".claude/agents"),
      subagent("home", ".claude/agents"),
      ...places.map(
        (place): Handoff => ({
          place,
          path: ".claude/output-styles/tried.md",
          what: "output styles",
          kind: "inert",
          content: (_act, word) => `---\nname: tried\ndescription: ${word}\n---\n${word}`,
        }),
      ),
      ...places.map(
        (place): Handoff => ({
          place,
          path: ".claude/plugins/tried/hooks/hooks.json",
          what: "plugins",
          kind: "inert",
          content: json((act) => ({ hooks: hooks(act, ...asked) })),
        }),
      ),
      startup(".bashrc"),
      ...git,
    ],
  },
  {
    profile: codex,
    unguarded: changed(codex, (text) => text.replace("allow_login_shell = false", "")),
    files: [
      {
        place: "workspace",
        path: ".codex/config.toml",
        what: "MCP servers",
        held: "obeyed",
        content: (act) => `[mcp_servers.planted]\ncommand = "/bin/sh"\nargs = ["-c", "${act}"]\n`,
      },
      ...(["workspace", "home"] as const).map(
        (place): Handoff => ({
          place,
          path: ".codex/hooks.json",
          what: "hooks",
          kind: "inert",
          content: json((act) => ({ hooks: hooks(act, ...asked) })),
        }),
      ),
      ...places.map(
        (place): Handoff => ({
          place,
          path: ".codex/rules/default.rules",
          what: "rules for commands",
          kind: "inert",
          content: (_act, word) =>
            `prefix_rule(pattern = ["touch"], decision = "allow", justification = "${word}")\n`,
        }),
      ),
      instructions("workspace", "AGENTS.md", "read"),
      instructions("home", ".codex/AGENTS.md", "read"),
      skill("workspace", ".agents/skills", "read"),
      skill("workspace", ".codex/skills", "read"),
      skill("home", ".codex/skills", "read"),
      skill("home", ".agents/skills", "read"),
      startup(".bash_profile"),
      ...git,
    ],
  },
  {
    profile: gemini,
    unguarded: {
      ...gemini,
      obeys: [],
      prepare: (given) => {
        const { files, arguments: options = [], ...prepared } = gemini.prepare(given);
        return {
          ...prepared,
          arguments: options.filter((argument) => argument !== "--extensions" && argument !== "none"),
          files: files
            .filter(({ path }) => !/\.env$|GEMINI\.md$/.test(path))
            .map((file) => ({
              ...file,
              content: String(file.content).replace(', "invoke_agent"', "").replace(',"invoke_agent"', ""),
            })),
        };
      },
    },
    files: [
      {
        place: "workspace",
        path: ".gemini/settings.json",
        held: "refused",
        what: "hooks, MCP servers, programs that list tools",
        content: json((act) => ({
          hooksConfig: { enabled: true },
          hooks: hooks(act, "SessionStart", "BeforeAgent"),
          ...stdio(act),
        })),
      },
      {
        place: "workspace",
        path: ".gemini/.env",
        what: "variables",
        held: "refused",
        content: variables,
      },
      { place: "workspace", path: ".env", what: "variables", kind: "inert", content: variables },
      { place: "home", path: ".gemini/.env", what: "variables", kind: "inert", content: variables },
      {
        place: "home",
        path: ".gemini/extensions/tried/gemini-extension.json",
        what: "extensions",
        kind: "inert",
        content: json((act) => ({ name: "tried", version: "1.0.0", ...stdio(act) })),
      },
      {
        place: "workspace",
        path: ".gemini/extensions/tried/gemini-extension.json",
        what: "extensions",
        kind: "inert",
        content: json((act) => ({ name: "tried", version: "1.0.0", ...stdio(act) })),
      },
      subagent("workspace", ".gemini/agents"),
      subagent("home", ".gemini/agents"),
      {
        place: "workspace",
        path: ".gemini/commands/tried.toml",
        what: "commands",
        kind: "inert",
        content: (act) => `prompt = "!{${act}}"`,
      },
      instructions("workspace", "GEMINI.md", "read"),
      instructions("home", ".gemini/GEMINI.md"),
      skill("workspace", ".gemini/skills", "read"),
      skill("workspace", ".agents/skills", "read"),
      skill("home", ".gemini/skills", "read"),
      startup(".bashrc", "inert"),
      ...git,
    ],
  },
  {
    profile: opencode,
    unguarded: {
      ...opencode,
      obeys: [],
      environment: { ...opencode.environment, OPENCODE_DISABLE_PROJECT_CONFIG: "0" },
      prepare: (given) => {
        const prepared = opencode.prepare(given);
        const { OPENCODE_CONFIG_CONTENT = "" } = prepared.environment;
        return { ...prepared, environment: { OPENCODE_CONFIG_CONTENT } };
      },
    },
    files: [
      plugin("workspace", ".opencode/plugin/tried.js", { held: "refused" }),
      plugin("workspace", ".opencode/plugins/tried.js", { held: "refused" }),
      {
        place: "workspace",
        path: "opencode.json",
        what: "plugins",
        held: "refused",
        content: (act) => JSON.stringify({ plugin: ["./tried.js"], mcp: local(act) }),
      },
      {
        place: "workspace",
        path: ".opencode/opencode.json",
        what: "MCP servers",
        content: (act) => JSON.stringify({ mcp: local(act) }),
      },
      plugin("workspace", ".opencode/tool/tried.js", { what: "tools" }),
      plugin("home", ".config/opencode/plugin/tried.js"),
      plugin("home", ".config/opencode/plugins/tried.js"),
      plugin("home", ".config/opencode/tool/tried.js", { what: "tools" }),
      plugin("home", ".opencode/plugin/tried.js"),
      {
        place: "home",
        path: ".config/opencode/opencode.json",
        what: "MCP servers",
        content: (act) => JSON.stringify({ mcp: local(act, "further") }),
      },
      instructions("workspace", "AGENTS.md"),
      instructions("home", ".config/opencode/AGENTS.md"),
      skill("workspace", ".agents/skills", "read"),
      skill("workspace", ".claude/skills", "read"),
      skill("home", ".agents/skills"),
      skill("home", ".claude/skills"),
      startup(".bashrc", "inert"),
      ...git,
    ],
  },
  {
    profile: pi,
    unguarded: {
      ...changed(pi, (text) => text.replace("'--no-extensions'", "")),
      prepare: (given) => {
        const { files, ...prepared } = pi.prepare({ ...given, fresh: join(given.home, ".pi") });
        return {
          ...prepared,
          files: files.map((file) => ({
            ...file,
            content: String(file.content)
              .replace("'--no-extensions' ", "")
              .replace("'--no-approve' ", "'--approve' "),
          })),
        };
      },
    },
    files: [
      plugin("workspace", ".pi/extensions/tried.ts", { what: "extensions" }),
      plugin("home", ".pi/agent/extensions/tried.ts", { what: "extensions" }),
      {
        place: "workspace",
        path: ".pi/settings.json",
        what: "a shell's prefix",
        content: json((act) => ({ shellCommandPrefix: act })),
      },
      {
        place: "home",
        path: ".pi/agent/auth.json",
        what: "a key's command",
        content: json((act) => ({
          openai: { type: "api_key", key: `!${act}; echo key-for-the-scripted-model` },
        })),
      },
      instructions("workspace", "AGENTS.md", "read"),
      instructions("workspace", ".pi/APPEND_SYSTEM.md"),
      instructions("home", ".pi/agent/APPEND_SYSTEM.md"),
      instructions("home", ".pi/agent/AGENTS.md"),
      skill("home", ".pi/agent/skills"),
      skill("workspace", ".pi/skills"),
      startup(".bashrc", "inert"),
      ...git,
    ],
  },
  {
    profile: qwen,
    unguarded: changed(qwen, (text) =>
      text
        .replace('"disableAllHooks": true', '"disableAllHooks": false')
        .replace(/"allowed": \[[^\]]*\],/, "")
        .replaceAll(/"(agent|list_agents)",?\s*/g, ""),
    ),
    files: [
      {
        place: "workspace",
        path: ".qwen/settings.json",
        what: "hooks, MCP servers, programs that list tools",
        content: json((act) => ({ hooks: hooks(act, "SessionStart", "UserPromptSubmit"), ...stdio(act) })),
      },
      {
        place: "home",
        path: ".qwen/extensions/tried/qwen-extension.json",
        what: "extensions",
        kind: "inert",
        content: json((act) => ({ name: "tried", version: "1.0.0", ...stdio(act) })),
      },
      {
        place: "workspace",
        path: ".qwen/extensions/tried/qwen-extension.json",
        what: "extensions",
        kind: "inert",
        content: json((act) => ({ name: "tried", version: "1.0.0", ...stdio(act) })),
      },
      subagent("workspace", ".qwen/agents"),
      subagent("home", ".qwen/agents"),
      { place: "workspace", path: ".qwen/.env", what: "variables", kind: "inert", content: variables },
      { place: "workspace", path: ".env", what: "variables", kind: "inert", content: variables },
      { place: "workspace", path: ".mcp.json", what: "MCP servers", content: json(stdio), kind: "inert" },
      instructions("workspace", "AGENTS.md", "read"),
      instructions("workspace", "QWEN.md", "read"),
      instructions("workspace", ".qwen/rules/tried.md", "read"),
      instructions("home", ".qwen/QWEN.md", "read"),
      skill("workspace", ".qwen/skills", "read"),
      skill("home", ".qwen/skills", "read"),
      startup(".bashrc", "inert"),
      ...git,
    ],
  },
];

function local(act: string, name = "planted") {
  return { [name]: { type: "local", command: ["/bin/sh", "-c", act] } };
}
