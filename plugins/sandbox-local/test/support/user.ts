import { type TestFunction, type TestOptions, test } from "vitest";

/** Whether this test is run by root; tests then cover what only root can do, and skip what only others can't. */
export const isRoot = process.getuid?.() === 0;

/** An unprivileged user of this host, for runners that tests start as root. */
export const ordinaryUser = { uid: 12_345, gid: 12_345 };

/** A test of what only root can do. */
export function testAsRoot(name: string, body: TestFunction): void;
export function testAsRoot(name: string, options: TestOptions, body: TestFunction): void;
export function testAsRoot(name: string, options: TestOptions | TestFunction, body?: TestFunction): void {
  const [settings, act] = typeof options === "function" ? [{}, options] : [options, body];
  test(name, settings, (context) => {
    if (!isRoot) context.skip("host: only root can do this");
    return act?.(context);
  });
}
