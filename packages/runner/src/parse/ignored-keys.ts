import {
  type Issue,
  isJsonObject,
  type JsonObject,
  type KnownShape,
  knownShapeAt,
  limits,
  pathText,
  plainKey,
  slipBetween,
  type Warning,
} from "@ambit/core/contract";
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
function ignoredKeyOf(parent: string, key: string): string {
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

/** A request that isn't validated yet, without what needs no validation. */
interface Pruned {
  readonly body: unknown;
  readonly issues: readonly Issue[];
  readonly warnings: readonly Warning[];
}

interface Findings {
  readonly issues: Issue[];
  readonly ignorable: ReadonlySet<string>;
  /** By path without indices: a thousand entries with the same unknown key cause one warning. */
  readonly warnings: Map<string, Warning>;
}

const ignoredMessage =
  "is not a known field, and this runner's configuration says to ignore it: it has no effect";

/**
 * Removes explicit nulls, which mean absent, keys that the operator ignores, and what is larger than its limit, so that its
 * validation costs nothing. Reads only the levels of the contract, never inside a caller's own values. What needs no change
 * isn't copied.
 *
 * @param ignorable keys that are ignored with a warning, as `ignoredPath` gives them.
 */
export function pruned(body: unknown, level: KnownShape | undefined, ignorable: ReadonlySet<string>): Pruned {
  const findings: Findings = { issues: [], ignorable, warnings: new Map() };
  const pruned = prune(body, level, [], findings);
  return { body: pruned, issues: findings.issues, warnings: [...findings.warnings.values()] };
}

function prune(
  value: unknown,
  level: KnownShape | undefined,
  path: PropertyKey[],
  findings: Findings,
): unknown {
  const { issues } = findings;
  if (level === undefined) return value;
  if (level.kind === "list") {
    if (!Array.isArray(value)) return value;
    if (value.length <= level.max) return pruneList(value, level.element, path, findings);
    issues.push(tooMany(value.length, "entries", level.max, path));
    return [];
  }
  if (!isJsonObject(value)) return value;
  const names = Object.keys(value);
  if (names.length > limits.entries) {
    issues.push(tooMany(names.length, "keys", limits.entries, path));
    return {};
  }
  return level.kind === "map" ? value : pruneObject(value, names, level.keys, path, findings);
}

function tooMany(count: number, what: string, max: number, path: readonly PropertyKey[]): Issue {
  const message = `has ${count.toLocaleString("en")} ${what}, ${max.toLocaleString("en")} at most: send fewer`;
  return { path: pathText(path), message };
}

function pruneList(
  list: readonly unknown[],
  element: KnownShape | undefined,
  path: PropertyKey[],
  findings: Findings,
): readonly unknown[] {
  if (element === undefined) return list;
  let copy: unknown[] | undefined;
  for (const [index, value] of list.entries()) {
    path.push(index);
    const current = prune(value, element, path, findings);
    path.pop();
    if (current === value) continue;
    copy ??= [...list];
    copy[index] = current;
  }
  return copy ?? list;
}

function pruneObject(
  object: JsonObject,
  names: readonly string[],
  keys: ReadonlyMap<string, KnownShape | undefined>,
  path: PropertyKey[],
  findings: Findings,
): JsonObject {
  const changed = new Map<string, unknown>();
  for (const name of names) {
    const value = object[name];
    path.push(name);
    const isAbsent = value === null || (!keys.has(name) && isIgnored(path, findings));
    const current = isAbsent ? undefined : prune(value, keys.get(name), path, findings);
    path.pop();
    if (current !== value) changed.set(name, current);
  }
  return changed.size === 0 ? object : withChanges(object, changed);
}

function isIgnored(path: readonly PropertyKey[], { ignorable, warnings }: Findings): boolean {
  if (ignorable.size === 0) return false;
  const place = placeOf(path.slice(0, -1));
  const key = String(path.at(-1));
  if (!ignorable.has(ignoredKeyOf(place, key))) return false;
  const where = place === "" ? key : `${place}.${key}`;
  warnings.set(where, { path: where, message: ignoredMessage });
  return true;
}

/** `customTools[].call` */
function placeOf(path: readonly PropertyKey[]): string {
  return path
    .map((step) => (typeof step === "number" ? "[]" : `.${String(step)}`))
    .join("")
    .slice(1);
}

/** Filled in order: deleting from a copy would make it slow to read. A key `__proto__` stays a key, to be refused. */
function withChanges(object: JsonObject, changed: ReadonlyMap<string, unknown>): JsonObject {
  const entries = Object.entries(object).flatMap(([name, value]) => {
    const current = changed.has(name) ? changed.get(name) : value;
    return current === undefined ? [] : [[name, current] as const];
  });
  return Object.fromEntries(entries);
}
