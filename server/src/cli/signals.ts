const endings = ["SIGINT", "SIGTERM"] as const;
export type EndingSignal = (typeof endings)[number];

/** Resolves with the next signal that asks this process to end; until then that signal doesn't end it. */
export function nextSignal(): Promise<EndingSignal> {
  return new Promise((resolve) => {
    const listen = (name: EndingSignal) => {
      for (const ending of endings) process.off(ending, listen);
      resolve(name);
    };
    for (const ending of endings) process.on(ending, listen);
  });
}
