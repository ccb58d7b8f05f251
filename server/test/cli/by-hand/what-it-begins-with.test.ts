import { chmod, readdir, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { Conversation } from "../../../src/cli/by-hand/conversation.js";
import { requestByHand } from "../../../src/cli/by-hand/request.js";
import { skillFrom } from "../../../src/cli/by-hand/skill-folder.js";
import { emptyFolder } from "../../support/empty-folder.js";

describe("a skill's folder", () => {
  it("has its front matter's name, its text, and the files next to it", async () => {
    const folder = await emptyFolder();
    const head = "---\nname: tidy\ndescription: >\n  Tidies\n  up.\nlicense: MIT\n---\n";
    await writeFile(join(folder, "SKILL.md"), `${head}\n# Tidy\n`);
    await writeFile(join(folder, "tidy.sh"), "echo tidy\n");
    await chmod(join(folder, "tidy.sh"), 0o755);
    expect(await skillFrom(folder)).toEqual({
      name: "tidy",
      description: "Tidies up.\n",
      body: "# Tidy",
      files: [{ path: "tidy.sh", content: "echo tidy\n", executable: true }],
      disableModelInvocation: undefined,
      allowExecutableFiles: true,
    });
  });

  it.each<[string, string | Buffer, RegExp]>([
    ["without SKILL.md", "", /has no SKILL.md/],
    ["whose front matter is no YAML", "---\n: : [\n---\n", /front matter is no YAML/],
    ["whose name is no text", "---\nname: [a]\n---\n", /name/],
    ["with bytes", Buffer.from([0xff, 0xfe]), /is no text/],
  ])("is refused %s", async (_, content, reason) => {
    const folder = await emptyFolder();
    if (content !== "") await writeFile(join(folder, "SKILL.md"), content);
    await expect(skillFrom(folder)).rejects.toThrow(reason);
  });
});

describe("a folder's conversation", () => {
  const said = (text: string) => ({ role: "user" as const, content: text });

  it("is the same by every path of the folder, and only its user can read it", async () => {
    const state = await emptyFolder();
    const folder = await emptyFolder();
    const link = join(await emptyFolder(), "link");
    await symlink(folder, link);
    const kept = await Conversation.of(folder, state);
    await kept.keep([said("hello")]);
    expect(await (await Conversation.of(link, state)).read()).toEqual([said("hello")]);
    expect((await stat(kept.file)).mode & 0o777).toBe(0o600);
    expect((await stat(join(state, "conversations"))).mode & 0o777).toBe(0o700);
  });

  it("drops its oldest messages above its limits", async () => {
    const conversation = await Conversation.of(await emptyFolder(), await emptyFolder());
    await conversation.keep(Array.from({ length: 300 }, (_, index) => said(`${index}`)));
    const counted = await conversation.read();
    expect([counted.length, counted.at(-1)]).toEqual([200, said("299")]);
    await conversation.keep([said("a".repeat(600_000)), said("b".repeat(600_000)), said("last")]);
    expect((await conversation.read()).at(-1)).toEqual(said("last"));
    expect((await stat(conversation.file)).size).toBeLessThan(1_048_577);
  });

  it("is forgotten for the oldest of many folders", async () => {
    const state = await emptyFolder();
    const first = await Conversation.of(await emptyFolder(), state);
    await first.keep([said("first")]);
    await utimes(first.file, 1, 1);
    for (let count = 0; count < 99; count += 1)
      await writeFile(join(state, "conversations", `${count}.json`), "{}");
    expect(await first.read()).toHaveLength(1);
    await (await Conversation.of(await emptyFolder(), state)).keep([said("latest")]);
    await expect(first.read()).rejects.toThrow("has no earlier run");
    expect(await readdir(join(state, "conversations"))).toHaveLength(100);
  });

  it("can't be resumed before the first run", async () => {
    const conversation = await Conversation.of(await emptyFolder(), await emptyFolder());
    await expect(conversation.read()).rejects.toThrow("has no earlier run: leave --resume out");
  });
});

describe("an MCP server of the command line", () => {
  it.each([
    ["https://mcp.example.com/sse?x=1", "mcp-example-com", "https://mcp.example.com/sse?x=1"],
    ["issues=http://127.0.0.1:9/mcp", "issues", "http://127.0.0.1:9/mcp"],
    // Refused by its path in the request.
    ["nonsense", "server", "nonsense"],
  ])("%s", (text, name, url) => {
    const asked = { prompt: "", earlier: [], files: [], skills: [], environment: {}, waitMs: 0 };
    expect(requestByHand({ ...asked, options: { mcp: [text] } })).toMatchObject({
      mcpServers: [{ name, connection: { type: "http", url } }],
    });
  });
});
