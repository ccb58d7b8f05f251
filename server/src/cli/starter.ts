/** Milliseconds between two looks at the parent. */
const lookMs = 500;

/** What npm tells a program that it starts, by `npx` or a script. */
const startedByNpm = ["npm_lifecycle_event", "npm_command"] as const;

/**
 * Resolves when the `npx` or `npm run` that started this process is gone: it doesn't pass a signal on, so that `kill` would end npm
 * and leave the server. Never resolves for a process that npm didn't start: a daemon outlives its parent.
 */
export function starterGone(
  environment: Readonly<Record<string, string | undefined>> = process.env,
  parent: () => number = () => process.ppid,
): Promise<"npm"> {
  return new Promise((resolve) => {
    if (!startedByNpm.some((name) => environment[name] !== undefined)) return;
    const first = parent();
    const timer = setInterval(() => {
      if (parent() === first) return;
      clearInterval(timer);
      resolve("npm");
    }, lookMs);
    timer.unref();
  });
}
