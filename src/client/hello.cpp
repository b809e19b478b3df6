// The part of ClientCore (client_core.hpp) that introduces the client: rpc.hello (docs/wire.md), the first message on a
// connection. No call waits for its answer. What that says of the server's limits spares the calls that it would
// refuse; and by the session that it gives, the next connection to the same endpoint is the same client's for the
// server, which may not know yet that the former one is lost.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "client/core.hpp"
#include "message/read_error.hpp"
#include "wirecall/reflect.hpp"

namespace wirecall::session {
namespace {

// No call has it: their ids are numbers.
constexpr std::string_view kHelloId = R"("rpc.hello")";

// What is read of the answer. Other servers may leave out any of it.
struct ServerLimits {
  std::optional<std::uint64_t> max_message_size;
  std::optional<std::uint64_t> batch;
  std::optional<std::uint64_t> in_flight;
};
struct Greeting {
  std::optional<ServerLimits> limits;
  std::optional<std::string> session;
};

}  // namespace

std::string ClientCore::hello_of(const ClientOptions& options, std::string_view resume) {
  std::string params;
  if (!options.client_id.empty()) params = R"("name":)" + to_json(options.client_id);
  if (!options.token.empty()) params += (params.empty() ? R"("token":)" : R"(,"token":)") + to_json(options.token);
  if (params.empty()) return {};
  if (!resume.empty()) params += R"(,"resume":)" + to_json(std::string{resume});
  return R"({"jsonrpc":"2.0","method":"rpc.hello","params":{)" + params + R"(},"id":)" + std::string{kHelloId} + "}";
}

void ClientCore::say_hello(ClientConnection& connection) {
  if (hello_.empty()) return;
  connection.resumes = !connection.resume.empty() && connection.resume_endpoint == connection.dialer.endpoint().uri();
  connection.controls.push_back(connection.resumes ? hello_of(options_, connection.resume) : hello_);
  connection.hello_until = loop_.now() + std::chrono::milliseconds{options_.call_timeout_ms};
}

// Whether it may still be answered: a server that has not done so in time does not know it.
bool ClientCore::hello_due(const ClientConnection& connection) const noexcept {
  return connection.hello_until != std::chrono::nanoseconds{0} && loop_.now() < connection.hello_until;
}

// Whether it is the answer to rpc.hello. A server that knows no such method is as good as any other.
bool ClientCore::greeted(Lock& lock, ClientConnection& connection, const Received& message) {
  if (message.id() != kHelloId || message.fault != Fault::none || !hello_due(connection)) return false;
  connection.hello_until = std::chrono::nanoseconds{0};
  if (message.has(Member::error)) {
    const Error why = message::read_error(*reader_, message[Member::error]);
    if (why.code() == static_cast<int>(ErrorCode::method_not_found)) {
      announce(connection);
      return true;
    }
    // The server has forgotten the session, as one does that was started again: then another one begins.
    if (why.code() == static_cast<int>(ErrorCode::unauthenticated) && connection.resumes) {
      connection.resume.clear();
      say_hello(connection);
      return true;
    }
    std::vector<std::string> refused;
    const bool kicked = why.code() == static_cast<int>(ErrorCode::forbidden);
    if (kicked || why.code() == static_cast<int>(ErrorCode::unauthenticated)) {
      // What has gone out behind it the server, which closes the connection, has not looked at.
      fail_all(connection, why);
      refusal_ = why;
      // Who was kicked may come again, and declares the same then.
      if (&connection == &declaring()) refused = kicked ? declarations_.names() : declarations_.refuse(why);
      tell_connecting();
    } else {
      announce(connection);
    }
    tell_refused(lock, refused, why);
    options_.log(LogLevel::warning, "the server refuses this client",
                 {{"client_id", options_.client_id}, {"code", why.code()}, {"error", why.message()}});
    return true;
  }
  refusal_.reset();
  announce(connection);
  const auto greeting = from_json<Greeting>(message[Member::result]);
  if (!greeting) return true;
  connection.resume = greeting->session.value_or(std::string{});
  connection.resume_endpoint = connection.dialer.endpoint().uri();
  if (!greeting->limits) return true;
  const ServerLimits& limits = *greeting->limits;
  const auto lower = [](std::size_t& own, const std::optional<std::uint64_t>& theirs) {
    if (theirs.value_or(0) != 0) own = std::min<std::uint64_t>(own, *theirs);
  };
  lower(connection.message_bytes_max, limits.max_message_size);
  lower(connection.batch_max, limits.batch);
  lower(connection.in_flight_max, limits.in_flight);
  return true;
}

void ClientCore::fail_all(ClientConnection& connection, const Error& why) noexcept {
  const auto refuse = [&](ClientCall& call) {
    try {
      fail(call, why);
    } catch (const std::bad_alloc&) {
      fail(call, Error{ErrorCode::unauthenticated});
    }
  };
  while (connection.awaits()) refuse(take_first(connection));
  while (!queue_.empty()) refuse(queue_.pop_front());
  connection.draining = true;  // it takes no more
}

}  // namespace wirecall::session
