import { readFileSync } from "node:fs";
import { dirname, join } from "node:path/posix";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { isolatedPackages } from "../../../scripts/vitest/tiers.js";
import { importsOf, type SourceFile } from "./source-file.js";

const publicCore = /^@ambit\/core(\/(contract|plugin))?$/;
/** What runner and broker search for secrets with; it rests on nothing. */
const secretForms = "@ambit/secret-forms";
/** Published for plugins: the entry points of `@ambit/core`, and agents, which are programs to be started. */
const publicToPlugins =
  /^@ambit\/(core(\/(contract|plugin))?|attacks(\/(inside|probe|standard-probe|system-calls))?|backend-kit(\/(http|safe-fs|system-call-filter))?|bridge|client(\/conversation)?|durable\/store|egress(\/(client|credentials|dispatcher|proxy|remote))?|metrics|sql-store(\/(memory|schema|sqlite))?|workspace\/blobs|sandbox-image|agent-[\w-]+)$/;
/** What the tests of a plugin may import in addition. A dialect's read whole requests as the runner does. */
const publicToTests =
  /^@ambit\/(testkit(\/vitest)?|model-server|daytona-loopback|docker-engine|test-cluster|otlp-receiver|test-postgres|runner|fakes\/[\w-]+)$/;

const isOurs = (specifier: string) => /^(@ambit\/|ambit(\/|$))/.test(specifier);
export const isRelative = (specifier: string) => specifier.startsWith(".");

export function violations(
  files: readonly SourceFile[],
  judge: (file: SourceFile, specifier: string) => boolean,
) {
  return files.flatMap((file) =>
    importsOf(file)
      .filter((specifier) => !judge(file, specifier))
      .map((specifier) => `${file.path} imports "${specifier}"`),
  );
}

function staysIn(folder: string, file: SourceFile, specifier: string) {
  return join(dirname(file.path), specifier).startsWith(`${folder}/`);
}

/** What a test says of the machine that it needs. */
const testNeeds = "scripts/vitest/skip-without.ts";

/** Whether a test of a workspace imports it. */
const importsNeeds = (file: SourceFile, specifier: string) =>
  file.path.includes("/test/") && join(dirname(file.path), specifier) === testNeeds;

/** What backends share rests on the catalogue of attacks. */
const publicToBackendKit = /^@ambit\/(core(\/(contract|plugin))?|attacks(\/(probe|system-calls))?)$/;

/** The bridge is part of a backend, so it shares what backends share. */
const publicToBridge = /^@ambit\/(core(\/(contract|plugin))?|backend-kit(\/(http|safe-fs))?)$/;

/** What tests of a package may import in addition: one scripted actor of each kind, and free ports. */
const publicToPackageTests = /^@ambit\/(fakes\/|backend-kit$)/;

/** A store implements the interface of those who use it. */
const publicToSqlStore = /^@ambit\/(core(\/(contract|plugin))?|durable\/store)$/;

/** A package's own script that bundles its programs, and what all these scripts share. */
const bundleScript = /^packages\/[^/]+\/bundle-[\w-]+\.mjs$/;
const bundlingOptions = "scripts/build/bundling.mjs";

/**
 * A package imports core's public entry points; the bridge also the backend kit, and `sql-store` the store's interface.
 * Its bundle script has the options of all bundles.
 */
export function packageImports(files: readonly SourceFile[]): string[] {
  const packages = files.filter(({ path }) => path.startsWith("packages/"));
  return violations(packages, (file, specifier) => {
    const [floor, name, place] = file.path.split("/");
    const further = new Map([
      ["backend-kit", publicToBackendKit],
      ["bridge", publicToBridge],
      ["sql-store", publicToSqlStore],
    ]);
    const allowed = further.get(name ?? "") ?? publicCore;
    if (isRelative(specifier)) {
      const target = join(dirname(file.path), specifier);
      const isShared = bundleScript.test(file.path) && target === bundlingOptions;
      return isShared || importsNeeds(file, specifier) || staysIn(`${floor}/${name}`, file, specifier);
    }
    return (
      !isOurs(specifier) ||
      specifier === `@ambit/${name}` ||
      specifier === secretForms ||
      (place === "test" && publicToPackageTests.test(specifier)) ||
      allowed.test(specifier)
    );
  });
}

/** Core imports no plugin, no server, and nothing else of this repository. */
export function coreImports(files: readonly SourceFile[]): string[] {
  const core = files.filter(({ path }) => path.startsWith("core/src/"));
  return violations(core, (file, specifier) =>
    isRelative(specifier) ? staysIn("core/src", file, specifier) : !isOurs(specifier),
  );
}

/** A plugin imports public entry points only: no other plugin, no server, no other package's inner files. */
export function pluginImports(files: readonly SourceFile[]): string[] {
  const plugins = files.filter(({ path }) => path.startsWith("plugins/"));
  return violations(plugins, (file, specifier) => {
    const [plugins, name, place] = file.path.split("/");
    if (isRelative(specifier)) {
      return importsNeeds(file, specifier) || staysIn(`${plugins}/${name}`, file, specifier);
    }
    const isTest = place === "test";
    const isPublic = publicToPlugins.test(specifier) || (isTest && publicToTests.test(specifier));
    // By its public entry point, like its users.
    const isItself = isTest && specifier === `@ambit/${name}`;
    return !isOurs(specifier) || isPublic || isItself;
  });
}

/** What is published: no module of it imports what only tests have, and none is a part that weakens a guard. */
export function testPartsInProduction(files: readonly SourceFile[]): string[] {
  const production = files.filter(({ path }) =>
    /^(core|packages\/[^/]+|plugins\/[^/]+|server)\/(src|inside|bin)\//.test(path),
  );
  const isTestPart = (path: string) =>
    /(^|\/)(test|testing|weaken[a-z]*|mutants?|mutations?)([/.-]|$)/.test(path);
  const placed = production.filter(({ path }) => isTestPart(path.split("/").slice(2).join("/")));
  const code = production.filter(({ path }) => /\.(ts|mts|mjs|js|cjs)$/.test(path));
  return [
    ...placed.map(({ path }) => `${path} is for tests: move it to the package's folder test`),
    ...violations(code, (file, specifier) =>
      isRelative(specifier)
        ? !isTestPart(join(dirname(file.path), specifier).split("/").slice(2).join("/"))
        : !/^@ambit\/[^/]+\/.*(testing|weaken|mutant)/.test(specifier),
    ),
  ];
}

/** The console knows the server only through the client of its public API. Its tests start a server, and a real agent's model. */
export function consoleImports(files: readonly SourceFile[]): string[] {
  const page = files.filter(({ path }) => /^console\/(src|test)\//.test(path));
  return violations(page, (file, specifier) => {
    if (isRelative(specifier)) return importsNeeds(file, specifier) || staysIn("console", file, specifier);
    const allowed = [
      "@ambit/client",
      ...(file.path.startsWith("console/test/") ? ["ambit", "@ambit/model-server"] : []),
    ];
    return !isOurs(specifier) || allowed.includes(specifier);
  });
}

/** The kit depends on no plugin: each plugin calls the kit from its own tests. */
export function kitImports(files: readonly SourceFile[]): string[] {
  const kit = files.filter(({ path }) => path.startsWith("test/kit/"));
  return violations(kit, (file, specifier) =>
    isRelative(specifier)
      ? importsNeeds(file, specifier) || staysIn("test/kit", file, specifier)
      : !isOurs(specifier) ||
        publicCore.test(specifier) ||
        specifier === "@ambit/attacks" ||
        specifier === "@ambit/model-server" ||
        specifier === "@ambit/durable/store" ||
        specifier === "@ambit/workspace" ||
        specifier === "@ambit/workspace/blobs",
  );
}

/** Production code needs no test runner, and neither does the kit except for its suites. */
export function testRunnerImports(files: readonly SourceFile[]): string[] {
  const production = files.filter(({ path }) =>
    /^(core|packages\/[^/]+|plugins\/[^/]+|server|test\/kit)\/src\//.test(path),
  );
  const suites = "test/kit/src/vitest/";
  return violations(
    production.filter(({ path }) => !path.startsWith(suites)),
    (file, specifier) =>
      isRelative(specifier)
        ? !join(dirname(file.path), specifier).startsWith(suites)
        : !/^(vitest|@ambit\/testkit\/vitest)(\/|$)/.test(specifier),
  );
}

const packageOfTest = /^(test\/[^/]+(?=\/test\/)|test|[^/]+(?=\/test\/)|[^/]+\/[^/]+)\//;

/**
 * A module that is replaced, or a file of tests that is imported, needs a worker in which no earlier file has imported it:
 * otherwise the real module is used, and the tests aren't run.
 */
export function modulesOfEarlierFiles(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path.endsWith(".test.ts") && !path.startsWith("test/repository/"))
    .filter(({ text }) => /\bvi\.mock\(|\bimport\(?[^;]*\.test\.[jt]s["']/.test(text))
    .filter(({ path }) => !isolatedPackages.includes(packageOfTest.exec(path)?.[1] ?? ""))
    .map(({ path }) => `${path} replaces a module, or imports tests, in a worker that it shares`);
}

const onlyDefault = String.raw`\{\s*default:\s*\w+,?\s*\}`;
/** A late import, its specifier in the group that has its name; and around it what takes its default export alone. */
const lateImport = new RegExp(
  [
    String.raw`(?<takenBefore>${onlyDefault}\s*=\s*await\s+|\btypeof\s+)?(?<awaited>\bawait\s+)?`,
    String.raw`\bimport\(\s*["'](?<specifier>[^"'.][^"']*)["']\s*,?\s*\)`,
    String.raw`(?<takenAfter>\s*\)\s*\.default\b|\s*\.then\(\s*\(\s*${onlyDefault}\s*\)\s*=>)?(?<name>\.(?!then\b)\w+)?`,
  ].join(""),
  "g",
);
const moduleManifest = z.looseObject({ type: z.string().optional(), exports: z.unknown().optional() });

function isCommonJs(specifier: string): boolean {
  const [scope = "", name = ""] = specifier.split("/");
  const folder = scope.startsWith("@") ? `${scope}/${name}` : scope;
  const path = fileURLToPath(new URL(`../../../node_modules/${folder}/package.json`, import.meta.url));
  const { type, exports } = moduleManifest.parse(JSON.parse(readFileSync(path, "utf8")));
  return type !== "module" && !JSON.stringify(exports ?? "").includes('"import"');
}

/** In the server's bundle, a CommonJS package that is imported late has its default export alone. */
export function namesOfLateCommonJs(files: readonly SourceFile[]): string[] {
  return files
    .filter(({ path }) => path.includes("/src/") && path.endsWith(".ts"))
    .flatMap(({ path, text }) =>
      [...text.matchAll(lateImport)].flatMap(({ groups = {} }) => {
        const { takenBefore, awaited, specifier = "", takenAfter, name } = groups;
        const isType = awaited === undefined && name !== undefined;
        const isDefault = takenBefore !== undefined || takenAfter !== undefined;
        return isType ||
          isDefault ||
          isOurs(specifier) ||
          specifier.startsWith("node:") ||
          !isCommonJs(specifier)
          ? []
          : [`${path} takes names of "${specifier}", whose late import has them in its default export`];
      }),
    );
}
