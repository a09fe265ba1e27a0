// SPDX-License-Identifier: Apache-2.0
//
// tests/server/test_certs.h — certificate authorities and certificates made on the spot.
#pragma once

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

namespace bridge::testing {

struct PemPair {
  std::string cert, key;
};

class TestCa {
 public:
  explicit TestCa(const char* name) : key_(EVP_EC_gen("P-256"), &EVP_PKEY_free) {
    cert_ = Make(name, key_.get(), nullptr, "CA:TRUE", nullptr);
  }

  std::string cert() const { return Pem(cert_.get()); }

  // For 127.0.0.1 and localhost, signed by this authority.
  PemPair Issue(const char* name) {
    const Key key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const Cert cert = Make(name, key.get(), cert_.get(), "CA:FALSE", "DNS:localhost,IP:127.0.0.1");
    return {Pem(cert.get()), Pem(key.get())};
  }

 private:
  using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  using Cert = std::unique_ptr<X509, decltype(&X509_free)>;

  static void Extend(X509* cert, X509* issuer, int nid, const char* value) {
    X509V3_CTX context;
    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, cert, nullptr, nullptr, 0);
    X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value);
    X509_add_ext(cert, extension, -1);
    X509_EXTENSION_free(extension);
  }

  // Null issuer: signs itself.
  Cert Make(const char* name, EVP_PKEY* key, X509* issuer, const char* constraints,
            const char* alternatives) {
    static long serial = 1;
    Cert cert(X509_new(), &X509_free);
    X509_set_version(cert.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), ++serial);
    X509_gmtime_adj(X509_getm_notBefore(cert.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(cert.get()), 24 * 3600);
    X509_set_pubkey(cert.get(), key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(cert.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509* signer = issuer != nullptr ? issuer : cert.get();
    X509_set_issuer_name(cert.get(), X509_get_subject_name(signer));
    Extend(cert.get(), signer, NID_basic_constraints, constraints);
    if (alternatives != nullptr) Extend(cert.get(), signer, NID_subject_alt_name, alternatives);
    X509_sign(cert.get(), key_.get(), EVP_sha256());
    return cert;
  }

  static std::string Take(BIO* bio) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(bio, &data);
    std::string text(data, static_cast<size_t>(size));
    BIO_free(bio);
    return text;
  }
  static std::string Pem(X509* cert) {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(bio, cert);
    return Take(bio);
  }
  static std::string Pem(EVP_PKEY* key) {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    return Take(bio);
  }

  Key key_;
  Cert cert_{nullptr, &X509_free};
};

}  // namespace bridge::testing
