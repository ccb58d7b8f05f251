/** Attempts of one process inside a sandbox, made by one program that needs nothing but Node.js 18 there. */
export {
  type AttemptAgainst,
  type AttemptName,
  type Attempts,
  attempts,
  type Reached,
  reachedOf,
} from "./attempts.js";
export { type Holder, startHolder } from "./holder.js";
export { halvesOf, lookProgram, type NodeInside, readLook, tryInside } from "./look.js";
