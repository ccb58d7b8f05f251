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
  hashedName,
  type ImageAccess,
  type ImageTrust,
  type ImageTrustFiles,
  imageStore,
  imageTrustCommand,
  readAuthorities,
  systemBundle,
  systemTrust,
  type TrustFiles,
  trustInImage,
  trustVariables,
} from "./trust.js";
