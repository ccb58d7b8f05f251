import { expect, it } from "vitest";
import { setupInputsOf } from "../../../src/cli/by-hand/setup-inputs.js";
import { ConfigurationInvalid } from "../../../src/configuration/problems.js";

const paths = [
  "Makefile",
  "api/go.mod",
  "lib/[odd].sh",
  "package-lock.json",
  "package.json",
  "requirements-dev.txt",
  "src/index.js",
  "tools/setup.sh",
  "web/.npmrc",
];
const packages = ["api/go.mod", "package-lock.json", "package.json", "requirements-dev.txt", "web/.npmrc"];

it.each<[string, readonly string[], readonly string[] | undefined, readonly string[]]>([
  ["manifests and lockfiles, in any folder", ["npm ci"], undefined, packages],
  ["a script", ["sh ./tools/setup.sh --all"], undefined, [...packages, "tools/setup.sh"]],
  ["a script, quoted", ["cd . && 'tools/setup.sh'; true"], undefined, [...packages, "tools/setup.sh"]],
  ["make's rules", ["make deps"], undefined, ["Makefile", ...packages]],
  [
    "a name that has characters of a glob",
    ["sh lib/[odd].sh"],
    undefined,
    ["api/go.mod", "lib/[odd].sh", ...packages.slice(1)],
  ],
  ["what the user names instead", ["npm ci"], ["src/**"], ["src/index.js"]],
])("depends on %s", (_what, commands, wanted, inputs) => {
  expect(setupInputsOf(paths, commands, wanted)?.paths.toSorted()).toEqual(inputs.toSorted());
});

it("depends on every file of a folder without any of them", () => {
  expect(setupInputsOf(["notes.md"], ["mkdir made"], undefined)).toBeUndefined();
});

it("refuses globs that name no file", () => {
  expect(() => setupInputsOf(paths, ["npm ci"], ["*.lock"])).toThrow(ConfigurationInvalid);
});
