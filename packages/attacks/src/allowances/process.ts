import { askProgram, credentialParameters, headerOf } from "../attacks/secrets-hidden/credentials.js";
import { programAllowance } from "./program-allowance.js";

/** The other side: the intended use of a credential works. */
const credentialUse = programAllowance({
  id: "secrets.hidden/credential-use",
  title: "a credential arrives at its host when its placeholder is sent",
  needsCredentials: true,
  parameters: credentialParameters,
  program: `${askProgram}
attempt("use", lambda: b" 200" in ask(lines(b"/", b"Authorization: Bearer " + key()))[:16] and "it was accepted")`,
  aftermath: async ({ decoys }, nonce) => {
    const [sent] = decoys.keys?.received(nonce) ?? [];
    if (sent !== undefined && headerOf(sent, "authorization").join() === `Bearer ${decoys.secret}`)
      return "it arrived";
    throw new Error("the host wasn't sent the value");
  },
});

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
