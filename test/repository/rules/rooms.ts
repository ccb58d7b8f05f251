import { dirname, join } from "node:path/posix";
import { isRelative, violations } from "./imports.js";
import { packageOf } from "./package-paths.js";
import { importsOf, type SourceFile } from "./source-file.js";

/** The layers of a folder from the bottom up: each may import those before it, and its own. */
const floorsOf: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "core/src": [
    ["contract"],
    ["errors.ts"],
    ["boundary.ts"],
    ["plugin"],
    ["plan"],
    ["registry"],
    ["index.ts"],
  ],
  "core/src/contract": [
    ["values", "capability.ts"],
    ["request"],
    ["result"],
    ["spelling.ts"],
    ["schema-fields.ts"],
    ["issues.ts", "dialect-fields.ts"],
    ["index.ts"],
  ],
  "packages/runner/src": [
    ["json-values.ts", "limits.ts", "operator.ts"],
    ["lifetime", "parse"],
    ["tokens.ts"],
    ["events"],
    ["call"],
    ["session"],
    ["model"],
    ["run"],
    ["admission"],
    ["runner.ts"],
    ["index.ts"],
  ],
  "packages/runner/src/call": [
    ["call.ts", "answer.ts", "arguments"],
    ["run-tools.ts", "pattern.ts"],
    ["permissions.ts"],
    ["call-events.ts", "request-answers.ts"],
    ["ask.ts"],
    ["run-calls.ts"],
  ],
};

/** Inside these packages each folder imports only those below it. `index.ts` may import all. */
export function roomImports(files: readonly SourceFile[]): string[] {
  return Object.entries(floorsOf).flatMap(([folder, floors]) => {
    const floorOf = (room: string) => floors.findIndex((floor) => floor.includes(room));
    const roomOf = (path: string) => path.slice(folder.length + 1).split("/")[0] ?? "";
    const inside = files.filter(({ path }) => path.startsWith(`${folder}/`));
    return violations(inside, (file, specifier) => {
      const imported = targetOf(file, specifier);
      // Imports from outside the folder are checked elsewhere.
      if (imported === undefined || !imported.startsWith(`${folder}/`)) return true;
      const from = roomOf(file.path);
      const to = roomOf(imported);
      return from === to || (floorOf(to) !== -1 && floorOf(to) < floorOf(from));
    });
  });
}

/** Folders that import each other, directly or in a longer circle. */
interface Circle {
  /** The folder that they are in. */
  readonly parent: string;
  readonly folders: readonly string[];
}

/**
 * Folders next to each other, anywhere in a package, that can only be understood together.
 *
 * @param packages their folders
 */
export function folderCircles(files: readonly SourceFile[], packages: readonly string[]): string[] {
  return circlesAmongFolders(files, packages).map(
    ({ parent, folders }) => `${parent}/{${folders.join(",")}}: these folders import each other`,
  );
}

function circlesAmongFolders(files: readonly SourceFile[], packages: readonly string[]): Circle[] {
  /** By parent folder: from each folder in it to those that it imports. */
  const imports = new Map<string, Map<string, Set<string>>>();
  for (const file of files) {
    const own = packageOf(file.path, packages);
    if (own === undefined) continue;
    for (const specifier of importsOf(file)) {
      const target = targetOf(file, specifier);
      const apart = target === undefined ? undefined : whereTheyPart(dirname(file.path), dirname(target));
      if (apart === undefined || !`${apart.parent}/`.startsWith(`${own}/`)) continue;
      const folders = imports.get(apart.parent) ?? new Map<string, Set<string>>();
      const imported = folders.get(apart.from) ?? new Set();
      imports.set(apart.parent, folders.set(apart.from, imported.add(apart.to)));
    }
  }
  return [...imports].flatMap(([parent, folders]) =>
    circlesIn(folders).map((circle) => ({ parent, folders: circle })),
  );
}

/** The folder that holds both, and the folder in it of each. Undefined where one is inside the other. */
function whereTheyPart(one: string, other: string) {
  const [names, others] = [one.split("/"), other.split("/")];
  const at = names.findIndex((name, index) => name !== others[index]);
  const [from, to] = [names[at], others[at]];
  return from === undefined || to === undefined
    ? undefined
    : { parent: names.slice(0, at).join("/"), from, to };
}

/** The groups of folders of which each reaches every other. */
function circlesIn(imports: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const reachedFrom = (start: string) => {
    const reached = new Set<string>();
    const waiting = [...(imports.get(start) ?? [])];
    for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
      if (reached.has(next)) continue;
      reached.add(next);
      waiting.push(...(imports.get(next) ?? []));
    }
    return reached;
  };
  const reached = new Map([...imports.keys()].map((folder) => [folder, reachedFrom(folder)]));
  const circles = [...reached].map(([folder, others]) =>
    [folder, ...[...others].filter((other) => other !== folder && reached.get(other)?.has(folder))].sort(),
  );
  const distinct = new Map(circles.map((circle) => [circle.join(), circle]));
  return [...distinct.values()].filter(({ length }) => length > 1);
}

/** Source files that import each other in a cycle, types included. */
export function importCycles(files: readonly SourceFile[]): string[] {
  const imports = new Map(
    files.map((file) => [file.path, importsOf(file).flatMap((specifier) => targetOf(file, specifier) ?? [])]),
  );
  const cycles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, above: readonly string[]): void => {
    if (above.includes(path)) cycles.push([...above.slice(above.indexOf(path)), path].join(" imports "));
    else if (!done.has(path)) for (const next of imports.get(path) ?? []) visit(next, [...above, path]);
    done.add(path);
  };
  for (const path of imports.keys()) visit(path, []);
  return cycles;
}

function targetOf(file: SourceFile, specifier: string): string | undefined {
  return isRelative(specifier) ? join(dirname(file.path), specifier).replace(/\.js$/, ".ts") : undefined;
}
