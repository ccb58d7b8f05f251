import { describe, expect, it } from "vitest";
import { Readers } from "../../src/http/runs/readers.js";

describe("the places of readers", () => {
  /** Readers that go on until they are ended, at a time that the test sets. */
  function world(limits = { perRun: 2, perProject: 3, minReadingMs: 100 }) {
    const clock = { ms: 0 };
    const readers = new Readers(limits, () => clock.ms);
    const ended: string[] = [];
    const read = (name: string, id = "run", canMakeRoom = true) => {
      const done = Promise.withResolvers<void>();
      const end = () => {
        ended.push(name);
        done.resolve();
      };
      const reading = readers.reading(
        { id, project: "p" },
        () => done.promise,
        canMakeRoom ? end : undefined,
      );
      reading.catch(() => undefined);
      return { reading, leave: done.resolve };
    };
    return { clock, ended, read };
  }

  it("go from the oldest that follows a log to a new one, once it has had its time", async () => {
    const { clock, ended, read } = world();
    read("one");
    clock.ms = 50;
    read("two");
    await expect(read("early").reading).rejects.toMatchObject({ code: "at_capacity" });
    clock.ms = 100;
    read("three");
    expect(ended).toEqual(["one"]);
    await expect(read("four").reading).rejects.toMatchObject({ code: "at_capacity" });
    clock.ms = 150;
    read("four");
    expect(ended).toEqual(["one", "two"]);
  });

  it("stay with those that read a file, and count over all runs of a project", async () => {
    const { clock, ended, read } = world();
    read("file", "run", false);
    read("one");
    read("other", "other");
    clock.ms = 1_000;
    const last = read("two");
    expect(ended).toEqual(["one"]);
    read("three", "third");
    expect(ended).toEqual(["one", "other"]);
    // Each place is counted once, whether its reader made room or left.
    last.leave();
    await last.reading;
    read("four");
    expect(ended).toEqual(["one", "other"]);
  });
});
