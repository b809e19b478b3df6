// Target: which server a command is for, and how long it is waited for. And what becomes of errors: a line for the user
// and an exit status. The connection is the caller's.
#pragma once

#include <expected>
#include <functional>
#include <stop_token>
#include <thread>

#include "cli/interrupt.hpp"
#include "wirecall/endpoint.hpp"
#include "wirecall/error.hpp"
#include "wirecall/options.hpp"
#include "wirecall/request.hpp"

namespace wirecall::cli {

/// Of endpoints with a connection, by which a server calls its client; for messages.
inline constexpr std::string_view kConnectionSchemes = "tcp://, tls://, ws://, wss:// or unix://";

struct Target {
  std::vector<std::string> urls;  ///< at least one
  ClientOptions client = {};
  std::optional<std::chrono::milliseconds> timeout = {};  ///< in all, connecting included
  std::chrono::milliseconds wait{0};  ///< so long servers are tried again when none can be connected to
  /// Called where none can be connected to, with why the last one cannot.
  std::function<void(const Error&)> unreachable = {};
};

/// What is left of the time, where there is one.
using TimeLeft = std::optional<std::chrono::milliseconds>;

/// A client of which a call can be given up whose response is wanted as it came: Client has none of these.
class RawClient {
 public:
  RawClient(std::string_view url, const ClientOptions& options);
  RawClient(RawClient&&) = delete;
  ~RawClient();

  [[nodiscard]] const std::string& url() const noexcept { return url_; }
  void connect();
  /// A call that a request to stop gives up. `params` are JSON text, empty for none.
  [[nodiscard]] detail::OutgoingCall call(std::string_view method, std::string_view params, std::stop_token stop);

 private:
  std::string url_;
  std::shared_ptr<net::ClientCore> core_;
};

/// Uses the first server that can be connected to; `use` returns the exit status. What cannot be connected to is told.
[[nodiscard]] int with_server(const Target& target, const std::function<int(RawClient&, TimeLeft)>& use);

/// All endpoints, for a client that changes between them by itself. Throws std::invalid_argument for what is none.
[[nodiscard]] std::vector<Endpoint> endpoints_of(const Target& target);
/// The options of that client, each endpoint having its share of the time.
[[nodiscard]] ClientOptions client_options_of(const Target& target);

/// Requests a stop when a signal comes.
class StopAtSignal {
 public:
  StopAtSignal() = default;
  StopAtSignal(StopAtSignal&&) = delete;
  ~StopAtSignal() { interrupt_.release(); }

  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
  [[nodiscard]] bool came() const { return interrupt_.signal() != 0; }
  /// Whether that is why the call has ended: then it is told, and `status` is the exit status.
  [[nodiscard]] bool gave_up(const Error& error) const;
  [[nodiscard]] int status() const { return interrupt_.status(); }

 private:
  const Interrupt interrupt_;
  std::stop_source stop_;
  std::jthread thread_{[this] {
    interrupt_.wait();
    if (interrupt_.signal() != 0) stop_.request_stop();
  }};
};

/// What is told of the error that a call of `method` was answered with: where brokers alone have that method and the
/// server has not, that it is no broker. rpc.call_all is answered so by a broker, too: that is asked another method.
[[nodiscard]] Error explained(RawClient& caller, std::string_view method, const Error& error);

/// Makes the call, of `method`, and returns its result as JSON text, or the exit status when there is none and that has
/// been told.
[[nodiscard]] std::expected<std::string, int> result_of(RawClient& caller, std::string_view method,
                                                        detail::OutgoingCall call, const StopAtSignal& signal);

/// Makes one call, of a method that answers at once, at the first server that can be connected to. `use` is given the
/// result as JSON text; it and this return the exit status. `params` are JSON text, empty for none.
[[nodiscard]] int with_result(const Target& target, std::string_view method,
                              const std::function<int(const std::string&)>& use, std::string_view params = {});

/// Says on stderr that any server is accepted, where that is so.
void warn_of_no_verify(const ClientOptions& options);

/// The exit status for an error that this process made: no response came, or none that can be read.
[[nodiscard]] int exit_of(const Error& error);
/// The exit status for an error that the server answered with. A call's time is known to both sides, and either may be
/// the first to notice that it is up.
[[nodiscard]] int exit_of_answer(const Error& error);
/// What to do where a server is told no token, or one that it does not know; stands behind the error.
extern const char* const kTokenCure;
/// The error on a line of stderr: its data in words, and of -32004 the cure.
void print_error(const Error& error);

}  // namespace wirecall::cli
