// The part of ClientCore (client_core.hpp) that waits for a provider: a call that has a `wait` is made again while
// nobody provides its method, and never when it may have been delivered. -32601 alone does not tell that, since a
// handler may answer with it, as one does that has called a method which is missing. So the server is asked how many it
// has answered with itself (rpc.undelivered): when it is as many as have come on the connection, all were its own. All
// of it is the driver's, the mutex held.
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "client/core.hpp"
#include "message/read_error.hpp"

namespace wirecall::session {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr std::uint8_t kCountMax = std::numeric_limits<std::uint8_t>::max();
// No call has it: their ids are numbers.
constexpr std::string_view kId = R"("rpc.undelivered")";
constexpr std::string_view kQuestion = R"({"jsonrpc":"2.0","method":"rpc.undelivered","id":"rpc.undelivered"})";

bool is_missing(const Error& error) noexcept { return error.code() == static_cast<int>(ErrorCode::method_not_found); }

}  // namespace

bool ClientCore::waits_until(const ClientCall& call, nanoseconds time) noexcept {
  return time < call.begun + call.wait && time < call.deadline;
}

void ClientCore::count_unknown(ClientConnection& connection, const Error& error) noexcept {
  if (is_missing(error) && connection.unknown_methods != kCountMax) ++connection.unknown_methods;
}

// Whether the call waits for its method, as long as nothing else is heard of it.
bool ClientCore::wait_for_provider(ClientCall& call, const Error& error) {
  if (call.wait == milliseconds{0} || !is_missing(error)) return false;
  ClientConnection& connection = *call.connection;
  if (connection.http != nullptr || connection.batched ||
      !waits_until(call, loop_.now() + ClientCall::pause_of(call.attempts)))
    return false;
  if (!connection.asks_undelivered) {
    connection.controls.emplace_back(kQuestion);
    connection.asks_undelivered = true;
  }
  call.missing = call.lost_provider ? *call.lost_provider : error;
  delay(call, std::min<nanoseconds>(call.begun + call.wait, call.deadline));
  return true;
}

// Whether it is the answer to rpc.undelivered. Other servers know no such method, and have said nothing.
bool ClientCore::told_undelivered(ClientConnection& connection, const Received& message) {
  if (message.has(Member::error) && message.fault == Fault::none && message.id() != kId) {
    count_unknown(connection, message::read_error(*reader_, message[Member::error]));
    return false;
  }
  if (message.id() != kId || !connection.asks_undelivered) return false;
  connection.asks_undelivered = false;
  const std::string_view count = message.has(Member::result) ? message[Member::result] : std::string_view{};
  std::uint8_t number = kCountMax;
  const auto [end, fault] = std::from_chars(count.data(), count.data() + count.size(), number);
  const bool read = fault == std::errc{} && !count.empty() && end == count.data() + count.size();
  settle_missing(connection, read && number < kCountMax && number == connection.unknown_methods);
  connection.unknown_methods = 0;
  return true;
}

// What has become of the calls that were answered with -32601 on this connection.
void ClientCore::settle_missing(const ClientConnection& connection, bool undelivered) noexcept {
  if (delayed_.empty()) [[likely]]
    return;
  const nanoseconds now = loop_.now();
  for (CallList delayed = std::exchange(delayed_, {}); !delayed.empty();) {
    ClientCall& call = delayed.pop_front();
    if (!call.missing || call.connection != &connection) {
      delayed_.push_back(call);
    } else if (const nanoseconds next = now + ClientCall::pause_of(call.attempts);
               undelivered && waits_until(call, next)) {
      call.missing.reset();
      if (call.attempts < 4) ++call.attempts;
      delay(call, next);
    } else {
      call.stage = ClientCall::Stage::idle;
      fail(call, *std::exchange(call.missing, std::nullopt));
    }
  }
}

}  // namespace wirecall::session
