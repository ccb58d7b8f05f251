import { z } from "zod";

/** The parts of Kubernetes' objects that decide what a policy means. */
const metadataSchema = z.object({
  name: z.string(),
  namespace: z.string().default(""),
  labels: z.record(z.string(), z.string()).default({}),
});

const expressionSchema = z.object({
  key: z.string(),
  operator: z.enum(["In", "NotIn", "Exists", "DoesNotExist"]),
  values: z.array(z.string()).default([]),
});
export const selectorSchema = z.object({
  matchLabels: z.record(z.string(), z.string()).default({}),
  matchExpressions: z.array(expressionSchema).default([]),
});
export type Selector = z.output<typeof selectorSchema>;

const portSchema = z.object({
  protocol: z.enum(["TCP", "UDP", "SCTP"]).default("TCP"),
  port: z.union([z.number(), z.string()]).optional(),
  endPort: z.number().optional(),
});
const peerSchema = z.object({
  podSelector: selectorSchema.optional(),
  namespaceSelector: selectorSchema.optional(),
  ipBlock: z.object({ cidr: z.string(), except: z.array(z.string()).default([]) }).optional(),
});
/** Without peers to and from everywhere, without ports to all. */
const ruleSchema = z.object({
  to: z.array(peerSchema).default([]),
  from: z.array(peerSchema).default([]),
  ports: z.array(portSchema).default([]),
});

export const policySchema = z.object({
  metadata: metadataSchema,
  spec: z.object({
    podSelector: selectorSchema.prefault({}),
    policyTypes: z.array(z.enum(["Ingress", "Egress"])).default(["Ingress"]),
    egress: z.array(ruleSchema).default([]),
    ingress: z.array(ruleSchema).default([]),
  }),
});
export const podSchema = z.object({ metadata: metadataSchema });
export const namespaceSchema = z.object({ metadata: metadataSchema });

export type Policy = z.output<typeof policySchema>;
export type Rule = z.output<typeof ruleSchema>;
export type Peer = z.output<typeof peerSchema>;
export type Port = z.output<typeof portSchema>;
export type Labels = Readonly<Record<string, string>>;

/** A pod that has an address. */
export interface Pod {
  readonly name: string;
  readonly namespace: string;
  readonly labels: Labels;
  readonly address: string;
}
