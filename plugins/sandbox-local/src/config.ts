import { posix } from "node:path";
import { z } from "zod";

const protectedPaths = [
  ".git/hooks",
  ".git/config",
  ".gitmodules",
  ".claude/agents",
  ".claude/commands",
  ".claude/settings.json",
  ".claude/settings.local.json",
  ".codex/config.toml",
  ".cursor/mcp.json",
  ".gemini/settings.json",
  ".idea",
  ".mcp.json",
  ".vscode/launch.json",
  ".vscode/settings.json",
  ".vscode/tasks.json",
  ".bash_login",
  ".bash_profile",
  ".bashrc",
  ".envrc",
  ".profile",
  ".zprofile",
  ".zshenv",
  ".zshrc",
];

/** Settings of a deployer for the local sandbox. Every default is here, or where a field names the place. */
export const configSchema = z.strictObject({
  /**
   * Absolute path of a folder for sessions. Default: `/var/lib/ambit` when the runner is root, else
   * `$XDG_STATE_HOME/ambit`, else `~/.local/state/ambit`.
   */
  dataFolder: z.string().startsWith("/", "must be an absolute path").optional(),
  /**
   * What happens to a run without a boundary. `allow`: confined if the host can, else not · `prefer`: never confined ·
   * `refuse`: confined, or refused. A run with a boundary is confined or refused, whatever this setting is.
   */
  unconfined: z.enum(["allow", "prefer", "refuse"]).default("allow"),
  /**
   * User ids of the host for sessions, one each, when the runner is root. Nothing else may use them. `records` is a
   * folder, the same one for all runners of the host; only root may enter it.
   */
  userIds: z
    .strictObject({
      first: z.int().min(1_000).default(64_000),
      count: z.int().min(1).max(1_000_000).default(1_000),
      records: z.string().startsWith("/", "must be an absolute path").default("/run/ambit/user-ids"),
    })
    .prefault({}),
  /** MiB of each scratch file system of a jail: `/tmp`, `/dev/shm`, a tool's home. It is memory. */
  scratchMb: z.int().min(1).default(256),
  /** Absolute paths of this host that every jail shows, read-only, at the same place. */
  readOnlyMounts: z.array(z.string().startsWith("/", "must be an absolute path")).default([]),
  /**
   * Absolute paths of PEM files: authorities of servers that credentials may be sent to, besides those that this host
   * and Node trust.
   */
  trustedAuthorities: z.array(z.string().startsWith("/", "must be an absolute path")).default([]),
  /**
   * Paths in the workspace that are read-only once they exist, because other programs trust their content. Those below
   * `.git` apply to every repository in it, up to 64.
   */
  protectedPaths: z
    .array(z.string().min(1).refine(isInWorkspace, "must be relative to the workspace, and stay in it"))
    .default([...protectedPaths]),
  /** What happens when the workspace holds a file that also has a name outside it: `refuse`, or `copy` the file. */
  hardLinks: z.enum(["refuse", "copy"]).default("refuse"),
  /**
   * How long the files of a named session wait, after a server of this host was killed, for the next one that goes on with
   * them, in minutes. 0: they are removed by its start.
   */
  takeoverMinutes: z.number().min(0).default(10),
  /** Time limit for the start of a jail, in milliseconds. */
  startMs: z.int().min(100).default(10_000),
});

/** Another path would be found nowhere, and protect nothing. */
function isInWorkspace(path: string): boolean {
  const [first] = posix.normalize(path).split("/");
  return first !== "" && first !== "." && first !== "..";
}

export type LocalConfig = z.output<typeof configSchema>;
