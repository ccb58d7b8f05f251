// needs: git
import { execFileSync } from "node:child_process";
import { appendFileSync } from "node:fs";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { obeyedMessage } from "../../../src/profiles/handoffs.js";
import type { Profile } from "../../../src/profiles/profile.js";
import { AgentStage, isTested } from "../../support/agent-stage.js";
import { handoffCases } from "../../support/handoffs/cases.js";
import type { Handoff } from "../../support/handoffs/handoff.js";
import { eventsOf, ofType, turnOf } from "../../support/runs.js";

const results = process.env.AMBIT_AGENTS_RESULTS;
const tried = handoffCases.filter(({ profile }) => isTested(profile.id, "codex", "gemini", "pi"));

/** Files that an earlier turn or a repository leaves for an agent: docs/agents.md has them all. */
describe.each(tried)("files for $profile.title", { timeout: 120_000 }, ({ profile, unguarded, files }) => {
  let stage: AgentStage;
  afterEach(() => stage.close());

  const nameOf = ({ place, path }: Handoff) => `${place}-${path.replaceAll(/[^\w.]/g, "_")}`;
  const open = async () => {
    stage = await AgentStage.open(profile);
    await mkdir(join(stage.sandbox.folder, "marks"));
    execFileSync("git", ["init", "-q", stage.sandbox.workspace]);
  };
  const plant = async (planted: readonly Handoff[]) => {
    for (const handoff of planted) {
      const mark = join(stage.sandbox.folder, "marks", nameOf(handoff));
      const file = join(stage.sandbox[handoff.place], handoff.path);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, handoff.content(`touch ${mark}`, `word-${nameOf(handoff)}-.`));
      // What variables name, run by a shell.
      if (handoff.what === "variables") await writeFile(`${mark}.sh`, `touch ${mark}\n`);
      if (handoff.path === "opencode.json")
        await writeFile(join(stage.sandbox.workspace, "tried.js"), plugged(mark));
    }
  };
  /** Which of the files acted, and which the model was told of. */
  const obeyed = async () => {
    const marks = await readdir(join(stage.sandbox.folder, "marks"));
    const told = JSON.stringify(stage.model.requests.map(({ body }) => body));
    return files.filter((file) => marks.includes(nameOf(file)) || told.includes(`word-${nameOf(file)}-.`));
  };
  const start = async (of: Profile, mode: string) => {
    const request = stage.requestWith({ permissions: { default: mode } });
    return (await stage.start({ request }, of)).agent;
  };
  const paths = (list: readonly Handoff[]) => list.map(({ place, path }) => `${place}: ${path}`);
  const heldAs = (held: Handoff["held"]) => files.filter((file) => file.held === held);

  it("act only as docs/agents.md says, when they were there before or appear between turns", async () => {
    await open();
    await plant(files.filter(({ held }) => held !== "refused"));
    const agent = await start(profile, "deny");
    await eventsOf(agent, turnOf());
    const denied = turnOf({ prompt: "[[shell touch made]]", answer: "deny" });
    const events = await eventsOf(agent, denied);
    if (profile.supportsPermissionRequests) {
      expect(denied.questions).toHaveLength(1);
      expect(ofType(events, "tool_result")).toMatchObject([{ denied: true }]);
      expect(await readdir(stage.sandbox.workspace)).not.toContain("made");
    }
    await eventsOf(agent, turnOf({ prompt: "[[shell pwd]]", answer: "allow" }));
    const expected = [...heldAs("read"), ...heldAs("obeyed")];
    expect(paths(await obeyed()).sort()).toEqual(paths(expected).sort());
    await plant(files);
    await eventsOf(agent, turnOf({ prompt: "[[shell pwd]]", answer: "allow" }));
    const acting = (await obeyed()).filter(({ kind }) => kind !== "text");
    const late = acting.filter(({ what }) => what !== "a shell's startup");
    expect(paths(late)).toEqual(paths(heldAs("obeyed")));
  });

  const areRefused = () =>
    it("keep the agent from starting where it would obey them", async () => {
      await open();
      for (const file of heldAs("refused")) {
        await plant([file]);
        const rule = profile.obeys?.find(
          ({ path }) => file.path === path || file.path.startsWith(`${path}/`),
        );
        if (rule === undefined) throw new Error(`no rule refuses ${file.path}`);
        await expect(start(profile, "deny")).rejects.toThrow(obeyedMessage(profile, rule));
        execFileSync("rm", ["-r", join(stage.sandbox.workspace, rule.path)]);
      }
      await expect(start(profile, "deny")).resolves.toBeDefined();
      expect(await obeyed()).toEqual([]);
    });
  if (heldAs("refused").length > 0) areRefused();

  it("act without what Ambit sets (the control)", async () => {
    await open();
    await plant(files);
    const agent = await start(unguarded, "allow");
    for (const prompt of ["hello", "[[shell pwd]]"])
      await eventsOf(agent, turnOf({ prompt, answer: "allow" }));
    const alone = paths(await obeyed());
    const acting = files.filter(({ kind }) => kind === undefined);
    expect(alone).toEqual(expect.arrayContaining(paths(acting)));
    for (const file of results === undefined ? [] : files) {
      const row = { file: file.path, place: file.place, what: file.what };
      const isObeyed = alone.includes(paths([file])[0] ?? "");
      const more = { alone: isObeyed ? (file.kind ?? "acts") : "no", held: file.held ?? "ignored" };
      appendFileSync(
        results ?? "",
        `${JSON.stringify({ table: "handoffs", agent: profile.id, ...row, ...more })}\n`,
      );
    }
  });
});

const plugged = (mark: string) =>
  `import { writeFileSync } from "node:fs";\nwriteFileSync(${JSON.stringify(mark)}, "");\nexport default () => ({});\n`;
