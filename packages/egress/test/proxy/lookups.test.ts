import { expect, it } from "vitest";
import { Lookups } from "../../src/proxy/gate.js";
import { allow, connectThrough, openSession } from "./session.js";

/** A resolver whose lookups end when they are told to. */
function resolver() {
  const open = new Map<string, (addresses: readonly string[]) => void>();
  const begun: string[] = [];
  const lookup = (name: string) =>
    new Promise<readonly string[]>((resolve) => {
      begun.push(name);
      open.set(name, resolve);
    });
  return { begun, lookup, answer: (name: string) => open.get(name)?.(["192.0.2.1"]) };
}

const never = new AbortController().signal;
const settled = () => new Promise((resolve) => setImmediate(resolve));

it("runs a few at once, in order, and one for each name", async () => {
  const { begun, lookup, answer } = resolver();
  const lookups = new Lookups(lookup, 2);
  const asked = ["a", "b", "a", "c", "b", "d"].map((name) => lookups.resolve(name, never));
  await settled();
  expect(begun).toEqual(["a", "b"]);
  answer("a");
  await settled();
  expect(begun).toEqual(["a", "b", "c"]);
  answer("b");
  await settled();
  expect(begun).toEqual(["a", "b", "c", "d"]);
  answer("c");
  answer("d");
  expect(await Promise.all(asked)).toHaveLength(6);
});

it("never begins one that is no longer wanted, and keeps the place of one that can't be cancelled", async () => {
  const { begun, lookup, answer } = resolver();
  const lookups = new Lookups(lookup, 1);
  const [first, second] = [new AbortController(), new AbortController()];
  const asked = [
    lookups.resolve("a", first.signal),
    lookups.resolve("b", second.signal),
    lookups.resolve("c", never),
  ];
  const outcomes = Promise.allSettled(asked);
  first.abort(new Error("late"));
  second.abort(new Error("late"));
  await settled();
  expect(begun).toEqual(["a"]);
  answer("a");
  await settled();
  expect(begun).toEqual(["a", "c"]);
  answer("c");
  expect((await outcomes).map(({ status }) => status)).toEqual(["rejected", "rejected", "fulfilled"]);
});

it("a session's flood of names takes two lookups of the host's, whatever its connections", async () => {
  const { begun, lookup } = resolver();
  const session = await openSession(allow(["*.flood.test"]), { lookup, limits: { lookupMs: 300 } });
  const statuses = await Promise.all(
    Array.from({ length: 100 }, async (_, index) => {
      const { socket, status } = await connectThrough(session.path, `n${index}.flood.test:443`);
      socket.destroy();
      return status;
    }),
  );
  expect(new Set(statuses)).toEqual(new Set([504]));
  expect(begun).toHaveLength(2);
  await session.close();
});
