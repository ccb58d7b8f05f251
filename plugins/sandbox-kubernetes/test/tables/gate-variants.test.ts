import { it } from "vitest";
import { admitsAll } from "../support/gate-control.js";
import { gateMutants } from "../support/gate-mutants.js";
import { gateVariant } from "../support/gate-variant.js";

// What the attacks on it show needs a cluster, which the quick tests don't have.
it.each([{ name: "everything is admitted", patches: admitsAll }, ...gateMutants])(
  "the gate's program can be changed so that $name",
  async ({ patches }) => {
    await gateVariant(patches);
  },
);
