/** Credentials that stay outside a sandbox: placeholders inside, the value put on by the egress proxy. */
export type { SessionAuthority } from "./authority.js";
export {
  type BrokerOptions,
  type CredentialBroker,
  makeAuthority,
  openCredentialBroker,
  openSessionBroker,
  proxyHides,
  type SessionBrokerOptions,
} from "./broker.js";
export {
  type ImageAccess,
  type ImageTrust,
  type ImageTrustFiles,
  imageStore,
  imageTrustCommand,
  trustInImage,
} from "./image-trust.js";
export {
  hashedName,
  readAuthorities,
  systemBundle,
  systemTrust,
  type TrustFiles,
  trustVariables,
} from "./trust.js";
