import { SandboxFailed } from "@ambit/core/plugin";
import { expect, test, vi } from "vitest";
import { Assignment, probeSpec, quietLog, shapeOf } from "../src/index.js";

const session = probeSpec({});
const lost = new SandboxFailed("it was removed");

test("a prepared sandbox is given to one session", () => {
  const assignment = new Assignment();
  expect(assignment.session).toBeUndefined();
  assignment.give(session);
  expect(assignment.session).toBe(session);
  expect(() => assignment.give(session)).toThrow("belongs to a session already");
});

test("one that was lost while it waited is given to none", () => {
  const assignment = new Assignment();
  assignment.fail(lost);
  expect(assignment.isUsable).toBe(false);
  expect(() => assignment.give(session)).toThrow(lost);
});

test("its session learns the first reason for which it is lost, and no other session's log is written to", () => {
  const assignment = new Assignment();
  const made = assignment.specOf("prepared", shapeOf(session));
  made.log.warn({}, "before it belongs to a session");
  const onFailure = vi.fn();
  const warn = vi.fn();
  assignment.give({ ...session, onFailure, log: { ...quietLog, warn } });
  made.log.warn({}, "of the session");
  made.onFailure?.(lost);
  made.onFailure?.(new SandboxFailed("another reason"));
  expect(onFailure.mock.calls).toEqual([[lost]]);
  expect(warn.mock.calls).toEqual([[{}, "of the session"]]);
});
