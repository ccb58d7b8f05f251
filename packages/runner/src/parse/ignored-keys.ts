import { type KnownShape, knownShapeAt, plainKey, slipBetween } from "@ambit/core/contract";
import { z } from "zod";

/** Subtrees of a request in which a key is never ignored, since they restrict the run or carry its credentials. */
const restricting = [
  "sandboxPermission",
  "permissions",
  "modelConnection",
  "credentials",
  "sandboxCredentials",
  "toolCallback",
  "mcpServers[].connection",
  "mcpServers[].policy",
] as const;

/** Names of fields that restrict a run, at any level of any wire. A key close to one is probably a typo of it. */
const restrictions: readonly string[] = [
  "sandboxPermission",
  "network",
  "networkMode",
  "filesystem",
  "resources",
  "secrets",
  "enforcement",
  "allowlist",
  "readable",
  "writable",
  "denied",
  "memoryMb",
  "processes",
  "cpus",
  "diskMb",
  "permissions",
  "permissionPolicy",
  "permission",
  "rules",
  "policy",
  "readOnly",
  "needsApproval",
];

/** Words of restrictions (`sandboxPolicy`, `networkRules`, `egress`), and of what carries a credential (`accessToken`). */
const restrictingWords =
  /sandbox|boundar|network|egress|firewall|allow|whitelist|deny|blocklist|filesystem|enforce|polic|permission|approval|restrict|readonly|secret|credential|login|token|password|passphrase|auth|subscription|certificate|key/;

/**
 * Why an unknown key can't be ignored; undefined when it can.
 * @param path as in `uiHints` or `customTools[].annotations`.
 * @param known every key that a request may have.
 */
function whyNotIgnorable(path: string, known: KnownShape | undefined): string | undefined {
  if (!/^[A-Za-z_]\w*(\[\])?(\.[A-Za-z_]\w*(\[\])?)*$/.test(path) || path.endsWith("[]"))
    return "must be the path of a key, such as uiHints or customTools[].annotations";
  const steps = path.replaceAll("[]", ".0").split(".");
  const key = steps.at(-1) ?? "";
  const parent = knownShapeAt(
    known,
    steps.slice(0, -1).map((step) => (step === "0" ? 0 : step)),
  );
  if (parent?.kind !== "object") return "isn't in an object whose keys the contract knows: remove it";
  if ([...parent.keys.keys()].some((name) => plainKey(name) === plainKey(key)))
    return "is a known field, which is never ignored: remove it";
  const restriction =
    restricting.find(
      (subtree) => path === subtree || path.startsWith(`${subtree}.`) || path.startsWith(`${subtree}[]`),
    ) ??
    restrictions.find((name) => slipBetween(key, name) !== undefined) ??
    restrictingWords.exec(plainKey(key))?.[0];
  if (restriction === undefined) return undefined;
  return `is too close to what restricts a run or carries a credential (${restriction}): if it were ignored, the request would seem to have a boundary that doesn't exist, or an agent would lack what it was given. Upgrade the runner, or stop sending it`;
}

/** A path in the form in which keys are compared, regardless of their spelling. */
export function ignoredKeyOf(parent: string, key: string): string {
  return `${parent === "" ? "" : `${parent}.`}${plainKey(key)}`;
}

/** The same for a path in the configuration. */
export function ignoredPath(path: string): string {
  const end = path.lastIndexOf(".");
  return ignoredKeyOf(path.slice(0, Math.max(0, end)), path.slice(end + 1));
}

/** The operator's settings for reading requests. */
export function contractSettings(known: KnownShape | undefined) {
  return z.strictObject({
    /**
     * Whether every caller sends the whole conversation in each request of a session. Then a session whose agent remembers
     * another one than `messages` has, starts cold, also where the first message was edited or removed. Default: false,
     * since a request that has only its new message then can't be told from an edited one.
     */
    wholeHistory: z.boolean().default(false),
    /**
     * Paths of keys that this version doesn't know and ignores, with a warning on the result, for a platform that
     * is newer than its runner: `uiHints`, `customTools[].annotations`. Default: none; an unknown key refuses the
     * request. A key that may restrict a run or carry a credential can't be listed.
     */
    ignoredKeys: z
      .array(z.string())
      .max(100)
      .default([])
      .superRefine((paths, context) => {
        for (const [index, path] of paths.entries()) {
          const problem = whyNotIgnorable(path, known);
          if (problem !== undefined)
            context.addIssue({
              code: "custom",
              path: [index],
              message: `\`${path.slice(0, 200)}\` ${problem}`,
            });
        }
      }),
  });
}
