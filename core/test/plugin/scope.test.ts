import { expect, it } from "vitest";
import { lazy, resultWithin, unlessAborted } from "../../src/plugin/scope.js";

it("a value is made once, with the first arguments, and a failed attempt is tried again", async () => {
  const attempts: string[] = [];
  const value = lazy(async (name: string) => {
    attempts.push(name);
    if (attempts.length === 1) throw new Error("not yet");
    return name;
  });
  await expect(value("first")).rejects.toThrow("not yet");
  expect(await Promise.all([value("second"), value("third")])).toEqual(["second", "second"]);
  expect(attempts).toEqual(["first", "second"]);
});

it("what a step opens after the abort is closed, and what it opened before isn't", async () => {
  const closed: string[] = [];
  const step = Promise.withResolvers<string>();
  const abort = new AbortController();
  const late = unlessAborted(
    abort.signal,
    () => step.promise,
    (opened) => closed.push(opened),
  );
  abort.abort("stop");
  await expect(late).rejects.toBe("stop");
  step.resolve("late");
  await step.promise;
  const { signal } = new AbortController();
  expect(
    await unlessAborted(
      signal,
      async () => "in time",
      (opened) => closed.push(opened),
    ),
  ).toBe("in time");
  expect(closed).toEqual(["late"]);
});

it.each(["the result", "the abort"])(
  "a step that resolves in the tick of the abort is either returned or closed: %s is first",
  async (first) => {
    const closed: string[] = [];
    const step = Promise.withResolvers<string>();
    const abort = new AbortController();
    const outcome = unlessAborted(
      abort.signal,
      () => step.promise,
      (opened) => closed.push(opened),
    ).then(
      (opened) => [`returned ${opened}`],
      () => [],
    );
    const acts = [() => step.resolve("it"), () => abort.abort()];
    for (const act of first === "the result" ? acts : acts.reverse()) act();
    const returned = await outcome;
    expect([...returned, ...closed.map((opened) => `closed ${opened}`)]).toHaveLength(1);
  },
);

it("the result of a promise within a time is that promise's, or undefined once the time is over", async () => {
  expect(await resultWithin(Promise.resolve("it"), 0)).toBe("it");
  await expect(resultWithin(Promise.reject(new Error("no")), 60_000)).rejects.toThrow("no");
  expect(await resultWithin(new Promise(() => {}), -1)).toBeUndefined();
});
