/** Paths and addresses inside a jail. They are the same in every one, so that none of the host's layout shows. */
export const inside = {
  workspace: "/workspace",
  agentHome: "/home/agent",
  toolHome: "/home/tool",
  scratch: "/tmp",
  /** The session's own unix socket, which leads to everything exposed and to the boundary's proxy. */
  channel: "/run/ambit/channel.sock",
  /** The jail's own unix socket, where its relay waits for connections from the runner. Only where ports are open to it. */
  inbound: "/run/ambit/inbound.sock",
  nodeProxy: "/run/ambit/node-proxy.cjs",
  relayProgram: "/run/ambit/relay",
  /** What programs trust if something was added to the host's authorities: those too, for programs that bring their own. */
  trust: { authority: "/run/ambit/authorities.pem", bundle: "/run/ambit/authorities.pem" },
  /** The program of a jail's first process. */
  shell: "/run/ambit/sh",
  /** Makes the mounts in the workspace. Only in a jail that has some. */
  bubblewrap: "/run/ambit/bwrap",
  hostName: "sandbox",
  user: "agent",
  /** The relay's address and port on the jail's own loopback. */
  channelAddress: "127.0.0.1",
  port: 3128,
  /** Every session's user inside, whichever user it is on the host. */
  uid: 1000,
} as const;

export const channelUrl = `http://${inside.channelAddress}:${inside.port}`;
