/** The loopback's own addresses, which exist only in the network namespaces of a runner and its sandboxes. */
export const worldRange = "10.99.0.0/24";
export const worldAddress = (number: number) => `10.99.0.${number}`;
/** The runner's side of a sandbox's link: gateway and resolver. */
export const gatewayAddress = (index: number) => `10.98.${index}.1`;
export const sandboxAddress = (index: number) => `10.98.${index}.2`;
/** The same for IPv6, if it is available. */
export const worldAddress6 = (address: string) => `fd99::${address.split(".").at(-1)}`;
export const gatewayAddress6 = (index: number) => `fd98:0:0:${index}::1`;
export const sandboxAddress6 = (index: number) => `fd98:0:0:${index}::2`;

/** Port of the runner's own API, as in Daytona. */
export const gatewayServicePort = 8080;

/** The target of a limited sandbox's web traffic. */
export const httpProxyPort = 3128;
export const tlsProxyPort = 3129;
