// See operations_log.hpp.
#include "broker/operations_log.hpp"

#include "broker/method_table.hpp"
#include "broker/peer.hpp"
#include "rpc/dispatcher.hpp"
#include "wirecall/principal.hpp"

namespace wirecall::broker {

using std::chrono::floor;
using std::chrono::nanoseconds;

static std::int64_t count_of(std::uint64_t number) noexcept { return static_cast<std::int64_t>(number); }

nanoseconds OperationsLog::now() const noexcept {
  return loop_context_->scheduler != nullptr ? loop_context_->scheduler->now() : nanoseconds{0};
}

bool OperationsLog::admits(Budget& budget, LogLevel level) noexcept {
  if (loop_context_->log == nullptr || !loop_context_->log->takes(level)) return false;
  const nanoseconds time = now();
  if (time - budget.second >= std::chrono::seconds{1}) {
    budget.second = time;
    budget.written = 0;
  }
  if (budget.written == budget.a_second) {
    ++budget.left_out;
    return false;
  }
  ++budget.written;
  if (const std::int64_t left_out = std::exchange(budget.left_out, 0); left_out != 0)
    write(level, budget.left_out_text, {{"records", left_out}});
  return true;
}

void OperationsLog::write(LogLevel level, std::string_view message,
                          std::initializer_list<LogField> fields) const noexcept {
  if (loop_context_->log != nullptr) (*loop_context_->log)(level, message, fields);
}

void OperationsLog::tell_of_client(std::string_view message, std::initializer_list<LogField> fields) noexcept {
  if (admits(clients_, LogLevel::info)) write(LogLevel::info, message, fields);
}

void OperationsLog::greeted(const Peer& peer) noexcept {
  tell_of_client("a client has said hello", {{"client", peer.name},
                                             {"principal", peer.principal_name()},
                                             {"protocol", peer.sink().protocol()},
                                             {"tls", peer.sink().tls_version()}});
}

void OperationsLog::resumed(const Peer& peer) noexcept {
  tell_of_client("a client has come back on another connection",
                 {{"client", peer.name}, {"principal", peer.principal_name()}});
}

void OperationsLog::left(const Peer& peer) noexcept {
  tell_of_client("a client has left",
                 {{"client", peer.name},
                  {"principal", peer.principal_name()},
                  {"reason", peer.counts.end != nullptr ? std::string_view{peer.counts.end} : "finished"},
                  {"connected_ms", floor<std::chrono::milliseconds>(now() - peer.connected_at).count()},
                  {"bytes_in", count_of(peer.counts.bytes_in)},
                  {"bytes_out", count_of(peer.counts.bytes_out)},
                  {"methods", count_of(peer.methods_last)},
                  {"subscriptions", count_of(peer.subscriptions_last)}});
}

void OperationsLog::provides(const Peer& peer, std::string_view method, std::size_t methods, bool no_more) noexcept {
  tell_of_client(no_more ? "a client provides methods no more" : "a client provides methods",
                 {{"client", peer.name},
                  {"principal", peer.principal_name()},
                  {"method", method},
                  {"methods", count_of(methods)}});
}

void OperationsLog::kicked(const Peer& by, std::string_view client) noexcept {
  tell_of_client("a client is kicked", {{"client", client}, {"by", by.name}, {"principal", by.principal_name()}});
}

void OperationsLog::answered(const Answered& call) noexcept {
  until_call_ = calls_every_;
  write(LogLevel::debug, "a call was answered",
        {{"method", call.method},
         {"client", call.client},
         {"provider", call.provider.peer->name},
         {"us", floor<std::chrono::microseconds>(call.time).count()},
         {"answer", call.failed ? std::string_view{"error"} : std::string_view{"result"}},
         {"one_of", count_of(calls_every_)}});
}

void OperationsLog::not_granted(const Peer& client, std::string_view method) noexcept {
  if (!admits(failures_, LogLevel::warning)) return;
  write(LogLevel::warning, "a call without a grant is refused",
        {{"method", method}, {"client", client.name}, {"principal", client.principal_name()}});
}

void OperationsLog::failed(std::string_view method, const Peer* client, const Error& error,
                           std::string_view about) noexcept {
  if (admits(failures_, LogLevel::warning)) write_failure(LogLevel::warning, method, client, error, about);
}

void OperationsLog::not_provided(std::string_view method, const Peer* client, const Error& error) noexcept {
  if (admits(not_provided_, LogLevel::debug)) write_failure(LogLevel::debug, method, client, error, {});
}

void OperationsLog::write_failure(LogLevel level, std::string_view method, const Peer* client, const Error& error,
                                  std::string_view about) const noexcept {
  // What is said of wrong params holds what was sent, which may be a secret.
  const bool own = error.code() <= static_cast<int>(ErrorCode::provider_lost) &&
                   error.code() >= static_cast<int>(ErrorCode::draining);
  write(level, "a call has failed",
        {{"method", method},
         {"client", client != nullptr ? std::string_view{client->name} : std::string_view{}},
         {"principal", client != nullptr ? client->principal_name() : std::string_view{}},
         {"about", about},
         {"code", error.code()},
         {"error", error.message()},
         {"data", own ? std::string_view{error.data()} : std::string_view{}}});
}

}  // namespace wirecall::broker
