// SPDX-License-Identifier: Apache-2.0
//
// Takes the places of the functions in which gRPC registers what a client of one address never
// runs: xDS, balancing over servers, route look-up, injected faults. A static link takes the first
// definition that it meets, and so leaves three MiB of code behind; `xds:` addresses and service
// configurations that ask for those policies are then unknown names.
//
// Belongs to gRPC 1.51: where a function is called something else, the link brings its code back,
// and in the end the plugin is too large for its host, which package_test notices.
namespace grpc_core {

class CoreConfiguration {
 public:
  class Builder;
};

#define LEFT_OUT(name)                    \
  void name(CoreConfiguration::Builder*); \
  void name(CoreConfiguration::Builder*) {}

LEFT_OUT(FaultInjectionFilterRegister)
LEFT_OUT(RegisterExtraFilters)  // xDS
LEFT_OUT(RegisterFakeResolver)
LEFT_OUT(RegisterGrpcLbPolicy)
LEFT_OUT(RegisterOutlierDetectionLbPolicy)
LEFT_OUT(RegisterPriorityLbPolicy)
LEFT_OUT(RegisterRingHashLbPolicy)
LEFT_OUT(RegisterRlsLbPolicy)
LEFT_OUT(RegisterWeightedTargetLbPolicy)

}  // namespace grpc_core
