/** What OTLP over gRPC needs, in a module of its own: `Sdk` loads it from this package, not from a bundle. */
export {
  convertLegacyOtlpGrpcOptions,
  createOtlpGrpcExportDelegate,
} from "@opentelemetry/otlp-grpc-exporter-base";
