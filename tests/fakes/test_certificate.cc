// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/test_certificate.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <cstdlib>

namespace bridge {
namespace {

void Check(bool ok) {
  if (ok) return;
  std::fprintf(stderr, "OpenSSL cannot make a test certificate\n");
  std::abort();
}

std::string Contents(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string text(data, static_cast<size_t>(size));
  BIO_free(bio);
  return text;
}

void AddExtension(X509* certificate, int nid, const char* value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
  Check(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

}  // namespace

TestCertificate::TestCertificate(Options options)
    : key_(EVP_EC_gen("P-256")), certificate_(X509_new()) {
  Check(key_ != nullptr && certificate_ != nullptr);
  X509_set_version(certificate_, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate_), 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate_), -7200);
  X509_gmtime_adj(X509_getm_notAfter(certificate_), options.expires_in_seconds);
  X509_set_pubkey(certificate_, key_);
  X509_NAME* name = X509_get_subject_name(certificate_);
  const auto* common = reinterpret_cast<const unsigned char*>("test");
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, common, -1, -1, 0);
  X509_set_issuer_name(certificate_, name);
  AddExtension(certificate_, NID_basic_constraints, "critical,CA:TRUE");
  AddExtension(certificate_, NID_subject_alt_name, options.names);
  Check(X509_sign(certificate_, key_, EVP_sha256()) > 0);
  BIO* bio = BIO_new(BIO_s_mem());
  Check(PEM_write_bio_X509(bio, certificate_) == 1);
  pem_ = Contents(bio);
}

TestCertificate::~TestCertificate() {
  X509_free(certificate_);
  EVP_PKEY_free(key_);
}

std::string TestCertificate::key_pem() const {
  BIO* bio = BIO_new(BIO_s_mem());
  Check(PEM_write_bio_PrivateKey(bio, key_, nullptr, nullptr, 0, nullptr, nullptr) == 1);
  return Contents(bio);
}

SSL_CTX* TestCertificate::NewServerContext() const {
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  Check(context != nullptr && SSL_CTX_use_certificate(context, certificate_) == 1 &&
        SSL_CTX_use_PrivateKey(context, key_) == 1);
  return context;
}

}  // namespace bridge
