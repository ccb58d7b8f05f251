import { sandbox } from "@ambit/fakes/actors";
import { expect, test } from "vitest";
import { normaliseBoundary } from "../../src/boundary/index.js";
import { sandboxPermissionSchema } from "../../src/contract/index.js";
import { ownGaps } from "../../src/plan/own-sandbox.js";
import { full } from "./planning.js";

const { boundary } = normaliseBoundary(
  sandboxPermissionSchema.parse({
    network: { allowlist: ["git.example:443"] },
    filesystem: "workspace",
    secrets: "hidden",
  }),
);
const token = { name: "TOKEN", value: "a-secret-value", hosts: ["git.example:443"] };
const own = { subject: "workspace.sources[0]", boundary, secrets: [token] };
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
