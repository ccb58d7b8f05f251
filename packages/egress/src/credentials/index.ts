/** Credentials that stay outside a sandbox: placeholders inside, the value put on by the egress proxy. */
export type { SessionAuthority } from "./authority.js";
export { type BrokerOptions, type CredentialBroker, makeAuthority, openCredentialBroker } from "./broker.js";
export { type TrustFiles, trustVariables } from "./environment.js";
export { proxyHides } from "./hides.js";
export { type ImageTrustFiles, imageStore, imageTrustCommand } from "./image-store.js";
export { type ImageAccess, type ImageTrust, trustInImage } from "./image-trust.js";
export { openSessionBroker, readAuthorities, type SessionBrokerOptions } from "./session.js";
export { hashedName, systemBundle, systemTrust } from "./trust.js";
