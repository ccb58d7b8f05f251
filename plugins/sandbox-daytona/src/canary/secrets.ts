import { NotProven } from "@ambit/backend-kit";
import type { Trial } from "./bench.js";
import { searchAsProcess, searchPlatform } from "./programs.js";

/** Proves that the value isn't inside. That it arrives at its hosts can't be shown without such a host. */
export const secretTrials: readonly Trial[] = [
  {
    shows: ["secrets.hidden"],
    async run(bench) {
      if (bench.withoutSecret !== undefined) throw bench.withoutSecret;
      const { limited, decoys } = bench;
      const placeholder = limited.secrets.placeholders.canary;
      if (placeholder === undefined || placeholder.includes(decoys.secret)) {
        throw new NotProven("Daytona provided no placeholder for a secret", "use another sandbox");
      }
      const search = {
        values: { secret: decoys.secret, placeholder, variable: decoys.variable },
        folders: ["/tmp", "/home", "/etc", "/run", "/var/tmp", "/root"],
      };
      const seen = await searchPlatform(bench, limited.machine, search);
      if (!seen.found.variable?.includes("environment") || !seen.found.placeholder?.includes("environment")) {
        throw new NotProven(
          "a secret's placeholder isn't in the environment of the platform's own processes",
          "use an organisation with secrets, or another sandbox",
        );
      }
      const places = [seen, await searchAsProcess(bench, search)].flatMap(({ found }) => found.secret ?? []);
      if (places.length > 0) {
        throw new NotProven(`a secret's value is at ${places.join(", ")}`, "use another sandbox");
      }
      return {
        "secrets.hidden":
          "in environments, processes and files a plain variable was found, and of a secret only its placeholder",
      };
    },
  },
];
