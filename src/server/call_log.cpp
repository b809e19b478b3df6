#include "server/call_log.hpp"

#include "rpc/broker.hpp"
#include "rpc/call_record.hpp"
#include "wirecall/principal.hpp"

namespace wirecall::net {
namespace {

using Clock = std::chrono::steady_clock;

struct LoggedCall {
  std::string method;
  std::string client;
  std::string principal;
  bool notification;
  Clock::time_point began;
};

LoggedCall logged(const Call& call) {
  // A prefix that is provided is one method with many names.
  const bool as_sent = !call.message().method_escaped;
  const rpc::BrokerPeer* const peer = call.broker_peer();
  const Principal* const principal = call.principal();
  return {.method = std::string{as_sent ? call.message().method() : std::string_view{call.method().name()}},
          .client = peer != nullptr ? peer->name_given() : std::string{},
          .principal = principal != nullptr ? principal->name : std::string{},
          .notification = call.is_notification(),
          .began = Clock::now()};
}

std::string_view outcome_of(const LoggedCall& call, const Outcome& outcome) {
  if (call.notification) return "notification";
  return outcome.ok() ? "result" : "error";
}

}  // namespace

Middleware call_log(LogSink log) {
  return [log = std::move(log)](Call& call, Next next) {
    if (log.takes(LogLevel::info)) {
      call.on_reply([&log, seen = logged(call)](const Outcome& outcome) {
        const auto us = std::chrono::floor<std::chrono::microseconds>(Clock::now() - seen.began).count();
        rpc::write_call_record(log, {.method = seen.method,
                                     .client = seen.client,
                                     .principal = seen.principal,
                                     .us = us,
                                     .outcome = outcome_of(seen, outcome),
                                     .code = outcome.code});
      });
    }
    next(call);
  };
}

}  // namespace wirecall::net
