import { statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  consoleImports,
  coreImports,
  kitImports,
  modulesOfEarlierFiles,
  namesOfLateCommonJs,
  packageImports,
  pluginImports,
  testPartsInProduction,
  testRunnerImports,
} from "../rules/imports.js";
import { missingInjections } from "../rules/injection.js";
import { incompleteManifests, lockfileDrift, missingPlatforms } from "../rules/manifests.js";
import { packageFolders, pathsIntoPackages } from "../rules/package-paths.js";
import { folderCircles, importCycles, roomImports } from "../rules/rooms.js";
import type { SourceFile } from "../rules/source-file.js";
import { credentials, literalSpreads, machinePaths, oddNames, registryHosts } from "../rules/texts.js";
import { isCode, readManifests, readText, readTree, root, symbolicLinks } from "../rules/tree.js";

interface Case {
  readonly rule: (files: readonly SourceFile[]) => string[];
  readonly promise: string;
  readonly tree: () => SourceFile[];
  /** Path and text: each alone must be refused. */
  readonly broken: readonly (readonly [path: string, text: string])[];
  /** All together must pass. */
  readonly kept: readonly (readonly [path: string, text: string])[];
}

const files = readTree();
const code = files.filter(isCode);
/** Joined at run time, so that this file itself keeps the rules. */
const path = (...parts: string[]) => `"/${parts.join("/")}/"`;
const host = (...labels: string[]) => labels.join(".");

const cases: Case[] = [
  {
    rule: coreImports,
    promise: "core imports no plugin and no server",
    tree: () => code,
    broken: [
      ["core/src/registry/load.ts", `import { LocalSandbox } from "@ambit/sandbox-local";`],
      ["core/src/registry/load.ts", `import { Runner } from "@ambit/runner";`],
      ["core/src/registry/load.ts", `export * from "ambit";`],
      ["core/src/registry/load.ts", `const load = () => import("../../../plugins/mcp-http/src/index.js");`],
      ["core/src/registry/load.ts", `export type App = import("../../../server/src/app.js").App;`],
    ],
    kept: [
      [
        "core/src/registry/load.ts",
        `import { z } from "zod"; import type { Plan } from "../boundary/plan.js";`,
      ],
      ["server/src/app.ts", `import { LocalSandbox } from "@ambit/sandbox-local";`],
    ],
  },
  {
    rule: pluginImports,
    promise: "plugins import only public entry points, never each other nor the server",
    tree: () => code,
    broken: [
      ["plugins/one/src/index.ts", `import other from "@ambit/two";`],
      ["plugins/one/src/index.ts", `import type { App } from "ambit";`],
      ["plugins/one/src/index.ts", `import { plan } from "@ambit/core/dist/boundary/plan.js";`],
      ["plugins/one/src/index.ts", `export { other } from "../../two/src/index.js";`],
      ["plugins/one/src/index.ts", `import "@ambit/testkit";`],
      ["plugins/one/src/testing/control.ts", `import { bareControl } from "@ambit/testkit";`],
      ["plugins/one/test/one.test.ts", `import "@ambit/two";`],
    ],
    kept: [
      ["plugins/one/src/index.ts", `import { definePlugin } from "@ambit/core/plugin"; import "./one.js";`],
      ["plugins/one/src/profile.ts", `import agent from "@ambit/agent-demo";`],
      ["plugins/door-one/src/index.ts", `import { Conversation } from "@ambit/client/conversation";`],
      ["plugins/one/test/one.test.ts", `import "@ambit/testkit"; import "../src/index.js"; import "vitest";`],
      ["plugins/one/test/kit.test.ts", `import "@ambit/testkit/vitest"; import "@ambit/one";`],
    ],
  },
  {
    rule: packageImports,
    promise: "packages import core's public entry points, and neither each other nor a plugin nor the server",
    tree: () => code,
    broken: [
      ["packages/one/src/index.ts", `import { Runner } from "@ambit/two";`],
      ["packages/one/src/index.ts", `import { Reaper } from "@ambit/backend-kit";`],
      ["packages/backend-kit/src/index.ts", `import { openRemoteSandbox } from "@ambit/bridge";`],
      ["packages/attacks/src/index.ts", `import { Reaper } from "@ambit/backend-kit";`],
      ["packages/one/src/index.ts", `import type { App } from "ambit";`],
      ["packages/one/src/index.ts", `import { plan } from "@ambit/core/dist/boundary/plan.js";`],
      ["packages/one/src/index.ts", `export { load } from "../../../core/src/registry/load.js";`],
      ["packages/one/src/index.ts", `import "@ambit/fakes/log";`],
      ["packages/one/test/one.test.ts", `import "@ambit/sandbox-local";`],
      ["packages/one/src/index.ts", `import { insideProgram } from "../../../scripts/build/bundling.mjs";`],
      ["packages/one/bundle-inside.mjs", `import { run } from "../../scripts/test.mjs";`],
    ],
    kept: [
      ["packages/one/bundle-inside.mjs", `import { insideProgram } from "../../scripts/build/bundling.mjs";`],
      ["packages/one/src/index.ts", `import "@ambit/core"; import "@ambit/core/plugin"; import "./two.js";`],
      ["packages/one/test/one.test.ts", `import "@ambit/fakes/log"; import "@ambit/one";`],
      ["packages/bridge/src/index.ts", `import "@ambit/backend-kit";`],
      ["packages/backend-kit/src/index.ts", `export * from "@ambit/attacks/probe";`],
      ["packages/sql-store/src/index.ts", `import type { Store } from "@ambit/durable/store";`],
    ],
  },
  {
    rule: consoleImports,
    promise: "the console knows the server only through its client",
    tree: () => code,
    broken: [
      ["console/src/screens/runs.tsx", `import { startServer } from "ambit";`],
      ["console/src/screens/runs.tsx", `import type { Receipt } from "@ambit/core/contract";`],
      ["console/src/server/client.ts", `import { routes } from "../../../server/src/http/routes.js";`],
      ["console/test/session.test.ts", `import { Runner } from "@ambit/runner";`],
    ],
    kept: [
      ["console/src/server/client.ts", `import { AmbitClient } from "@ambit/client"; import "react";`],
      ["console/test/support/server.ts", `import { startServer } from "ambit"; import "vitest";`],
    ],
  },
  {
    rule: roomImports,
    promise: "inside core and the runner each room imports only what lies below",
    tree: () => code,
    broken: [
      ["core/src/contract/tool.ts", `import { AmbitError } from "../errors.js";`],
      ["core/src/boundary.ts", `import type { Actor } from "./plugin/actor.js";`],
      ["core/src/plugin/actor.ts", `import { planRun } from "../plan/plan.js";`],
      ["core/src/plugin/index.ts", `import { load } from "../registry/load.js";`],
      ["core/src/registry/load.ts", `import { parse } from "../index.js";`],
      ["core/src/registry/load.ts", `import { join } from "../somewhere/join.js";`],
      ["core/src/somewhere/join.ts", `import { parse } from "../contract/index.js";`],
      ["core/src/contract/values/http.ts", `import { limits } from "../request/limits.js";`],
      ["core/src/contract/capability.ts", `import type { Gap } from "./result/failure.js";`],
      ["core/src/contract/request/tools/tool.ts", `import type { Issue } from "../../result/failure.js";`],
      ["core/src/contract/result/events.ts", `import { nearestKey } from "../spelling.js";`],
      ["core/src/contract/spelling.ts", `import type { RunRequest } from "./index.js";`],
      ["packages/runner/src/events/run-events.ts", `import { Calls } from "../call/call.js";`],
      ["packages/runner/src/lifetime/scope.ts", `import { tokens } from "../tokens.js";`],
      ["packages/runner/src/call/run-tools.ts", `import { Ask } from "./ask.js";`],
    ],
    kept: [
      [
        "core/src/registry/load.ts",
        `import "./registrar.js"; import "../plugin/index.js"; import "../errors.js";`,
      ],
      ["core/src/errors.ts", `import type { Gap } from "./contract/failure.js";`],
      ["core/src/index.ts", `export * from "./registry/index.js";`],
      ["core/src/contract/result/events.ts", `import "../request/tools/tool.js"; import "./failure.js";`],
    ],
  },
  {
    rule: importCycles,
    promise: "no source files import each other in a cycle",
    tree: () => code,
    broken: [
      ["core/src/plan/plan.ts", `export * from "./plan.js";`],
      ["packages/runner/src/run.ts", `import type { Run } from "./run.js";`],
      ["plugins/one/src/open/open.ts", `import { open } from "./open.js";`],
      ["test/daytona/src/control/proxy.ts", `import type { Proxy } from "./proxy.js";`],
      ["test/e2e/support/server.ts", `import "./server.js";`],
      ["scripts/setup.mjs", `import "./setup.mjs";`],
    ],
    kept: [
      ["core/src/plan/plan.ts", `import "./gaps.js"; import "./choose.js";`],
      ["core/src/plan/choose.ts", `import type { Gap } from "./gaps.js";`],
      ["core/src/plan/gaps.ts", `import "../errors.js";`],
    ],
  },
  {
    rule: testPartsInProduction,
    promise: "nothing that is published is a part for tests, weakens a guard, or imports one that does",
    tree: () => code,
    broken: [
      ["server/src/open.ts", `import { control } from "@ambit/sandbox-local/testing";`],
      ["server/src/open.ts", `const load = () => import("@ambit/sandbox-local/dist/testing/index.js");`],
      ["plugins/one/src/index.ts", `import type { Mechanism } from "../test/weakened/jails/index.js";`],
      ["plugins/one/src/testing/index.ts", "export {};"],
      ["plugins/one/src/weakened/arguments.ts", "export {};"],
      ["packages/one/src/mutation/run-mutants.ts", "export {};"],
      ["core/src/weakening.ts", "export {};"],
      ["plugins/one/inside/weakened.cjs", ""],
    ],
    kept: [
      ["plugins/one/test/weakened/jails/index.ts", `import "../../../dist/confined/open.js";`],
      ["plugins/one/test/one.test.ts", `import "./weakened/jails/index.js";`],
      ["server/src/plugins.ts", `import sandboxLocal from "@ambit/sandbox-local";`],
    ],
  },
  {
    rule: kitImports,
    promise: "the kit depends on no plugin",
    tree: () => code,
    broken: [
      ["test/kit/src/control/control.ts", `import { LocalSandbox } from "@ambit/sandbox-local";`],
      ["test/kit/test/kit.test.ts", `import "@ambit/mcp-http";`],
      ["test/kit/test/kit.test.ts", `import "../../../plugins/mcp-http/src/index.js";`],
      ["test/kit/src/index.ts", `import "@ambit/runner";`],
    ],
    kept: [["test/kit/src/index.ts", `import "@ambit/core"; import "@ambit/core/plugin"; import "./a.js";`]],
  },
  {
    rule: testRunnerImports,
    promise: "only the kit's suites need a test runner",
    tree: () => code,
    broken: [
      ["test/kit/src/index.ts", `import { it } from "vitest";`],
      ["test/kit/src/index.ts", `export * from "./vitest/index.js";`],
      ["server/src/cli/commands/verify.ts", `import "@ambit/testkit/vitest";`],
      ["plugins/one/src/index.ts", `import "vitest/config";`],
    ],
    kept: [
      ["test/kit/src/vitest/index.ts", `import "vitest"; import "./expect-proven.js"; import "../index.js";`],
      ["plugins/one/test/one.test.ts", `import "vitest"; import "@ambit/testkit/vitest";`],
    ],
  },
  {
    rule: missingInjections,
    promise: "every injectable class says for every constructor parameter what to inject",
    tree: () => code.filter(({ path }) => !path.endsWith(".test.ts")),
    broken: [
      ["one.ts", `@injectable() class One { constructor(two: Two) {} }`],
      ["one.ts", `@injectable() class One { constructor(@inject(TWO) two: Two, private three: Three) {} }`],
      ["one.ts", `class One { constructor(@inject(TWO) two: Two, three: Three) {} }`],
      ["one.ts", `class One { constructor(two = 2, @inject(THREE) three: Three) {} }`],
      [
        "one.ts",
        `const One = scoped("x")(class {}); @scoped(X) class Two { constructor(...rest: Two[]) {} }`,
      ],
    ],
    kept: [
      ["one.ts", `@injectable() class One { constructor(@inject(TWO) private readonly two: Two) {} }`],
      ["two.ts", `@injectable() class Two { constructor(@injectAll(TWO) two: Two[]) {} }`],
      ["three.ts", `@injectable() class Three {}`],
      ["four.ts", `class Four { constructor(plain: string) {} }`],
      ["five.ts", `class Five { constructor(@inject(TWO) two: Two, readonly three?: Three, four = 4) {} }`],
    ],
  },
  {
    rule: modulesOfEarlierFiles,
    promise: "no test depends on what an earlier file of its worker has imported",
    tree: () => code,
    broken: [
      ["plugins/one/test/a.test.ts", `vi.mock("node:fs");`],
      ["server/test/http/a.test.ts", `vi.mock("../src/b.js", async () => ({}));`],
      ["test/kit/test/a.test.ts", `vi.mock("node:fs");`],
      ["plugins/one/test/a.test.ts", `await import("../other/b.test.js");`],
      ["plugins/one/test/a.test.ts", `import "./b.test.js";`],
    ],
    kept: [
      ["packages/egress/test/remote/a.test.ts", `vi.mock("../b.js"); await import("../c.test.js");`],
      ["test/e2e/a.test.ts", `vi.mock("node:fs");`],
      ["test/replicas/test/a.test.ts", `vi.mock("node:fs");`],
      ["plugins/one/test/a.test.ts", `vi.resetModules(); vi.doMock("../src/b.js", b);`],
    ],
  },
  {
    rule: namesOfLateCommonJs,
    promise: "what is bundled takes no name from a CommonJS package that it imports late",
    tree: () => code,
    broken: [
      ["server/src/a.ts", `const { pack } = await import("tar-stream");`],
      ["server/src/a.ts", `return import("tar-stream").then(({ pack }) => pack());`],
      ["server/src/a.ts", `const { default: tar, pack } = await import("tar-stream");`],
      ["server/src/a.ts", `const { pack, default: tar } = await import("tar-stream");`],
      ["server/src/a.ts", `return import("tar-stream").then(({ default: tar, pack }) => pack());`],
      ["server/src/a.ts", `return (await import("tar-stream")).pack();`],
      ["server/src/a.ts", `const tar = await import("tar-stream"); tar.pack();`],
      ["server/src/a.ts", `return import("tar-stream").then((tar) => tar.pack());`],
      ["server/src/a.ts", `const load = lazy(() => import("tar-stream"));`],
      ["server/src/a.ts", `const { pack } = await import(\n  "tar-stream"\n);`],
    ],
    kept: [
      ["server/src/a.ts", `return import("tar-stream").then(({ default: tar }) => tar.pack());`],
      ["server/src/a.ts", `return (await import("tar-stream")).default.pack();`],
      ["server/src/a.ts", `type Pack = import("tar-stream").Pack; let tar: typeof import("tar-stream");`],
      [
        "server/src/a.ts",
        `const { default: tar } = await import("tar-stream"); const { execa } = await import("execa");`,
      ],
      ["server/test/a.test.ts", `const { pack } = await import("tar-stream");`],
    ],
  },
  {
    rule: literalSpreads,
    promise: "no literal object is spread into another one",
    tree: () => code,
    broken: [["core/src/a.ts", `const a = { ${"..." + "{"} b, c }, d };`]],
    kept: [["core/src/a.ts", `const a = { ...b, ...(c ? { d } : {}), ...f({ e }) };`]],
  },
  {
    rule: machinePaths,
    promise: "no file names a path of one machine",
    tree: () => files,
    broken: [
      ["a.ts", path("root", ".npm")],
      ["a.md", path("work", "main")],
      ["a.json", path("home", "jane", "ambit")],
      ["a.json", `cd=${path("Users", "jane")}`],
    ],
    kept: [
      ["a.ts", `"/home/agent/.config" "/workspace/a" "./root/a" "docs/work/a" "https://example.com/root/a"`],
    ],
  },
  {
    rule: registryHosts,
    promise: "no file names a package registry",
    tree: () => files,
    broken: [
      ["package-lock.json", `{ "resolved": "${["https", "//example.com/a.tgz"].join(":")}" }`],
      ["a.md", host("registry", "npmjs", "org")],
      ["a.md", `https://${host("artifactory", "example", "com")}/npm`],
      [".npmrc", ["fund=false\nregistry", "//example.com"].join("=")],
    ],
    kept: [
      ["package-lock.json", `{ "resolved": "core" }`],
      ["a.ts", "registry.sandboxes.find(one)"],
      ["a.md", "https://www.npmjs.com/package/zod"],
    ],
  },
  {
    rule: oddNames,
    promise: "limits have the usual names",
    tree: () => files,
    broken: [["core/src/a.ts", `const ${"long" + "est"}Line = 80;`]],
    kept: [
      [
        "core/src/a.ts",
        `const maxLineLength = 80;\nconst renamed = { ${"long" + "est"}Line: "maxLineLength" };`,
      ],
    ],
  },
  {
    rule: credentials,
    promise: "no file holds a credential",
    tree: () => files,
    broken: [
      ["a.ts", `AKIA${"Q".repeat(16)}`],
      ["a.ts", `ghp_${"a".repeat(36)}`],
      ["a.pem", ["-----BEGIN", "PRIVATE KEY-----"].join(" ")],
      [".npmrc", ["//example.com/:_authToken", "abc"].join("=")],
    ],
    kept: [["a.ts", `const key = "sk-test-made-up"; "npm_config_registry"`]],
  },
  {
    rule: incompleteManifests,
    promise: "every package has a license, engines and exports",
    tree: readManifests,
    broken: [
      ["a/package.json", `{ "engines": {}, "exports": {} }`],
      ["a/package.json", `{ "license": "MIT", "exports": {} }`],
      ["a/package.json", `{ "license": "MIT", "engines": {} }`],
    ],
    kept: [["a/package.json", `{ "license": "MIT", "engines": {}, "exports": {} }`]],
  },
];

for (const { rule, promise, tree, broken, kept } of cases) {
  describe(promise, () => {
    const file = ([path, text]: readonly [string, string]): SourceFile => ({ path, text });

    it.each(broken)("refuses in %s fixture %#", (...fixture) => {
      expect(rule([file(fixture)])).toEqual([expect.stringContaining(fixture[0])]);
    });

    it("accepts what conforms", () => {
      expect(rule(kept.map(file))).toEqual([]);
    });

    it("holds in this repository", () => {
      const files = tree();
      expect(files.length).toBeGreaterThan(0);
      expect(rule(files)).toEqual([]);
    });
  });
}

describe("no folders next to each other import each other", () => {
  const file = (path: string, ...imports: string[]) => ({
    path,
    text: imports.map((specifier) => `import "${specifier}";`).join(" "),
  });

  const folders = ["server", "packages/one", "packages/two", "plugins/one", "test/e2e", "bench"];

  it.each([
    [
      "server/src/{http,tenants}",
      [file("server/src/http/a.ts", "../tenants/b.js"), file("server/src/tenants/c.ts", "../http/d.js")],
    ],
    [
      "packages/one/src/{a,b,c}",
      [
        file("packages/one/src/a/deep/x.ts", "../../b/y.js"),
        file("packages/one/src/b/y.ts", "../c/z.js"),
        file("packages/one/src/c/z.ts", "../a/w.js"),
      ],
    ],
    [
      "plugins/one/src/top/{a,b}",
      [file("plugins/one/src/top/a/x.ts", "../b/y.js"), file("plugins/one/src/top/b/y.ts", "../a/x.js")],
    ],
    [
      "packages/one/test/{a,b}",
      [file("packages/one/test/a/x.ts", "../b/y.js"), file("packages/one/test/b/x.ts", "../a/y.js")],
    ],
    [
      "test/e2e/{docs,support}",
      [file("test/e2e/docs/x.ts", "../support/y.js"), file("test/e2e/support/y.ts", "../docs/z.js")],
    ],
    [
      "bench/{goals,src}",
      [file("bench/goals/x.mjs", "../src/y.js"), file("bench/src/y.ts", "../goals/x.mjs")],
    ],
  ])("refuses %s", (circle, files) => {
    expect(folderCircles(files, folders)).toEqual([expect.stringContaining(circle)]);
  });

  it("accepts imports one way, and between a folder and those inside it", () => {
    const files = [
      file("packages/one/src/a/x.ts", "../b/y.js", "./inner/z.js"),
      file("packages/one/src/a/inner/z.ts", "../w.js", "../../c/v.js"),
      file("packages/one/src/b/y.ts", "../c/v.js", "../root.js"),
      file("packages/two/src/c/y.ts", "../a/x.js"),
      file("packages/one/test/a/x.test.ts", "../../src/a/x.js"),
    ];
    expect(folderCircles(files, folders)).toEqual([]);
  });

  it("holds in this repository", () => {
    expect(folderCircles(code, packageFolders(readManifests()))).toEqual([]);
  });
});

describe("no package reaches into another one by a path", () => {
  const folders = ["core", "packages/one", "plugins/two", "server", "test/e2e", "test/three"];

  it.each([
    ["packages/one/test/a.test.ts", `import { table } from "../../../core/scripts/table.mjs";`],
    ["packages/one/src/a.ts", `export * from "../../../core/src/index.js";`],
    ["plugins/two/src/a.ts", `export type A = import("../../../server/src/a.js").A;`],
    ["plugins/two/src/a.ts", `const load = () => import("../../../packages/one/dist/index.js");`],
    ["plugins/two/src/a.ts", "const load = () => import(`../../../packages/one/dist/index.js`);"],
    ["server/test/a.test.ts", `const program = new URL("../../core/dist/main.js", import.meta.url);`],
    ["server/test/a.test.ts", "const program = new URL(`../../core/dist/main.js`, import.meta.url);"],
    ["server/test/a.test.ts", `const program = import.meta.resolve("../../test/three/bin/main.mjs");`],
    ["test/e2e/a.test.ts", `const program = join(import.meta.dirname, "../../server/dist/main.js");`],
    ["test/three/a.test.ts", `import "../e2e/support/ambit.js";`],
  ])("refuses in %s: %s", (path, text) => {
    expect(pathsIntoPackages([{ path, text }], folders)).toEqual([expect.stringContaining(path)]);
  });

  it("accepts names, paths inside a package, and what belongs to none", () => {
    const files = [
      { path: "packages/one/src/a.ts", text: `import "@ambit/core"; import "../inside/b.js";` },
      { path: "packages/one/src/a.ts", text: `new URL("../inside/b.cjs", import.meta.url);` },
      { path: "server/test/a.test.ts", text: `new URL("../bin/a.mjs", import.meta.resolve("ambit"));` },
      { path: "server/test/a.test.ts", text: `new URL("../../docs/http.md", import.meta.url);` },
      { path: "test/three/src/a.ts", text: `join(import.meta.dirname, "../../..", "node_modules");` },
      { path: "scripts/docs/a.mjs", text: `import "../../core/dist/index.js";` },
    ];
    expect(pathsIntoPackages(files, folders)).toEqual([]);
  });

  it("holds in this repository", () => {
    const own = packageFolders(readManifests());
    expect(own.length).toBeGreaterThan(40);
    expect(pathsIntoPackages(code, own)).toEqual([]);
  });
});

describe(".ci/run is executable", () => {
  const isExecutable = (file: string) => (statSync(`${root}/${file}`).mode & 0o111) === 0o111;

  it("isn't true of every file", () => {
    expect(isExecutable("package.json")).toBe(false);
  });

  it("holds in this repository", () => {
    expect(isExecutable(".ci/run")).toBe(true);
  });
});

describe("the lockfile agrees with every package", () => {
  const lockfile = {
    path: "package-lock.json",
    text: `{ "packages": { "a": { "dependencies": { "b": "^1.0.0" } } } }`,
  };
  const manifest = (text: string) => ({ path: "a/package.json", text });

  it.each([`{}`, `{ "dependencies": { "b": "^2.0.0" } }`, `{ "devDependencies": { "b": "^1.0.0" } }`])(
    "refuses %s",
    (text) => {
      expect(lockfileDrift([lockfile, manifest(text)])).toContainEqual(
        expect.stringContaining("a/package.json"),
      );
    },
  );

  it("accepts what is locked", () => {
    expect(lockfileDrift([lockfile, manifest(`{ "dependencies": { "b": "^1.0.0" } }`)])).toEqual([]);
  });

  it("holds in this repository", () => {
    expect(
      lockfileDrift(["package-lock.json", "package.json"].map(readText).concat(readManifests())),
    ).toEqual([]);
  });
});

describe("the lockfile has the packages of every platform, as npm ci needs them", () => {
  const lockfile = (...packages: string[]): SourceFile => ({
    path: "package-lock.json",
    text: JSON.stringify({
      packages: {
        "": {},
        "a/node_modules/native": { optionalDependencies: { "native-linux": "1", "native-mac": "1" } },
        ...Object.fromEntries(packages.map((path) => [path, {}])),
      },
    }),
  });

  it("refuses one that was made on one platform", () => {
    expect(missingPlatforms([lockfile("node_modules/native-linux")])).toEqual([
      "package-lock.json: a/node_modules/native lacks native-mac",
    ]);
  });

  it("accepts packages at any place where Node finds them", () => {
    const complete = lockfile("a/node_modules/native-linux", "node_modules/native-mac");
    expect(missingPlatforms([complete])).toEqual([]);
  });

  it("holds in this repository", () => {
    expect(missingPlatforms([readText("package-lock.json")])).toEqual([]);
  });
});

it("no symbolic link is in the repository", () => {
  expect(symbolicLinks()).toEqual([]);
});
