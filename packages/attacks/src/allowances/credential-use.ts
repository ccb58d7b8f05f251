import { askProgram, credentialParameters, headerOf } from "../attacks/secrets-hidden/credentials.js";
import { programAllowance } from "./program-allowance.js";

/** The other side: the intended use of a credential works. */
export const credentialUse = programAllowance({
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
