// See target.hpp.
#include "cli/target.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "base/printable.hpp"
#include "broker/methods.hpp"
#include "cli/terminal.hpp"
#include "client/core.hpp"
#include "message/error_description.hpp"
#include "wirecall/client.hpp"

namespace wirecall::cli {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

const char* const kTokenCure = "; give the server's token by --token or in $WIRECALL_TOKEN";

RawClient::RawClient(std::string_view url, const ClientOptions& options)
    : url_(url), core_(std::make_shared<net::ClientCore>(std::vector{Endpoint{url}}, options)) {}
RawClient::~RawClient() { core_->close(); }

void RawClient::connect() { core_->connect(); }

detail::OutgoingCall RawClient::call(std::string_view method, std::string_view params, std::stop_token stop) {
  detail::OutgoingCall call{core_, method};
  if (!params.empty()) call.set_params(params);
  call.set_stop(std::move(stop));
  return call;
}

// Between attempts to connect, while that is waited for.
constexpr milliseconds kPause{20};

// Of `time`, which is for connecting as well; a server that does not answer leaves time to those behind it.
static void give_time(ClientOptions& options, milliseconds time, std::size_t endpoints) {
  options.call_timeout_ms = static_cast<std::uint32_t>(time.count());
  const milliseconds share = time / static_cast<std::int64_t>(endpoints);
  options.connect_timeout_ms = static_cast<std::uint32_t>(std::max(share, milliseconds{1}).count());
}

void warn_of_no_verify(const ClientOptions& options) {
  if (!options.tls.no_verify || !options.tls.pin.empty()) return;
  print_stderr(
      "warning: --tls-no-verify accepts any server: whoever is on the way can read and change all that is "
      "sent\n");
}

int with_server(const Target& target, const std::function<int(RawClient&, TimeLeft)>& use) {
  const auto begun = steady_clock::now();
  const auto left = [&]() -> TimeLeft {
    if (!target.timeout) return {};
    const auto passed = std::chrono::floor<milliseconds>(steady_clock::now() - begun);
    return std::max(*target.timeout - passed, milliseconds{1});
  };
  for (;;) {
    std::size_t urls_left = target.urls.size();
    std::vector<ConnectionError> failures;
    const auto tell_failures = [&failures] {
      for (const ConnectionError& failure : std::exchange(failures, {})) print_error(failure.what());
    };
    bool used = false;
    for (const std::string& url : target.urls) {
      try {
        ClientOptions options = target.client;
        if (const TimeLeft time = left()) give_time(options, *time, urls_left--);
        RawClient caller{url, options};
        caller.connect();
        used = true;
        tell_failures();
        return use(caller, left());
      } catch (const ConnectionError& error) {
        if (error.code() == static_cast<int>(ErrorCode::unauthenticated)) {
          tell_failures();
          print_error(error);
          if (target.unreachable) target.unreachable(error);
          return kRpcError;
        }
        failures.push_back(error);
      } catch (const std::invalid_argument& error) {
        tell_failures();
        print_error(error.what());
        return kUsage;
      }
    }
    const milliseconds wait = std::min(target.wait, target.timeout.value_or(target.wait));
    if (used || steady_clock::now() + kPause >= begun + wait) {
      if (target.unreachable) target.unreachable(failures.back());
      tell_failures();
      return kCannotConnect;
    }
    std::this_thread::sleep_for(kPause);
  }
}

std::vector<Endpoint> endpoints_of(const Target& target) {
  std::vector<Endpoint> endpoints;
  for (const std::string& url : target.urls) endpoints.emplace_back(url);
  return endpoints;
}

ClientOptions client_options_of(const Target& target) {
  ClientOptions options = target.client;
  if (target.timeout) give_time(options, *target.timeout, target.urls.size());
  return options;
}

bool StopAtSignal::gave_up(const Error& error) const {
  if (interrupt_.signal() == 0 || error.code() != static_cast<int>(ErrorCode::cancelled)) return false;
  print_error(interrupt_.name() + " came: the call was given up");
  return true;
}

static bool has_no_method(const Error& error) { return error.code() == static_cast<int>(ErrorCode::method_not_found); }

static bool is_broker(RawClient& caller) {
  constexpr milliseconds kPatience{1000};
  detail::OutgoingCall call = caller.call("rpc.health", {}, {});
  call.set_timeout(kPatience);
  detail::Answer answer = call.wait();
  return answer.ok() || !has_no_method(answer.error());
}

Error explained(RawClient& caller, std::string_view method, const Error& error) {
  constexpr std::string_view kCallAll = "rpc.call_all";
  const bool of_brokers = method == kCallAll || (method != "rpc.methods" && broker::find_broker_method(method));
  if (!of_brokers || !has_no_method(error) || (method == kCallAll && is_broker(caller))) return error;
  return Error{error.code(), error.message() + std::string{message::no_broker_hint(error.code())}, error.data()};
}

std::expected<std::string, int> result_of(RawClient& caller, std::string_view method, detail::OutgoingCall call,
                                          const StopAtSignal& signal) {
  call.keep_response();
  detail::Answer answer = call.wait();
  if (answer.ok()) return std::string{answer.result()};
  if (signal.gave_up(answer.error())) return std::unexpected(signal.status());
  print_error(explained(caller, method, answer.error()));
  return std::unexpected(call.response().empty() ? exit_of(answer.error()) : exit_of_answer(answer.error()));
}

int with_result(const Target& target, std::string_view method, const std::function<int(const std::string&)>& use,
                std::string_view params) {
  return with_server(target, [&](RawClient& caller, TimeLeft left) -> int {
    const StopAtSignal signal;
    detail::OutgoingCall call = caller.call(method, params, signal.token());
    if (left) call.set_timeout(*left);
    const auto result = result_of(caller, method, std::move(call), signal);
    return result ? use(*result) : result.error();
  });
}

int exit_of(const Error& error) {
  if (error.code() == static_cast<int>(ErrorCode::timeout)) return kTimeout;
  if (error.code() == static_cast<int>(ErrorCode::provider_lost)) return kCannotConnect;
  return kRpcError;
}

int exit_of_answer(const Error& error) {
  return error.code() == static_cast<int>(ErrorCode::timeout) ? kTimeout : kRpcError;
}

void print_error(const Error& error) {
  std::string line = fmt::format("{} {}", bold(fmt::format("error {}:", error.code())), printable(error.message()));
  if (const std::string description = message::error_description(error.message(), error.data()); !description.empty())
    line += ": " + printable(description);
  if (error.code() == static_cast<int>(ErrorCode::unauthenticated)) line += kTokenCure;
  print_stderr(line + '\n');
}

}  // namespace wirecall::cli
