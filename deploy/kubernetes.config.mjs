// Sandboxes in the cluster of KUBECONFIG. IMAGE is an image that its nodes can pull.
export default {
  extends: "defaults",
  plugins: [{ use: "@ambit/sandbox-kubernetes", config: { image: process.env.IMAGE } }],
};
