import { describe, expect, it } from "vitest";
import { EventQueue } from "../../src/driver/turn.js";

describe("the queue of events", () => {
  it("reports when there is no room, and when there is room again", async () => {
    const queue = new EventQueue<string>(10);
    queue.push("123456", 6);
    expect(queue.room()).toBeUndefined();
    queue.push("123456", 6);
    const room = queue.room();
    expect(room).toBeInstanceOf(Promise);
    expect(await queue.next()).toEqual({ value: "123456", done: false });
    expect(queue.full).toBe(false);
    await queue.next();
    await room;
    expect(queue.room()).toBeUndefined();
  });

  it("keeps order over many items, with a consumer that never catches up", async () => {
    const queue = new EventQueue<number>(1);
    queue.push(0, 1);
    for (let count = 1; count <= 5_000; count += 1) {
      queue.push(count, 1);
      expect((await queue.next()).value).toBe(count - 1);
    }
  });

  it("says when it holds too much of a producer that is read without limit", () => {
    const queue = new EventQueue<string>(10, 80);
    queue.lift();
    queue.push("a", 80);
    expect([queue.room(), queue.overfull]).toEqual([undefined, false]);
    queue.push("b", 1);
    expect(queue.overfull).toBe(true);
    queue.ready();
    expect(queue.overfull).toBe(false);
  });

  it("delivers queued events before it ends or fails", async () => {
    const queue = new EventQueue<string>(1);
    queue.push("a", 1);
    queue.end(new Error("over"));
    queue.push("too late");
    expect(await queue.next()).toEqual({ value: "a", done: false });
    await expect(queue.next()).rejects.toThrow("over");
    expect(await queue.next()).toEqual({ value: undefined, done: true });
  });
});
