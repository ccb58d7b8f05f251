import { describe, expect, it, test } from "vitest";
import { settingsOf } from "../../src/git/repository.js";
import { changedContents, isReadFromIndex, Sparse } from "../../src/git/tree.js";

describe("what is wanted of a repository", () => {
  const { has, paths } = ((sparse: Sparse) => ({
    has: (path: string) => sparse.has(Buffer.from(path).toString("latin1")),
    paths: sparse.paths,
  }))(new Sparse(["src/", "./docs//a.md", "größe"]));

  it.for<[path: string, isWanted: boolean]>([
    ["src/a.ts", true],
    ["src/deep/b.ts", true],
    ["docs/a.md", true],
    ["größe/x", true],
    ["docs/a.md.txt", false],
    ["docs/b.md", false],
    ["srcs/a.ts", false],
    ["other/src/a.ts", false],
    ["top.txt", false],
  ])("%s: %s", ([path, isWanted]) => {
    expect(has(path)).toBe(isWanted);
  });

  it("has no slash at an end, and no name that says nothing", () => {
    expect(paths).toEqual(["src", "docs/a.md", "größe"]);
  });

  it("has attributes of each folder above it", () => {
    expect(new Sparse(["a/b/c", "a/d"]).attributesAbove.toSorted()).toEqual([
      ".gitattributes",
      "a/.gitattributes",
      "a/b/.gitattributes",
    ]);
  });

  it.for<[what: string, path: string, line: string]>([
    ["plain", "src", "/src"],
    ["with what a pattern means something by", "a*b?[c]", "/a\\*b\\?\\[c]"],
    ["that begins like a comment or an exception", "#a", "/#a"],
    ["with spaces at its end, which git would cut off", "a b  ", "/a b\\ \\ "],
    ["with the end of a line", "a\nb", "/a?b"],
  ])("is a pattern for git inside: a path %s", ([, path, line]) => {
    expect(new Sparse([path]).patterns([]).toString()).toBe(`${line}\n`);
  });

  it("takes time with the length of what was left out", () => {
    const spaces = Array.from({ length: 5_000 }, (_, at) => `src/${" ".repeat(3_900)}${at}`);
    const lines = new Sparse(["src"]).patterns(spaces).toString("latin1").split("\n");
    expect(lines.slice(1, -1)).toEqual(spaces.map((path) => `!/${path}`));
    const deep = "a/".repeat(2_000);
    const folders = Array.from({ length: 5_000 }, (_, at) => deep + at);
    expect(folders.filter((path) => new Sparse(["src"]).has(path))).toEqual([]);
  });

  it("doesn't bring back what was left out of it", () => {
    const patterns = new Sparse(["src"]).patterns(["src/link", "docs/a.md", "src/\xff"]);
    expect(patterns.toString("latin1")).toBe("/src\n!/src/link\n!/src/\xff\n");
  });
});

it.for<[path: string, isRead: boolean]>([
  [".gitignore", true],
  ["a/b/.gitattributes", true],
  [".gitmodules", true],
  ["a/.gitmodules", false],
  [".lfsconfig", true],
  ["a.gitignore", false],
  ["a/.gitignore/b", false],
])("git reads %s from the index: %s", ([path, isRead]) => {
  expect(isReadFromIndex(path)).toBe(isRead);
});

const [one, two, three, none] = ["1", "2", "3", "0"].map((digit) => digit.repeat(40));

test("the contents before and after each change are known, and submodules aren't contents", () => {
  const listed = [
    `:100644 100644 ${one} ${two} M\0src/a.txt\0`,
    // Such a path looks like the next change.
    `:000000 100644 ${none} ${three} A\0:100644 100644 ${"4".repeat(40)} ${"5".repeat(40)} M\0`,
    `:100644 000000 ${one} ${none} D\0gone\0`,
    `:160000 160000 ${"6".repeat(40)} ${"7".repeat(40)} M\0vendor\0`,
  ].join("");
  expect([...changedContents(Buffer.from(listed))].toSorted()).toEqual([one, two, three]);
  expect([...changedContents(Buffer.alloc(0))]).toEqual([]);
});

test.each([
  ["without a path", `:100644 100644 ${one} ${two} M\0`],
  ["without an end", `:100644 100644 ${one} ${two} M\0a`],
  ["of something else", "commit x\0a\0"],
  ["with an id that is too short", `:100644 100644 ${one} 22 M\0a\0`],
])("a list of changes %s is refused", (_what, listed) => {
  expect(() => changedContents(Buffer.from(listed))).toThrow("a list of changes");
});

describe("the settings of git inside", () => {
  const plain = { url: "https://git.example/a", branch: "main", isSparse: false, hasLfs: false };
  const settings = (more: object) => settingsOf({ ...plain, ...more }).toString();

  it("say where it came from, and what is checked out", () => {
    expect(settings({})).toBe(
      [
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true",
        '[remote "origin"]\n\turl = "https://git.example/a"\n\tfetch = +refs/heads/*:refs/remotes/origin/*',
        '[branch "main"]\n\tremote = origin\n\tmerge = "refs/heads/main"\n',
      ].join("\n"),
    );
    expect(settings({ branch: undefined })).not.toContain("[branch");
  });

  it("can't be given others by a branch's name", () => {
    expect(settings({ branch: 'a"]\\' })).toContain('[branch "a\\"]\\\\"]');
  });

  it("name the extension of a partial clone where something is missing, and git LFS where its contents are there", () => {
    expect(settings({ isSparse: true })).toMatch(/repositoryformatversion = 1.*partialClone = origin/s);
    expect(settings({ isSparse: true })).not.toContain("[filter");
    expect(settings({ hasLfs: true })).toMatch(/\[filter "lfs"\]\n[^[]*required = true/);
    expect(settings({ hasLfs: true })).not.toMatch(/sparse|promisor/);
  });
});
