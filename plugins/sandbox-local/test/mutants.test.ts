import { describe, expect, it } from "vitest";
import { credentialMutants } from "./conformance/mutants/credential-mutants.js";
import { inboundMutants } from "./conformance/mutants/inbound-mutants.js";
import { requireFit } from "./conformance/mutants/make-mutant.js";
import { mutants } from "./conformance/mutants/mutants.js";
import { probedMutants } from "./conformance/mutants/probed-mutants.js";

// That each is caught, the slow tests show; that there still is what it takes out, every test run does.
describe("the local sandbox can be built without", () => {
  it.each([...mutants, ...credentialMutants, ...inboundMutants, ...probedMutants])(
    "what the mutant changes: $name",
    ({ patches }) => {
      for (const patch of patches) requireFit(patch);
    },
  );

  it("nothing that isn't there", () => {
    const patch = { of: "plugin", file: "index.js", find: "of another time", replace: "" } as const;
    expect(() => requireFit(patch)).toThrow("has 0 times");
  });
});
