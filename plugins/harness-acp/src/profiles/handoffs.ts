import { normalize } from "node:path/posix";
import type { Command, Issue, RunRequest } from "@ambit/core/plugin";
import type { ObeyedPath, Profile } from "./profile.js";

/** Exit code of an agent that isn't started because of the first of its `obeys`; the next one's is higher by one. */
export const obeyedExit = 100;

/** What a shell runs at its start. Of an earlier turn, it would run before each command that is allowed now. */
const startupFiles = [
  ".profile",
  ".bashrc",
  ".bash_profile",
  ".bash_login",
  ".bash_logout",
  ".bash_aliases",
  ".zshenv",
  ".zprofile",
  ".zshrc",
  ".zlogin",
  ".inputrc",
];

/** Whether the request's permissions may refuse a call of the agent's own tools, or ask about one. Pure. */
export function restrictsOwnTools({ permissions }: RunRequest): boolean {
  const { default: mode, rules = [] } = permissions;
  return mode !== "allow" || rules.some(({ permission }) => permission !== "allow");
}

/** Files of the request that the agent would obey in spite of the request's permissions. Pure. */
export function handoffIssues(profile: Profile, request: RunRequest): readonly Issue[] {
  if (!restrictsOwnTools(request)) return [];
  return request.harnessFiles.flatMap(({ path, content }, index) => {
    const obeyedPath = profile.obeys?.find((obeyed) => isObeyed(obeyed, normalize(path), content));
    if (obeyedPath === undefined) return [];
    return [{ path: `harnessFiles[${index}].path`, message: obeyedMessage(profile, obeyedPath) }];
  });
}

function isObeyed({ path, naming }: ObeyedPath, file: string, content: string): boolean {
  if (file !== path && !file.startsWith(`${path}/`)) return false;
  return naming === undefined || naming.some((text) => content.includes(text));
}

export function obeyedMessage({ title }: Profile, { path, what }: ObeyedPath): string {
  const described = what === undefined ? path : `${path} (it has, or may hide, ${what})`;
  return `${title} would act on ${described} in its workspace without asking: remove it, or set permissions.default to "allow" without rules that ask or deny`;
}

/**
 * The agent's command behind a look at its workspace, in the same process: it starts the agent only if nothing that the
 * agent would obey is there, and without the startup files that an earlier turn may have left for its shell. Pure.
 */
export function guarded(argv: Command["argv"], { obeys = [], model }: Profile): Command["argv"] {
  // What has no model follows its program alone.
  if (model === undefined) return argv;
  const startup = startupFiles.map((name) => `"$HOME/${name}"`).join(" ");
  const lines = [`rm -f -- ${startup}`, ...obeys.map(lookFor), "unset PWD OLDPWD", 'exec "$@"'];
  return ["/bin/sh", "-c", lines.join("\n"), "sh", ...argv];
}

function lookFor({ path, naming }: ObeyedPath, index: number): string {
  const file = quoted(path);
  const refuse = `exit ${obeyedExit + index}`;
  if (naming === undefined) return `if [ -e ${file} ] || [ -L ${file} ]; then ${refuse}; fi`;
  const texts = naming.map((text) => `-e ${quoted(text)}`).join(" ");
  // A file that can't be read counts too: `grep` answers 1 only if it has read all of it and found nothing.
  return `if [ -e ${file} ] || [ -L ${file} ]; then grep -qF ${texts} -- ${file}; [ $? -eq 1 ] || ${refuse}; fi`;
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
