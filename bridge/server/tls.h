// SPDX-License-Identifier: Apache-2.0
//
// server/tls.h — the server's certificate and whom it trusts, from files that may be replaced while
// it runs. New connections get the new ones, streams keep theirs.
//
// gRPC's own watcher of such files hands over whatever it reads: an empty key file ended the
// process, and half a copy every new connection. Here the files are read and checked together, and
// what does not fit together changes nothing.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/security/server_credentials.h"

namespace bridge {

struct TlsFiles {
  std::string cert_file = {};       // PEM, the chain; empty: no TLS
  std::string key_file = {};        // PEM, without a passphrase
  std::string client_ca_file = {};  // PEM; set: callers must show a certificate that it signed
  bool enabled() const {
    return !cert_file.empty() || !key_file.empty() || !client_ca_file.empty();
  }
};

// The contents of TlsFiles.
struct TlsPems {
  std::string cert, key, client_ca;
  bool operator==(const TlsPems&) const = default;
};

// Does the key belong to the certificate, is everything PEM? Errors: INVALID_ARGUMENT for the flag
// whose file (named, never quoted) is wrong.
absl::Status CheckPems(const TlsFiles& files, const TlsPems& pems);

// Any thread.
class TlsStore {
 public:
  // Errors: INVALID_ARGUMENT for the flag whose file is missing, unreadable or wrong.
  static absl::StatusOr<std::unique_ptr<TlsStore>> Load(TlsFiles files);
  ~TlsStore();

  // Reads the files again. On an error (those of Load) what is in force stays so.
  absl::Status Reload();
  TlsPems pems() const;

  // For the ports of a server, which this object must outlive.
  std::shared_ptr<grpc::ServerCredentials> Credentials();

 private:
  class PortCredentials;
  struct Port;

  explicit TlsStore(TlsFiles files);

  const TlsFiles files_;
  mutable std::mutex mu_;
  TlsPems pems_;                              // guarded by mu_
  int version_ = 0;                           // guarded by mu_; of pems_
  std::vector<std::unique_ptr<Port>> ports_;  // guarded by mu_
};

}  // namespace bridge
