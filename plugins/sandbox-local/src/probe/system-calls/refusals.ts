import {
  type CallAttempt,
  callAttempts,
  type SeccompArchitecture,
  type SyscallName,
} from "@ambit/attacks/system-calls";
import { errnoOf, x32Bit } from "@ambit/backend-kit/system-call-filter";
import { type Claim, claims } from "../../claims.js";

/** An attempt with the filter's result for it. */
export interface RefusedCall extends Omit<CallAttempt, "call" | "capabilities"> {
  readonly capabilities: readonly Claim[];
  /** -errno. */
  readonly answer: number;
}

/** What this filter refuses of the kit's attempts, and x32. @throws RangeError for one that no rule refuses. */
export function refusals(architecture: SeccompArchitecture): readonly RefusedCall[] {
  const known = callAttempts(architecture).map(({ capabilities, call, ...attempt }) => ({
    ...attempt,
    capabilities: claims.filter((claim) => capabilities.includes(claim)),
    answer: refusalOf(call, attempt.arguments),
  }));
  return architecture === "x64" ? [...known, x32Refusal] : known;
}

/** What a call of another architecture would bypass. */
export const claimsOnEveryRule: readonly Claim[] = claims.filter((claim) =>
  callAttempts("x64").some(({ capabilities }) => capabilities.includes(claim)),
);

/** Calls with 32-bit pointers have separate numbers, which no rule names; `getpid` represents them all. */
const x32Refusal: RefusedCall = {
  name: "getpid, with 32-bit pointers",
  number: 39 + x32Bit.number,
  arguments: [],
  capabilities: claimsOnEveryRule,
  answer: -x32Bit.errno,
};

function refusalOf(call: SyscallName, given: readonly bigint[]): number {
  const errno = errnoOf(call, given);
  if (errno === undefined) throw new RangeError(`No rule refuses ${call} with ${given.join(", ")}`);
  return -errno;
}
