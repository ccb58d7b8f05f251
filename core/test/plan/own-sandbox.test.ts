import { boundaryOf, candidates, request, sandbox } from "@ambit/fakes/actors";
import { describe, expect, test } from "vitest";
import { normaliseBoundary } from "../../src/boundary.js";
import { sandboxPermissionSchema } from "../../src/contract/index.js";
import { chooseOwn, lacksBackend, ownGaps } from "../../src/plan/gaps.js";
import { boundedRequest, planRun, receiptOf } from "../../src/plan/index.js";
import { facts, full } from "./planning.js";

const { boundary } = normaliseBoundary(
  sandboxPermissionSchema.parse({
    network: { allowlist: ["git.example:443"] },
    filesystem: "workspace",
    secrets: "hidden",
  }),
);
const token = { name: "TOKEN", value: "a-secret-value", hosts: ["git.example:443"] };
const own = { subject: "workspace.sources[0]", backend: "any", boundary, secrets: [token] } as const;
const gapsOn = (options: Parameters<typeof sandbox>[0]) => ownGaps(own, sandbox(options));

test("a further sandbox is covered by a backend that proves all of its boundary and hides its credentials", () => {
  expect(gapsOn({ ...full, hides: () => true })).toEqual([]);
});

test("without rules for paths it isn't opened on this host's files", () => {
  const open = {
    ...own,
    boundary: { ...boundary, filesystem: { ...boundary.filesystem, mode: "on" } },
  } as const;
  const inImage = sandbox({ ...full, hides: () => true, rootfs: "image" });
  expect(ownGaps(open, inImage)).toEqual([]);
  expect(ownGaps(open, sandbox({ ...full, hides: () => true }))).toEqual([
    expect.objectContaining({
      actor: "full",
      capability: "filesystem.workspace-only",
      subject: "workspace.sources[0]",
      fix: expect.stringContaining("sandboxPermission.filesystem"),
    }),
  ]);
});

test("what it lacks is a gap of what asks for it, whatever the run's own boundary is", () => {
  const unproven = gapsOn({ ...full, proven: [], hides: () => true });
  expect(unproven.map(({ capability }) => capability).sort()).toEqual([
    "environment.named-only",
    "filesystem.host-hidden",
    "filesystem.workspace-only",
    "network.allow-host",
    "process.contained",
    "secrets.hidden",
  ]);
  const answer = { reason: "it binds secrets only to hosts", fix: "use another" };
  expect(gapsOn({ ...full, hides: () => answer })).toEqual([
    {
      actor: "full",
      capability: "secrets.hidden",
      reason: "TOKEN must stay outside: it binds secrets only to hosts",
      fix: "use another",
      subject: "workspace.sources[0]",
    },
  ]);
});

describe("the backend of a further sandbox", () => {
  const hiding = { ...full, hides: () => true as const };
  const [run, able, other] = [
    sandbox({ ...full, name: "run" }),
    sandbox({ ...hiding, name: "able" }),
    sandbox({ ...hiding, name: "other" }),
  ];

  test.each([
    ["is the run's, if that covers it", able, [other, able], "able"],
    ["is the first that covers it, if the run's doesn't", run, [run, other, able], "other"],
  ])("%s", (_case, ofRun, all, name) => {
    const choice = chooseOwn(own, ofRun, all);
    expect("chosen" in choice && choice.chosen.actor.name).toBe(name);
  });

  test("is no other where its files are of use in the agent's sandbox only", () => {
    expect(chooseOwn({ ...own, backend: "run" }, run, [run, other])).toEqual({ gaps: ownGaps(own, run) });
  });

  test("is none if none covers it: what the run's lacks is reported, with both fixes", () => {
    const choice = chooseOwn(own, run, [run]);
    expect(choice).toMatchObject({
      gaps: [{ actor: "run", fix: expect.stringContaining("add a backend that covers it") }],
    });
    if (!("gaps" in choice)) throw new Error("one was chosen");
    expect(lacksBackend(choice, [own])).toBe(true);
    expect(lacksBackend(choice, [{ ...own, backend: "run" }])).toBe(false);
    expect(lacksBackend({ gaps: choice.gaps.map(({ subject: _, ...gap }) => gap) }, [own])).toBe(false);
  });

  test("is on the receipt, with what it is for, and guarantees nothing of the agent's boundary", () => {
    const asked = request({ sandbox: "run", sandboxPermission: { network: "off" } });
    const plan = planRun(
      boundedRequest(asked, boundaryOf(asked)),
      candidates({ sandboxes: [run, able] }),
      [],
      [own, { ...own, subject: "outputs.git" }, { ...own, subject: "environment", secrets: [] }],
    );
    if (!plan.accepted) throw new Error("refused");
    expect(plan.own.get("environment")?.actor.name).toBe("run");
    const receipt = receiptOf(plan, facts);
    expect(receipt.sandbox).toBe("run");
    expect(receipt.actors.filter(({ kind }) => kind === "sandbox")).toMatchObject([
      { name: "run", assurance: "guaranteed" },
      { name: "able", assurance: "guaranteed", subjects: ["workspace.sources[0]", "outputs.git"] },
    ]);
    expect(new Set(receipt.guarantees.map(({ by }) => by))).not.toContain("able");
  });
});
