// SPDX-License-Identifier: Apache-2.0
#include "bridge/server/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <utility>

#include "bridge/base/error.h"
#include "bridge/base/status_macros.h"
#include "bridge/server/file_watch.h"
#include "grpc/grpc.h"
#include "grpc/grpc_security.h"

namespace bridge {
namespace {

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

absl::Status Unusable(const char* flag, const std::string& file, const char* what) {
  ERR_clear_error();
  return InvalidField(flag, "'" + file + "' " + what);
}

Bio Memory(const std::string& text) {
  return {BIO_new_mem_buf(text.data(), static_cast<int>(text.size())), &BIO_free};
}

// OpenSSL would ask whoever sits at the terminal.
int NoPassphrase(char*, int, int, void*) { return -1; }

// The first of the certificates in `text`; null if there is none, or one of them is broken.
Certificate FirstOf(const std::string& text) {
  const Bio bio = Memory(text);
  Certificate first(nullptr, &X509_free);
  while (true) {
    Certificate next(PEM_read_bio_X509(bio.get(), nullptr, &NoPassphrase, nullptr), &X509_free);
    if (next == nullptr) break;
    if (first == nullptr) first = std::move(next);
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) first.reset();
  return first;
}

absl::Status Read(const char* flag, const std::string& file, std::string* content) {
  if (file.empty()) return InvalidField(flag, "is not set, but another TLS flag is");
  ASSIGN_OR_RETURN(*content, ReadSecretFile(file, flag));
  return absl::OkStatus();
}

absl::StatusOr<TlsPems> ReadAndCheck(const TlsFiles& files) {
  TlsPems pems;
  RETURN_IF_ERROR(Read("tls_cert_file", files.cert_file, &pems.cert));
  RETURN_IF_ERROR(Read("tls_key_file", files.key_file, &pems.key));
  if (!files.client_ca_file.empty()) {
    RETURN_IF_ERROR(Read("client_ca_file", files.client_ca_file, &pems.client_ca));
  }
  RETURN_IF_ERROR(CheckPems(files, pems));
  return pems;
}

grpc_ssl_server_certificate_config* ToConfig(const TlsPems& pems) {
  const grpc_ssl_pem_key_cert_pair pair = {pems.key.c_str(), pems.cert.c_str()};
  // gRPC wants some authority here, also where it asks no client for a certificate.
  const std::string& authority = pems.client_ca.empty() ? pems.cert : pems.client_ca;
  return grpc_ssl_server_certificate_config_create(authority.c_str(), &pair, 1);
}

}  // namespace

absl::Status CheckPems(const TlsFiles& files, const TlsPems& pems) {
  const Certificate certificate = FirstOf(pems.cert);
  if (certificate == nullptr) {
    return Unusable("tls_cert_file", files.cert_file, "is not a PEM certificate");
  }
  const Key key(PEM_read_bio_PrivateKey(Memory(pems.key).get(), nullptr, &NoPassphrase, nullptr),
                &EVP_PKEY_free);
  if (key == nullptr || X509_check_private_key(certificate.get(), key.get()) != 1) {
    return Unusable("tls_key_file", files.key_file,
                    "is not the PEM private key of the certificate");
  }
  if (!files.client_ca_file.empty() && FirstOf(pems.client_ca) == nullptr) {
    return Unusable("client_ca_file", files.client_ca_file, "holds no PEM certificate");
  }
  return absl::OkStatus();
}

// Each port asks before every handshake whether there is something new, and each must be told.
struct TlsStore::Port {
  explicit Port(TlsStore& store) : store(store) {}

  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config) {
    auto& port = *static_cast<Port*>(self);
    const std::lock_guard lock(port.store.mu_);
    if (port.version == port.store.version_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
    port.version = port.store.version_;
    *config = ToConfig(port.store.pems_);
    return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
  }

  TlsStore& store;
  int version = -1;  // guarded by store.mu_; that it was told last
};

class TlsStore::PortCredentials final : public grpc::ServerCredentials {
 public:
  explicit PortCredentials(TlsStore& store) : store_(store) {}
  void SetAuthMetadataProcessor(
      const std::shared_ptr<grpc::AuthMetadataProcessor>& /*processor*/) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    Port* port = nullptr;
    {
      const std::lock_guard lock(store_.mu_);
      port = store_.ports_.emplace_back(std::make_unique<Port>(store_)).get();
    }
    grpc_server_credentials* credentials = grpc_ssl_server_credentials_create_with_options(
        grpc_ssl_server_credentials_create_options_using_config_fetcher(
            store_.files_.client_ca_file.empty()
                ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY,
            &Port::Fetch, port));
    const int number = grpc_server_add_http2_port(server, address.c_str(), credentials);
    grpc_server_credentials_release(credentials);
    return number;
  }

  TlsStore& store_;
};

absl::StatusOr<std::unique_ptr<TlsStore>> TlsStore::Load(TlsFiles files) {
  std::unique_ptr<TlsStore> store(new TlsStore(std::move(files)));
  RETURN_IF_ERROR(store->Reload());
  return store;
}

TlsStore::TlsStore(TlsFiles files) : files_(std::move(files)) {}

TlsStore::~TlsStore() = default;

absl::Status TlsStore::Reload() {
  ASSIGN_OR_RETURN(TlsPems pems, ReadAndCheck(files_));
  const std::lock_guard lock(mu_);
  if (pems == pems_) return absl::OkStatus();
  pems_ = std::move(pems);
  ++version_;
  return absl::OkStatus();
}

TlsPems TlsStore::pems() const {
  const std::lock_guard lock(mu_);
  return pems_;
}

std::shared_ptr<grpc::ServerCredentials> TlsStore::Credentials() {
  return std::make_shared<PortCredentials>(*this);
}

}  // namespace bridge
