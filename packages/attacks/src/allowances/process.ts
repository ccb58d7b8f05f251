import { credentialUse } from "./credential-use.js";
import { programAllowance } from "./program-allowance.js";

const named = (capability: "environment.named-only" | "environment.per-tool" | "secrets.hidden") =>
  programAllowance({
    id: `${capability}/named`,
    title: "a variable named for a process is set",
    options: { env: { NAMED_FOR_IT: "its value" } },
    program: `attempt("own", lambda: os.environ.get("NAMED_FOR_IT"))`,
  });

export const processAllowances = {
  "process.contained": [
    programAllowance({
      id: "process.contained/children",
      title: "a process can start, signal and await its own",
      program: `
def children():
    child = subprocess.Popen(["/bin/sleep", "30"])
    child.terminate()
    return child.wait() == -signal.SIGTERM and "ended by its parent"
attempt("child", children)`,
    }),
  ],
  "environment.named-only": [named("environment.named-only")],
  "environment.per-tool": [named("environment.per-tool")],
  "secrets.hidden": [named("secrets.hidden"), credentialUse],
} as const;
