// SPDX-License-Identifier: Apache-2.0
#include "bridge/opensandbox/sandbox_ports.h"

#include "tests/opensandbox/lifecycle_fixture.h"

namespace bridge {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class SandboxPortsTest : public LifecycleFixture {
 protected:
  SandboxPortsTest() { fake_.Add("sb-1").address = "10.0.0.7:44064"; }
  absl::StatusOr<PortUrl> Get(int port, bool through_server = false) {
    return Run(
        [=, this] { return GetPortUrl(client_, Context(), "sb-1", "", port, through_server); });
  }
  absl::StatusOr<PortUrl> Sign(absl::Time expires_at) {
    return Run([=, this] { return SignPortUrl(client_, Context(), "sb-1", "", 8000, expires_at); });
  }
};

TEST_F(SandboxPortsTest, UrlsForBothProtocols) {
  const auto port = Get(8080);
  EXPECT_EQ(port->url, "http://10.0.0.1:50581");
  EXPECT_EQ(port->websocket_url, "ws://10.0.0.1:50581");
  EXPECT_THAT(port->notes, IsEmpty());
  EXPECT_FALSE(port->through_server);
}

TEST_F(SandboxPortsTest, TheCostOfExecdsProxyIsTold) {
  const auto port = Get(8000);
  EXPECT_EQ(port->url, "http://10.0.0.7:44064/proxy/8000");
  EXPECT_THAT(port->notes, ElementsAre(HasSubstr("file descriptor")));
}

TEST_F(SandboxPortsTest, TheDaemonsOwnPortIsItsRoot) {
  const auto port = Get(44772);
  EXPECT_EQ(port->url, "http://10.0.0.7:44064");
  EXPECT_THAT(port->notes, IsEmpty());
}

TEST_F(SandboxPortsTest, ThroughTheServer) {
  const auto port = Get(8000, true);
  EXPECT_EQ(port->url, "http://srv:8080/v1/sandboxes/sb-1/proxy/8000");
  EXPECT_TRUE(port->through_server);
  EXPECT_THAT(port->notes, ElementsAre(HasSubstr("Authorization")));
}

TEST_F(SandboxPortsTest, HeadersButNeverTheKey) {
  fake_.endpoint_headers = {{"X-EXECD-ACCESS-TOKEN", "t"}, {"X-Sticky", "s"}};
  for (const bool through_server : {false, true}) {
    const auto port = Get(8000, through_server);
    EXPECT_EQ(port->headers.size(), 2u);
    for (const auto& header : port->headers) EXPECT_NE(header.value, "CANARYKEY");
  }
}

TEST_F(SandboxPortsTest, OthersAreNotTold) {
  CallContext red = Context();
  red.tenant = "red";
  EXPECT_THAT(Run([&] { return GetPortUrl(client_, red, "sb-1", "", 80, false); }),
              HasReason("NOT_YOUR_SANDBOX"));
  EXPECT_THAT(Run([&] { return GetPortUrl(client_, Context(), "sb-1", "old", 80, false); }),
              HasReason("STALE_INCARNATION"));
  EXPECT_EQ(fake_.Count("GET /v1/sandboxes/sb-1/endpoints/80"), 0);
}

TEST_F(SandboxPortsTest, SigningWhereItIsNotSupported) {
  EXPECT_THAT(Sign(clock_.Now() + absl::Hours(1)), HasReason("SIGNED_ENDPOINT_UNSUPPORTED"));
}

TEST_F(SandboxPortsTest, WholeSecondsInTheFuture) {
  (void)Sign(absl::FromUnixSeconds(1'900'000'000) + absl::Milliseconds(999));
  EXPECT_EQ(fake_.requests()[0].query, "expires=1900000000");
  fake_.ForgetRequests();
  for (const absl::Time past :
       {clock_.Now(), clock_.Now() - absl::Hours(1), absl::UnixEpoch(), absl::FromUnixSeconds(-5),
        clock_.Now() + absl::Milliseconds(900)}) {
    EXPECT_THAT(Sign(past), RejectsField("expires_at")) << past;
  }
  EXPECT_THAT(fake_.requests(), SizeIs(0));
  (void)Sign(absl::FromUnixSeconds(253'402'300'799));
  EXPECT_EQ(fake_.requests()[0].query, "expires=253402300799");
}

TEST_F(SandboxPortsTest, ASignedUrlIsRecognised) {
  // 1900000000 in base 36, worked out apart from the code under test.
  const std::string token = "sb-1-8000-vf7lds-0a1b2c3d1";
  for (const std::string& body :
       {R"({"endpoint":")" + token + R"(.gw.example.com"})",
        R"({"endpoint":"gw.example.com/)" + token + R"("})",
        R"({"endpoint":"gw.example.com","headers":{"OpenSandbox-Ingress-To":")" + token +
            R"("}})"}) {
    fake_.Script("GET *", {.status = 200, .body = body});
    const auto port = Sign(absl::FromUnixSeconds(1'900'000'000));
    ASSERT_THAT(port, IsOk()) << body;
    EXPECT_EQ(port->expires_at, absl::FromUnixSeconds(1'900'000'000));
  }
}

TEST_F(SandboxPortsTest, AnUnsignedUrlIsNeverGivenOutAsSigned) {
  for (const char* body : {R"({"endpoint":"10.0.0.7:44064/proxy/8000"})",
                           R"({"endpoint":"sb-1-8000.gw.example.com"})"}) {
    fake_.Script("GET *", {.status = 200, .body = body});
    EXPECT_THAT(Sign(absl::FromUnixSeconds(1'900'000'000)),
                HasReason("SIGNED_ENDPOINT_UNSUPPORTED"));
  }
}

}  // namespace
}  // namespace bridge
