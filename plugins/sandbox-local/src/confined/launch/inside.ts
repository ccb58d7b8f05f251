/** Where things are, as seen inside a jail. The same in every one, so that nothing of the host's layout shows. */
export const inside = {
  workspace: "/workspace",
  agentHome: "/home/agent",
  toolHome: "/home/tool",
  scratch: "/tmp",
  /** The session's own unix socket: the way to what is exposed, and to the boundary's proxy. */
  channel: "/run/ambit/channel.sock",
  nodeProxy: "/run/ambit/node-proxy.cjs",
  relayProgram: "/run/ambit/relay.cjs",
  /** What programs trust where the session has credentials. */
  trust: { authority: "/run/ambit/authority.pem", bundle: "/run/ambit/authorities.pem" },
  /** What a jail's first process runs. */
  shell: "/run/ambit/sh",
  hostName: "sandbox",
  user: "agent",
  /** The relay's address and port on the jail's own loopback. */
  channelAddress: "127.0.0.1",
  port: 3128,
  /** Every session's user is this one inside, whoever it is on the host. */
  uid: 1000,
} as const;

export const channelUrl = `http://${inside.channelAddress}:${inside.port}`;
