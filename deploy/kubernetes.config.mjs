// Sandboxes in the cluster of KUBECONFIG. IMAGE is an image that its nodes can pull.
export default {
  extends: "defaults",
  plugins: [
    {
      use: "@ambit/sandbox-kubernetes",
      // `reserve` makes room for the probes' pods on a small cluster. In production, leave it out.
      config: { image: process.env.IMAGE, reserve: { cpus: 0.02, memoryMb: 128 } },
    },
  ],
  // Nodes may first pull the image.
  probes: { timeoutMs: 600_000 },
};
