// See long_running.hpp.
#include "cli/long_running.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "cli/command.hpp"
#include "cli/terminal.hpp"

namespace wirecall::cli {

/// The timeout of rpc.unregister, after whose answer no further call comes.
constexpr std::chrono::milliseconds kUnregister{1000};

// By HTTP nobody can be called, nor told of events, but by GET /events.
static const Target& require_connection(const Target& target) {
  const auto http = [](const std::string& url) { return url.starts_with("http://") || url.starts_with("https://"); };
  if (!std::ranges::all_of(target.urls, http)) return target;
  const std::string& url = target.urls.front();
  throw UsageError{
      fmt::format("{}: a server cannot call its clients by HTTP; name {}, or have `curl -N "
                  "{}HOST/events?topic=TOPIC` print events",
                  url, kConnectionSchemes, url.substr(0, url.find("//") + 2))};
}

// Whether the server does not let this client in.
static bool is_refusal(const Error& error) {
  return error.code() == static_cast<int>(ErrorCode::unauthenticated) ||
         error.code() == static_cast<int>(ErrorCode::forbidden);
}

LongRunning::LongRunning(const Target& target)
    : client_(endpoints_of(require_connection(target)), client_options_of(target)) {}

void LongRunning::unregister(const std::string& method) {
  static_cast<void>(client_.request("rpc.unregister", method).timeout(kUnregister).try_call());
}

void LongRunning::end(int status) {
  const std::scoped_lock lock{mutex_};
  if (!status_) status_ = status;
  if (interrupt_ != nullptr) interrupt_->release();
}

std::optional<int> LongRunning::status() const {
  const std::scoped_lock lock{mutex_};
  return status_;
}

void LongRunning::tell_connection(const ConnectionEvent& news) {
  if (status()) return;
  if (!news.connected) return print_error(news.cause + "; connecting again");
  // What is declared goes out before any call and is answered in order: this answer comes behind all of those.
  client_.request("rpc.ping").then([this, endpoint = news.endpoint](const std::expected<void, Error>& pong) {
    if (pong || pong.error().code() == static_cast<int>(ErrorCode::method_not_found)) answered_again(endpoint);
  });
}

void LongRunning::answered_again(const std::string& endpoint) {
  const std::scoped_lock lock{mutex_};
  again_ = endpoint;
  if (interrupt_ != nullptr) interrupt_->release();
}

// Of a refusal the user has been told already.
void LongRunning::tell_accepted_again() {
  std::string endpoint;
  {
    const std::scoped_lock lock{mutex_};
    endpoint.swap(again_);
  }
  if (endpoint.empty()) return;
  try {
    client_.connect();
  } catch (const Error&) {
    return;
  }
  {
    const std::scoped_lock lock{mutex_};
    refused_.clear();
  }
  print_note("connected to " + endpoint + " again: " + what_);
}

// A server that does not let this client in refuses it each time that it connects: that is told once. One that does not
// know it will not know it later.
void LongRunning::tell_refused(std::string_view name, const Error& error) {
  {
    const std::scoped_lock lock{mutex_};
    const std::string_view of = is_refusal(error) ? std::string_view{} : name;
    if (status_ || !refused_.insert(fmt::format("{} {}", of, error.code())).second) return;
  }
  print_error(error);
  if (error.code() == static_cast<int>(ErrorCode::unauthenticated)) end(kRpcError);
}

int LongRunning::stay(const std::string& what, const std::function<void()>& leave) {
  what_ = what;
  try {
    client_.connect();
  } catch (const ConnectionError& error) {
    if (is_refusal(error)) {
      print_error(error);
      return kRpcError;
    }
    print_error(error.what());
    return kCannotConnect;
  } catch (const Error& error) {
    print_error(error);
    return exit_of_answer(error);
  }
  // All of these are called on one thread.
  client_.on_connection([this](const ConnectionEvent& news) { tell_connection(news); });
  client_.on_refused([this](std::string_view name, const Error& error) { tell_refused(name, error); });
  // Until here a signal ends the process.
  const Interrupt interrupt;
  {
    const std::scoped_lock lock{mutex_};
    interrupt_ = &interrupt;
  }
  print_note(what_);
  for (; !status() && interrupt.signal() == 0; interrupt.wait()) tell_accepted_again();
  leave();
  const std::scoped_lock lock{mutex_};
  interrupt_ = nullptr;
  return status_ ? *status_ : interrupt.status();
}

}  // namespace wirecall::cli
