import type { Boundary } from "../../boundary/index.js";

/**
 * Prepared files that the platform keeps, and that new sandboxes begin with, without a copy for each. A layer is the workspace
 * and the home of one sandbox. It never changes: what a sandbox that began with it writes, no other sees.
 */
export interface SandboxLayers {
  /**
   * What new sandboxes have installed: the same text only for the same programs, such as an image's id. Undefined: not known
   * before one is open.
   * @throws SandboxFailed; the signal's reason
   */
  system(signal: AbortSignal): Promise<string | undefined>;
  /** Whether sandboxes with this boundary can begin with a layer, and become one. Synchronous. */
  supports(boundary: Boundary): boolean;
  /** Whether there is one of this name, which a sandbox can begin with. @throws SandboxFailed; the signal's reason */
  has(name: string, signal: AbortSignal): Promise<boolean>;
}

/**
 * How a sandbox has to do with a layer.
 * - `begin`: workspace and home begin with the layer's files. `open` rejects where it is gone.
 * - `make`: both are empty, and `Sandbox.keepAsLayer` makes them the layer.
 */
export interface LayerUse {
  readonly use: "begin" | "make";
  /**
   * Names the content: `[0-9a-f]{64}`. Its first 16 characters are those of all layers of one project: where there are too many, no
   * project's layers may take the room of the others'.
   */
  readonly name: string;
}
