/** A file that one turn could leave for a later one, or a repository for its agent. */
export interface Handoff {
  readonly place: "workspace" | "home";
  readonly path: string;
  /** What it is, for docs/agents.md: "hooks", "MCP servers". */
  readonly what: string;
  /** @param act a shell command that leaves a mark: the file was obeyed. @param word a text to find in a request. */
  content(act: string, word: string): string;
  /** Its program acts in the control, without what Ambit sets. `text`: it only speaks to the model. Default: `acts`. */
  readonly kind?: "text" | "inert";
  /** What happens in a run whose permissions restrict the agent's own tools. Default: `ignored`. */
  readonly held?: "read" | "refused" | "obeyed";
}

export const instructions = (place: Handoff["place"], path: string, held?: "read"): Handoff => ({
  place,
  path,
  what: "instructions",
  kind: "text" as const,
  content: (_act, word) => word,
  held,
});

export const skill = (place: Handoff["place"], path: string, held?: "read"): Handoff => ({
  place,
  path: `${path}/tried/SKILL.md`,
  what: "skills",
  kind: "text" as const,
  content: (_act, word) =>
    `---\nname: tried-${place}-${path.replaceAll(/\W/g, "")}\ndescription: ${word}\n---\nx`,
  held,
});

/** A subagent, which the model is told of if it may call it. */
export const subagent = (place: Handoff["place"], folder: string, more: Partial<Handoff> = {}): Handoff => ({
  place,
  path: `${folder}/tried.md`,
  what: "subagents",
  kind: "text" as const,
  content: (_act, word) => `---\nname: tried-${place}\ndescription: ${word}\n---\nx`,
  ...more,
});

/** A program of that name, as a module that acts when it is loaded. */
export const plugin = (place: Handoff["place"], path: string, more: Partial<Handoff> = {}): Handoff => ({
  place,
  path,
  what: "plugins",
  content: (act) =>
    `import { execSync } from "node:child_process";\nexecSync(${JSON.stringify(act)});\nexport default () => ({});\n`,
  ...more,
});

export const startup = (path: string, kind?: "inert"): Handoff => ({
  place: "home",
  path,
  what: "a shell's startup",
  content: (act) => `${act}\n`,
  kind,
});

export const shell = (act: string) => ({ command: "/bin/sh", args: ["-c", act] });

/** Claude Code's, Qwen Code's and Gemini CLI's form. */
export const hooks = (act: string, ...events: readonly string[]) =>
  Object.fromEntries(
    events.map((event) => [event, [{ matcher: "*", hooks: [{ type: "command", command: act }] }]]),
  );

export const json = (what: (act: string, word: string) => object) => (act: string, word: string) =>
  JSON.stringify(what(act, word));

/** A command in each repository's configuration that `git status` runs. */
export const git: readonly Handoff[] = [
  ["workspace", ".git/config"] as const,
  ["home", ".gitconfig"] as const,
].map(([place, path]) => ({
  place,
  path,
  what: "git's commands",
  kind: "inert",
  content: (act) => `[core]\n\trepositoryformatversion = 0\n\tfsmonitor = "${act}; false"\n`,
}));
