// See call.hpp.
#include "cli/call.hpp"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/core.h>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/printable.hpp"
#include "cli/arguments.hpp"
#include "cli/files.hpp"
#include "cli/interrupt.hpp"
#include "cli/terminal.hpp"
#include "session/client_core.hpp"
#include "wirecall/client.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/error.hpp"
#include "wirecall/request.hpp"
#include "wirecall/result_stream.hpp"
#include "wirecall/value.hpp"

namespace wirecall::cli {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

namespace {

// The exit status for an error that this process made: no response came, or none that can be read.
int exit_of(const Error& error) {
  if (error.code() == static_cast<int>(ErrorCode::timeout)) return kTimeout;
  if (error.code() == static_cast<int>(ErrorCode::provider_lost)) return kCannotConnect;
  return kRpcError;
}

// The exit status for an error that the server answered with. A call's time is known to both sides, and either may be
// the first to notice that it is up.
int exit_of_answer(const Error& error) {
  return error.code() == static_cast<int>(ErrorCode::timeout) ? kTimeout : kRpcError;
}

void complain_of(const Error& error) {
  std::string line = fmt::format("{} {}", bold(fmt::format("error {}:", error.code())), printable(error.message()));
  if (!error.data().empty()) line += " " + printable(error.data());
  tell(line + '\n');
}

/// What is left of the time, where there is one.
using Left = std::optional<milliseconds>;

/// What is done with the first server that can be connected to, and with the params' JSON text.
template <class Connection>
using Use = std::function<int(Connection&, const std::string& params, Left left)>;

/// A client of which a call can be given up whose response is wanted as it came: Client has none of these.
class Caller {
 public:
  Caller(std::string_view url, const ClientOptions& options)
      : core_(std::make_shared<session::ClientCore>(std::vector{Endpoint{url}}, options)) {}
  Caller(Caller&&) = delete;
  ~Caller() { core_->close(); }

  void connect() { core_->connect(); }
  /// A call that a request to stop gives up.
  [[nodiscard]] detail::OutgoingCall call(std::string_view method, const std::string& params, std::stop_token stop) {
    detail::OutgoingCall call{core_, method};
    if (!params.empty()) call.set_params(params);
    call.set_stop(std::move(stop));
    return call;
  }

 private:
  std::shared_ptr<session::ClientCore> core_;
};

/// Requests a stop when a signal comes.
class StopAtSignal {
 public:
  StopAtSignal() = default;
  StopAtSignal(StopAtSignal&&) = delete;
  ~StopAtSignal() { interrupt_.release(); }

  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
  /// Whether that is why the call has ended: then it is told, and `status` is the exit status.
  [[nodiscard]] bool gave_up(const Error& error) const {
    if (interrupt_.signal() == 0 || error.code() != static_cast<int>(ErrorCode::cancelled)) return false;
    complain(interrupt_.name() + " came: the call was given up");
    return true;
  }
  [[nodiscard]] int status() const { return interrupt_.status(); }

 private:
  const Interrupt interrupt_;
  std::stop_source stop_;
  std::jthread thread_{[this] {
    interrupt_.wait();
    if (interrupt_.signal() != 0) stop_.request_stop();
  }};
};

template <class Connection>
int with_server(const CallOptions& options, const Use<Connection>& use) {
  const auto params = params_of_call(options.method, options.words, read_file);
  if (!params) {
    complain(params.error());
    return kUsage;
  }
  const auto begun = steady_clock::now();
  const auto left = [&]() -> Left {
    if (!options.timeout) return {};
    const auto passed = std::chrono::floor<milliseconds>(steady_clock::now() - begun);
    return std::max(*options.timeout - passed, milliseconds{1});
  };
  auto urls_left = static_cast<std::int64_t>(options.urls.size());
  for (const std::string& url : options.urls) {
    try {
      ClientOptions client_options = options.client;
      if (const Left time = left()) {
        client_options.call_timeout_ms = static_cast<std::uint32_t>(time->count());
        // A server that does not answer leaves time to those behind it.
        client_options.connect_timeout_ms =
            static_cast<std::uint32_t>(std::max(*time / urls_left--, milliseconds{1}).count());
      }
      Connection connection{url, client_options};
      connection.connect();
      return use(connection, *params, left());
    } catch (const ConnectionError& error) {
      complain(error.what());
    } catch (const std::invalid_argument& error) {
      complain(error.what());
      return kUsage;
    }
  }
  return kCannotConnect;
}

// Each result on a line, as soon as it is there.
int print_stream(detail::OutgoingCall call, const StopAtSignal& signal) {
  try {
    ResultStream<Value> items{detail::IncomingStream{std::move(call), kStreamCredit}};
    for (const Value& item : items) {
      if (const int printed = print(item.dump() + '\n'); printed != kSuccess) return printed;
    }
    return kSuccess;
  } catch (const ConnectionError& error) {
    complain_of(error);
    return kCannotConnect;
  } catch (const Error& error) {
    if (signal.gave_up(error)) return signal.status();
    complain_of(error);
    return exit_of_answer(error);
  }
}

int print_answer(detail::OutgoingCall call, bool raw, const StopAtSignal& signal) {
  call.keep_response();
  detail::Answer answer = call.wait();
  const std::string_view response = call.response();
  if (!answer.ok() && signal.gave_up(answer.error())) return signal.status();
  if (raw && !response.empty()) {
    const int printed = print(std::string{response} + '\n');
    return printed != kSuccess || answer.ok() ? printed : exit_of_answer(answer.error());
  }
  if (answer.ok()) return print(std::string{answer.result()} + '\n');
  complain_of(answer.error());
  return response.empty() ? exit_of(answer.error()) : exit_of_answer(answer.error());
}

}  // namespace

int call(const CallOptions& options) {
  return with_server<Caller>(options, [&](Caller& caller, const std::string& params, Left left) -> int {
    const StopAtSignal signal;
    detail::OutgoingCall call = caller.call(options.method, params, signal.token());
    if (options.stream) return print_stream(std::move(call), signal);
    if (left) call.set_timeout(*left);
    return print_answer(std::move(call), options.raw, signal);
  });
}

int notify(const CallOptions& options) {
  return with_server<Client>(options, [&](Client& client, const std::string& params, Left left) -> int {
    const auto sent = client.notify_raw(options.method, params, left);
    if (sent) return kSuccess;
    complain_of(sent.error());
    return exit_of(sent.error());
  });
}

}  // namespace wirecall::cli
