// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace bridge {
namespace {

absl::Status Unusable(const char* flag, const std::string& file, const char* what) {
  ERR_clear_error();
  return InvalidField(flag, "'" + file + "' " + what);
}

absl::Status CheckReadable(const char* flag, const std::string& file) {
  if (file.empty()) return InvalidField(flag, "is not set, but another TLS flag is");
  if (::access(file.c_str(), R_OK) != 0) {
    return InvalidField(flag, "cannot read '" + file + "': " + std::strerror(errno));
  }
  return absl::OkStatus();
}

absl::Status Check(const TlsFiles& files) {
  RETURN_IF_ERROR(CheckReadable("tls_cert_file", files.cert_file));
  RETURN_IF_ERROR(CheckReadable("tls_key_file", files.key_file));
  const std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context(SSL_CTX_new(TLS_server_method()),
                                                             &SSL_CTX_free);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.cert_file.c_str()) != 1) {
    return Unusable("tls_cert_file", files.cert_file, "is not a PEM certificate");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    return Unusable("tls_key_file", files.key_file,
                    "is not the PEM private key of the certificate");
  }
  if (files.client_ca_file.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(CheckReadable("client_ca_file", files.client_ca_file));
  if (SSL_CTX_load_verify_locations(context.get(), files.client_ca_file.c_str(), nullptr) != 1) {
    return Unusable("client_ca_file", files.client_ca_file, "holds no PEM certificate");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> MakeServerCredentials(
    const TlsFiles& files, absl::Duration reload_interval) {
  if (!files.enabled()) return grpc::InsecureServerCredentials();
  RETURN_IF_ERROR(Check(files));
  const auto seconds = static_cast<unsigned>(
      std::max<int64_t>(absl::ToInt64Seconds(absl::Ceil(reload_interval, absl::Seconds(1))), 1));
  auto provider = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      files.key_file, files.cert_file, files.client_ca_file, seconds);
  grpc::experimental::TlsServerCredentialsOptions options(provider);
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca_file.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(options);
}

}  // namespace bridge
