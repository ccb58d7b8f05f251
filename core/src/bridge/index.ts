/** For backends whose sandboxes are elsewhere: a whole `Sandbox` over any pipe to a command. */
export { type BridgeOptions, bridgeSchema } from "./options.js";
export type { Pipe, RemotePlatform } from "./platform.js";
export {
  type BridgeFacts,
  openRemoteSandbox,
  type RemoteSandbox,
  type RemoteSandboxOptions,
} from "./remote/open.js";
