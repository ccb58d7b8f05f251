import { describe, expect, test } from "vitest";
import { devcontainerIn, ignoredSentence } from "../src/environment/devcontainer.js";

const folder = "/workspace/app";

/** As the file writes one. */
const variable = (name: string) => ["$", `{${name}}`].join("");
const read = (file: object) => devcontainerIn(JSON.stringify(file), folder);
const shown = (file: object) => read(file).commands.map(({ shown: text }) => text);

describe("a devcontainer.json", () => {
  test("gives its commands in the order in which a container would run them, in the repository's folder", () => {
    const file = {
      postCreateCommand: { one: "echo 1", other: ["echo", "two words"] },
      updateContentCommand: ["npm", "ci", "--prefix", `${variable("containerWorkspaceFolder")}/web`],
      onCreateCommand: `echo ${variable("HOME")} && true`,
    };
    expect(read(file).commands).toEqual([
      {
        name: "environment.devcontainer: onCreateCommand",
        folder,
        argv: ["/bin/sh", "-c", `echo ${variable("HOME")} && true`],
        shown: `echo ${variable("HOME")} && true`,
      },
      {
        name: "environment.devcontainer: updateContentCommand",
        folder,
        argv: ["/bin/sh", "-c", 'exec "$@"', "sh", "npm", "ci", "--prefix", "/workspace/app/web"],
        shown: "npm ci --prefix /workspace/app/web",
      },
      {
        name: "environment.devcontainer: postCreateCommand.one",
        folder,
        argv: ["/bin/sh", "-c", "echo 1"],
        shown: "echo 1",
      },
      {
        name: "environment.devcontainer: postCreateCommand.other",
        folder,
        argv: ["/bin/sh", "-c", 'exec "$@"', "sh", "echo", "two words"],
        shown: "echo two words",
      },
    ]);
  });

  test("may have comments and trailing commas, and commands that are empty", () => {
    const text = '// of the project\n{ /* both */ "onCreateCommand": "", "postCreateCommand": "true", }';
    expect(devcontainerIn(text, folder).commands).toHaveLength(1);
    expect(devcontainerIn("{}", folder)).toEqual({
      commands: [],
      env: {},
      image: undefined,
      ignored: [],
    });
  });

  test("gives variables, those of the remote ones last", () => {
    const containerEnv = { A: "1", B: "2", C: variable("containerWorkspaceFolderBasename") };
    expect(read({ containerEnv, remoteEnv: { B: "3", A: null } }).env).toEqual({ B: "3", C: "app" });
  });

  test("names what it has in vain, within limits", () => {
    const ignored = ["customizations", "forwardPorts", "postStartCommand", "postCreateComand", "remoteUser"];
    const file = Object.fromEntries(ignored.map((key) => [key, {}]));
    expect(read({ name: "x", $schema: "y", ...file }).ignored).toEqual(ignored);
    expect(ignoredSentence(ignored)).toContain('"customizations", "forwardPorts", "postStartCommand"');
    const many = Array.from({ length: 1_000 }, (_, index) => `${index}\n${"x".repeat(500)}`);
    const sentence = ignoredSentence(many) ?? "";
    expect(sentence.length).toBeLessThan(2_000);
    expect(sentence).toContain("and 980 more");
    expect(sentence).not.toContain("\n");
  });

  test.each([
    "initializeCommand",
    "build",
    "dockerFile",
    "dockerComposeFile",
    "features",
    "mounts",
    "workspaceMount",
    "privileged",
    "capAdd",
    "securityOpt",
    "runArgs",
  ])("is refused with %s, however little that says", (key) => {
    expect(() => read({ [key]: null })).toThrow(`has ${key}, which Ambit doesn't do: `);
  });

  test("says why nothing runs on the host", () => {
    expect(() => read({ initializeCommand: "touch /tmp/out" })).toThrow(
      /would run on the host, outside every boundary; move/,
    );
  });

  test.each<[what: string, file: object, said: RegExp]>([
    [
      "a variable of the host",
      { containerEnv: { A: `x${variable("localEnv:HOME")}` } },
      /localEnv:HOME.*containerEnv\.A.*host/,
    ],
    ["its older name", { remoteEnv: { A: variable("env:HOME") } }, /env:HOME.*of the host/],
    [
      "one of the host in a command",
      { onCreateCommand: `echo ${variable("localEnv:TOKEN:none")}` },
      /localEnv:TOKEN/,
    ],
    ["one in an argument", { onCreateCommand: ["echo", variable("localWorkspaceFolder")] }, /no value here/],
    // To look for the end of each would take a second.
    [
      "ones that don't end",
      { onCreateCommand: variable("env:").slice(0, -1).repeat(5_000) },
      /env:.*of the host/,
    ],
    ["a value that isn't text", { containerEnv: { A: 1 } }, /containerEnv\.A has another form/],
    ["a name that isn't a variable's", { containerEnv: { "A B": "1" } }, /containerEnv/],
    ["a NUL", { onCreateCommand: "echo \0" }, /NUL/],
    ["a command of another form", { postCreateCommand: 5 }, /postCreateCommand has another form/],
    ["a command within a command", { postCreateCommand: { a: { b: "c" } } }, /postCreateCommand/],
    ["too many arguments", { postCreateCommand: Array(1_000).fill("a") }, /postCreateCommand/],
    ["too much depth", { customizations: deep(20) }, /levels/],
    ["a list in place of itself", [], /must be an object/],
  ])("is refused with %s", (_what, file, said) => {
    expect(() => read(file)).toThrow(said);
  });

  test("that isn't JSON is refused by its line, however deep it is", () => {
    expect(() => devcontainerIn('{\n"a": tru\n}', folder)).toThrow(/line 2/);
    expect(() => devcontainerIn("", folder)).toThrow(/isn't JSON/);
    expect(() => devcontainerIn("[".repeat(65_000), folder)).toThrow(/levels/);
  });

  test("can't set what others inherit", () => {
    const file = devcontainerIn('{"__proto__": {"image": "x", "onCreateCommand": "y"}}', folder);
    expect(file).toMatchObject({ commands: [], image: undefined });
    expect(shown({})).toEqual([]);
  });
});

function deep(levels: number): object {
  return levels === 0 ? {} : { a: deep(levels - 1) };
}
