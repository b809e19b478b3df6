// See long_running.hpp.
#include "cli/long_running.hpp"

#include <algorithm>
#include <fmt/core.h>

#include "cli/command.hpp"
#include "cli/terminal.hpp"

namespace wirecall::cli {

// By HTTP nobody can be called, nor told of events, but by GET /events.
static const Target& require_connection(const Target& target) {
  const auto http = [](const std::string& url) { return url.starts_with("http://"); };
  if (!std::ranges::all_of(target.urls, http)) return target;
  throw UsageError{target.urls.front() +
                   ": a server cannot call its clients by HTTP; use tcp:// or unix://, or `curl -N "
                   "http://HOST/events?topic=TOPIC` for events"};
}

// Whether the server does not let this client in.
static bool is_refusal(const Error& error) {
  return error.code() == static_cast<int>(ErrorCode::unauthenticated) ||
         error.code() == static_cast<int>(ErrorCode::forbidden);
}

LongRunning::LongRunning(const Target& target)
    : client_(endpoints_of(require_connection(target)), client_options_of(target)) {}

void LongRunning::end(int status) {
  const std::scoped_lock lock{mutex_};
  if (!status_) status_ = status;
  if (interrupt_ != nullptr) interrupt_->release();
}

std::optional<int> LongRunning::status() const {
  const std::scoped_lock lock{mutex_};
  return status_;
}

// A server that does not let this client in refuses it each time that it connects: that is told once.
void LongRunning::tell_refused(std::string_view name, const Error& error) {
  if (!refused_.insert(fmt::format("{} {}", is_refusal(error) ? std::string_view{} : name, error.code())).second)
    return;
  print_error(error);
}

int LongRunning::stay(const std::string& what, const std::function<void()>& leave) {
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
  client_.on_connection([this, &what](const ConnectionEvent& news) {
    refused_.clear();
    if (news.connected) return print_note("connected to " + news.endpoint + " again: " + what);
    print_error(news.cause + "; connecting again");
  });
  client_.on_refused([this](std::string_view name, const Error& error) { tell_refused(name, error); });
  // Until here a signal ends the process.
  const Interrupt interrupt;
  {
    const std::scoped_lock lock{mutex_};
    interrupt_ = &interrupt;
  }
  print_note(what);
  while (!status() && interrupt.signal() == 0) interrupt.wait();
  leave();
  const std::scoped_lock lock{mutex_};
  interrupt_ = nullptr;
  return status_ ? *status_ : interrupt.status();
}

}  // namespace wirecall::cli
