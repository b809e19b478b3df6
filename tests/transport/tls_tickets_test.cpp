// The keys of tickets, with a clock of the test: when there is another one, and how long the one before it is accepted.
#include "transport/tls_tickets.hpp"

#include <gtest/gtest.h>
#include <memory>

#include "tests/transport/tls_pair.hpp"

namespace wirecall::transport {
namespace {

using namespace std::chrono_literals;
using State = TlsSession::State;

struct Tickets {
  std::chrono::nanoseconds now = 5s;
  std::shared_ptr<TicketKeys> keys = std::make_shared<TicketKeys>([this] { return now; });
};

TEST(TlsTickets, have_a_new_key_each_twelve_hours_and_accept_the_last_one_until_it_is_a_day_old) {
  Tickets tickets;
  const TicketKey first = tickets.keys->current();
  tickets.now += 12h - 1ns;
  EXPECT_EQ(tickets.keys->current().name, first.name);
  EXPECT_TRUE(tickets.keys->find(first.name.data()));
  tickets.now += 1ns;
  const TicketKey second = tickets.keys->current();
  EXPECT_NE(second.name, first.name);
  EXPECT_NE(second.cipher, first.cipher);
  EXPECT_NE(second.mac, first.mac);
  const std::optional<TicketKey> found = tickets.keys->find(first.name.data());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->cipher, first.cipher);
  EXPECT_EQ(found->mac, first.mac);
  EXPECT_FALSE(tickets.keys->find(TicketKey{first}.mac.data())) << "of another name";
  tickets.now += 12h - 1ns;
  EXPECT_TRUE(tickets.keys->find(first.name.data()));
  tickets.now += 1ns;
  EXPECT_FALSE(tickets.keys->find(first.name.data()));
  EXPECT_TRUE(tickets.keys->find(second.name.data()));
}

TEST(TlsTickets, accept_none_of_a_day_ago_though_nobody_has_asked_since) {
  Tickets tickets;
  const TicketKey first = tickets.keys->current();
  tickets.now += 20h;
  EXPECT_TRUE(tickets.keys->find(first.name.data()));
  tickets.now += 4h;
  EXPECT_FALSE(tickets.keys->find(first.name.data())) << "which was the last one for four hours alone";
  const TicketKey second = tickets.keys->current();
  tickets.now += 1000h;
  EXPECT_FALSE(tickets.keys->find(second.name.data()));
}

// Clients of both versions, each with the last ticket that it has.
TEST(TlsTickets, resume_sessions_for_a_day_and_are_renewed_in_time) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Tickets tickets;
    const TlsServerSettings settings{.identities = {usual_certificates().server_files}};
    const auto context = std::make_shared<const TlsServerContext>(settings, nullptr, tickets.keys);
    SessionPointer last;
    const auto resumes = [&](const ServerContext& at_server) {
      End server{at_server};
      TlsPeer client{{.version_min = version, .version_max = version, .session = last.get()}};
      exchange(client, server);
      EXPECT_EQ(server.state(), State::open) << server.failure();
      client.shut_down();  // OpenSSL resumes no session of a connection that was cut
      // By 1.3 it comes behind the handshake, and the callback has it; by 1.2 that is not told of one that is renewed.
      SSL_SESSION* const now = version == TLS1_3_VERSION ? client.session() : SSL_get0_session(client.ssl());
      SSL_SESSION_up_ref(now);
      last.reset(now);
      return client.resumed();
    };
    EXPECT_FALSE(resumes(context));
    EXPECT_TRUE(resumes(context));
    tickets.now += 13h;
    EXPECT_TRUE(resumes(context)) << "by a ticket of the key before";
    tickets.now += 12h;
    EXPECT_TRUE(resumes(context)) << "by the ticket that it got then";
    EXPECT_TRUE(resumes(server_context(settings, context))) << "whatever certificates are read anew";
    tickets.now += 25h;
    EXPECT_FALSE(resumes(context));
    EXPECT_TRUE(resumes(context));
  }
}

}  // namespace
}  // namespace wirecall::transport
