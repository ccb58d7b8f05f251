import { expect, test } from "vitest";
import { openFilesLimit } from "../../src/open-files.js";
import { SharedBudget, serverConnections } from "../../src/proxy/clients.js";
import { denyAll, exchange, openSession } from "./session.js";

const takeAll = (share: { take(): boolean }) => {
  let taken = 0;
  while (share.take()) taken += 1;
  return taken;
};

test("sessions share the server's connections, and each can use its equal share", () => {
  const budget = new SharedBudget(12);
  const greedy = budget.join();
  expect(takeAll(greedy)).toBe(12);
  const second = budget.join();
  expect(takeAll(second)).toBe(6);
  const third = budget.join();
  expect(takeAll(third)).toBe(4);
  expect(budget.taken).toBeLessThanOrEqual(24);
  for (const share of [greedy, second, third]) expect(share.take()).toBe(false);
  greedy.release();
  expect(greedy.take()).toBe(false);
});

test("released connections can be used again, and a closed session has no share", () => {
  const budget = new SharedBudget(2);
  const one = budget.join();
  expect(takeAll(one)).toBe(2);
  const other = budget.join();
  one.release();
  expect(other.take()).toBe(true);
  other.release();
  other.leave();
  other.leave();
  expect(takeAll(one)).toBe(1);
  expect(budget.taken).toBe(2);
});

test.each([
  ["Max open files            20000                524288               files", 20_000, 2_500],
  [
    "Max open files            unlimited            unlimited            files",
    Number.MAX_SAFE_INTEGER,
    undefined,
  ],
  ["", undefined, 128],
])("%j", (text, files, connections) => {
  expect(openFilesLimit(text)).toBe(files);
  if (connections !== undefined) expect(serverConnections(files)).toBe(connections);
});

test("a full server reports that, with one record for a client that keeps trying", async () => {
  const budget = new SharedBudget(1);
  const first = budget.join();
  expect(first.take()).toBe(true);
  const share = budget.join();
  expect(share.take()).toBe(true);
  const session = await openSession(denyAll, { share });
  for (let tries = 0; tries < 3; tries++)
    expect(await exchange(session.path)).toMatch(/503[\s\S]*the server has/);
  expect(session.decisions).toHaveLength(1);
  await session.close();
});
