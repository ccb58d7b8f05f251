import type { RunObserver } from "@ambit/core/plugin";
import { expect, it } from "vitest";
import { observerChecks } from "../src/observer/checks.js";
import type { ObserverRig } from "../src/observer/observer-rig.js";

/** Copies the request, waits in its methods, trusts each event, and hangs when it is closed. */
const careless = (): ObserverRig => {
  const lines: string[] = [];
  const observer: RunObserver = {
    name: "careless",
    observe: ({ request }) => {
      lines.push(JSON.stringify(request));
      return {
        happened: (event) => void (event.type === "turn" || Object.keys(event.type.split("_")[1] ?? "x")),
        ended: async () => {
          lines.push("ended");
        },
      };
    },
    close: () => new Promise(() => undefined),
  };
  return { observer, written: async () => lines.join("\n"), close: async () => {} };
};

const careful = (): ObserverRig => {
  const lines: string[] = [];
  const observer: RunObserver = {
    name: "careful",
    observe: ({ runId }) => ({ ended: ({ ok }) => void lines.push(`${runId} ${ok}`) }),
  };
  return { observer, written: async () => lines.join("\n"), close: async () => {} };
};

it.concurrent.each(observerChecks)("a careless observer fails the check '$title'", async ({ check }) => {
  await expect(check(careless())).rejects.toBeInstanceOf(Error);
});

it("one that copies a request with its credentials is told to redact it", async () => {
  const { observer, ...others } = careless();
  const observe: RunObserver["observe"] = (run) => {
    observer.observe(run);
    return {};
  };
  const rig = { ...others, observer: { name: "copies", observe } };
  const [, credentials] = observerChecks;
  await expect(credentials?.check(rig)).rejects.toThrow(
    "pass what is kept of a request through its run's `redact`",
  );
});

it.each(observerChecks)("a careful one passes the check '$title'", async ({ check }) => {
  await check(careful());
});
