// TLS without memory, OpenSSL's included: whatever request fails, a session ends, or goes on as if nothing had been.
#include <cstdlib>
#include <gtest/gtest.h>
#include <new>
#include <openssl/crypto.h>
#include <string>

#include "base/sanitizers.hpp"
#include "tests/memory/failing_memory.hpp"
#include "tests/transport/tls_pair.hpp"

namespace wirecall::transport {
namespace {

using memory::Failing;
using memory::FailingMemory;
using State = TlsSession::State;

// OpenSSL's memory is the test's as well. That has to be said before it has any.
const bool kWrapped = CRYPTO_set_mem_functions(
                          [](std::size_t bytes, const char*, int) { return std::malloc(bytes); },
                          [](void* block, std::size_t bytes, const char*, int) { return std::realloc(block, bytes); },
                          [](void* block, const char*, int) { std::free(block); }) == 1;

// What both have heard of what was sent.
struct Conversation {
  std::string at_server;
  std::string at_client;
  bool over = false;
};

Conversation converse(const ServerContext& at_server, const ClientContext& at_client) {
  Conversation had;
  try {
    End server{at_server};
    End client{at_client, Endpoint{"tls://localhost"}};
    exchange(client, server);
    had.over = client.state() != State::open || server.state() != State::open || !client.send("question") ||
               !server.send("answer");
    if (had.over) return had;
    exchange(client, server);
    had.at_server = server.heard();
    had.at_client = client.heard();
  } catch (const std::bad_alloc&) {
    had.over = true;
  }
  return had;
}

TEST(TlsMemory, a_session_fails_or_goes_on_wherever_there_is_none) {
  ASSERT_TRUE(kWrapped);
  const UsualCertificates& usual = usual_certificates();
  const ServerContext at_server = server_context(
      {.identities = {usual.server_files}, .client = ClientCertificate::required, .client_ca = usual.cafile});
  const ClientContext at_client = client_context({.cafile = usual.cafile, .own = usual.client_files});
  for (const Failing failing : {Failing::once, Failing::since}) {
    for (int i = 0; i < 2; ++i) static_cast<void>(converse(at_server, at_client));  // what is made once
    std::size_t number = 0;
    bool failed = true;
    // Each of the first requests, then some: a handshake makes several thousand.
    while (failed) {
      number += number < (kAddressSanitizer ? 100 : 1000) ? 1 : 7;
      Conversation had;
      {
        FailingMemory fails{number, failing};
        had = converse(at_server, at_client);
        fails.end();
        failed = FailingMemory::has_failed();
      }
      ERR_clear_error();
      if (had.over) continue;
      EXPECT_TRUE(had.at_server == "question" || had.at_server.empty()) << number;
      EXPECT_TRUE(had.at_client == "answer" || had.at_client.empty()) << number;
    }
    EXPECT_GT(number, 100U);
    const Conversation after = converse(at_server, at_client);
    EXPECT_EQ(after.at_server, "question");
    EXPECT_EQ(after.at_client, "answer");
  }
}

}  // namespace
}  // namespace wirecall::transport
