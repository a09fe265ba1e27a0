// SPDX-License-Identifier: Apache-2.0
//
// tests/fakes/test_certificate.h — a self-signed certificate for localhost, 127.0.0.1 and ::1, or
// as a test wants it, made when it is needed and never stored.
#pragma once

#include <openssl/types.h>

#include <string>

namespace bridge {

class TestCertificate {
 public:
  struct Options {
    const char* names = "DNS:localhost,IP:127.0.0.1,IP:::1";
    long expires_in_seconds = 3600;  // negative: it has expired
  };
  TestCertificate() : TestCertificate(Options()) {}
  explicit TestCertificate(Options options);
  ~TestCertificate();
  TestCertificate(const TestCertificate&) = delete;
  TestCertificate& operator=(const TestCertificate&) = delete;

  const std::string& pem() const { return pem_; }  // the certificate, for those who trust it
  std::string key_pem() const;

  SSL_CTX* NewServerContext() const;  // the caller frees it

 private:
  EVP_PKEY* key_;
  X509* certificate_;
  std::string pem_;
};

}  // namespace bridge
