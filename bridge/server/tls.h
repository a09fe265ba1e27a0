// SPDX-License-Identifier: Apache-2.0
//
// server/tls.h — the server's certificate and whom it trusts, from files that may be replaced while
// it runs (new connections get the new ones).
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"

namespace bridge {

struct TlsFiles {
  std::string cert_file = {};       // PEM, the chain; empty: no TLS
  std::string key_file = {};        // PEM
  std::string client_ca_file = {};  // PEM; set: callers must show a certificate that it signed
  bool enabled() const {
    return !cert_file.empty() || !key_file.empty() || !client_ca_file.empty();
  }
};

// Reads and checks the files now, so that a server with wrong ones does not start, and again every
// `reload_interval` (whole seconds, at least one). Replace the files by renaming: key and
// certificate must match whenever they are looked at. Errors: INVALID_ARGUMENT for the flag whose
// file is missing, unreadable or wrong.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files, absl::Duration reload_interval);

}  // namespace bridge
