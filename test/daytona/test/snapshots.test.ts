import { expect, it } from "vitest";
import { output, useLoopback } from "./loopback.js";

const fixture = useLoopback();

it("makes a snapshot of a sandbox's files and size, which later changes don't reach", async () => {
  const { daytona, loopback } = fixture();
  const source = await daytona.create({ snapshot: "ambit", envVars: { OF: "source" } });
  await output(source, "mkdir -p /srv/folder; echo first > /srv/folder/file; ln /srv/folder/file /srv/link");
  await source.createSnapshot("made");
  expect(loopback.requests().some(({ url }) => url === `/api/sandbox/${source.id}/snapshot`)).toBe(true);
  await output(source, "echo later > /srv/folder/file");
  const made = await daytona.snapshot.get("made");
  expect(made).toMatchObject({ state: "active", sourceSandboxId: source.id, disk: source.disk });

  const sandbox = await daytona.create({ snapshot: "made" });
  expect(
    await output(sandbox, "cat /srv/folder/file; stat -c %h /srv/link; hostname; cat /etc/hostname"),
  ).toBe(`first\n2\n${sandbox.id.slice(0, 12)}\n${sandbox.id}`);
  await output(sandbox, "echo other > /srv/folder/file");
  const next = await daytona.create({ snapshot: made.id });
  expect(await output(next, "cat /srv/folder/file")).toBe("first");

  await source.delete();
  const pages = await Promise.all([1, 2, 3].map((page) => daytona.snapshot.list({ page, limit: 1 })));
  expect(pages.map(({ items, totalPages }) => [items[0]?.name, totalPages])).toEqual([
    ["daytona-small", 3],
    ["ambit", 3],
    ["made", 3],
  ]);
  await daytona.snapshot.delete(made);
  await expect(daytona.snapshot.get("made")).rejects.toMatchObject({ statusCode: 404 });
  await expect(daytona.create({ snapshot: "made" })).rejects.toMatchObject({ statusCode: 400 });
  await Promise.all([sandbox.delete(), next.delete()]);
});

it("reports no failure to make one: there is none, and the sandbox goes on", async () => {
  const { daytona } = fixture();
  const sandbox = await daytona.create({ snapshot: "ambit" });
  await sandbox.createSnapshot("ambit");
  expect((await daytona.snapshot.get("ambit")).sourceSandboxId).toBeNull();
  expect(await output(sandbox, "echo on")).toBe("on");
  await sandbox.delete();
});
