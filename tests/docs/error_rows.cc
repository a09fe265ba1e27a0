// SPDX-License-Identifier: Apache-2.0
//
// Prints the catalogue of failures with the EPP/1 column, one reason a line, fields apart by tabs:
// reason, gRPC code, fault, retryable, advice, EPP code, sdk code.
#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "bridge/base/error.h"
#include "bridge/base/error_catalog.h"
#include "frontends/epp/errors.h"

int main() {
  for (const bridge::CatalogEntry& entry : bridge::ErrorCatalog()) {
    const bridge::epp::EppErrorRow& epp = bridge::epp::EppErrorRowOf(entry.reason);
    if (epp.reason != entry.reason) {
      std::fprintf(stderr, "EPP has no row for %s\n",
                   std::string(bridge::ReasonName(entry.reason)).c_str());
      return 1;
    }
    std::printf("%s\t%s\t%s\t%s\t%s\t%d\t%s\n",
                std::string(bridge::ReasonName(entry.reason)).c_str(),
                std::string(absl::StatusCodeToString(entry.code)).c_str(),
                std::string(bridge::FaultName(entry.fault)).c_str(), entry.retryable ? "yes" : "no",
                std::string(entry.advice).c_str(), epp.code, std::string(epp.sdk_code).c_str());
  }
  return 0;
}
