import { dirname, join } from "node:path/posix";
import { isRelative, violations } from "./imports.js";
import { importsOf, type SourceFile } from "./source-file.js";

const maxFolderFiles = 15;

/** Folders that are small enough for a newcomer. */
export function fullFolders(files: readonly SourceFile[]): string[] {
  const folders = Map.groupBy(files, ({ path }) => dirname(path));
  return [...folders]
    .filter(([, inside]) => inside.length > maxFolderFiles)
    .map(
      ([folder, inside]) =>
        `${folder} has ${inside.length} source files, ${maxFolderFiles} at most: give them subfolders by what they are about`,
    );
}

/** The layers of a folder from the bottom up: each may import those before it, and its own. */
const floorsOf: Readonly<Record<string, readonly (readonly string[])[]>> = {
  "core/src": [
    ["secrets"],
    ["contract"],
    ["error-lines.ts", "ambit-error.ts"],
    ["errors.ts"],
    ["boundary"],
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
    ["issue-sentence.ts"],
    ["index.ts"],
  ],
  "core/src/boundary": [["boundary.ts"], ["network"], ["normalise.ts"], ["index.ts"]],
};

/** Inside core each folder imports only those below it. `index.ts` may import all. */
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
