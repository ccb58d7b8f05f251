import { halvesOf, reachedOf } from "@ambit/attacks/inside";
import { NotProven } from "@ambit/backend-kit";
import type { CanaryAttempts, CanaryTrial } from "./bench.js";
import { lookAsProcess, lookFromPlatform } from "./look.js";

const folders = ["/tmp", "/home", "/etc", "/run", "/var/tmp", "/root"];

/** Everywhere that a process may read. */
function anywhere(text: string): CanaryAttempts {
  const halves = halvesOf(text);
  return {
    own: { try: "ownEnvironment", halves },
    environment: { try: "environment", halves },
    arguments: { try: "arguments", halves },
    files: { try: "holding", folders, halves },
  };
}

/** Proves that the value isn't inside. That it arrives at its hosts can't be shown without such a host. */
export const secretTrials: readonly CanaryTrial[] = [
  {
    shows: ["secrets.hidden"],
    async run(bench) {
      if (bench.withoutSecret !== undefined) throw bench.withoutSecret;
      const { limited, decoys } = bench;
      const placeholder = limited.secrets.placeholders.canary;
      if (placeholder === undefined || placeholder.includes(decoys.secret)) {
        throw new NotProven("Daytona provided no placeholder for a secret", "use another sandbox");
      }
      const {
        variable = null,
        stands = null,
        ...secret
      } = await lookFromPlatform(bench, limited.machine, {
        variable: { try: "ownEnvironment", halves: halvesOf(decoys.variable) },
        stands: { try: "ownEnvironment", halves: halvesOf(placeholder) },
        ...anywhere(decoys.secret),
      });
      if (variable === null || stands === null) {
        throw new NotProven(
          "a secret's placeholder isn't in the environment of the platform's own processes",
          "use an organisation with secrets, or another sandbox",
        );
      }
      const places = reachedOf(secret) || reachedOf(await lookAsProcess(bench, anywhere(decoys.secret)));
      if (places !== "") throw new NotProven(`a secret's value is at ${places}`, "use another sandbox");
      return {
        "secrets.hidden":
          "in environments, processes and files a plain variable was found, and of a secret only its placeholder",
      };
    },
  },
];
