// See standing.hpp.
#include "cli/standing.hpp"

#include <algorithm>
#include <string_view>

#include "cli/command.hpp"
#include "cli/terminal.hpp"

namespace wirecall::cli {

namespace {

// By HTTP nobody can be called, nor told of events, but by GET /events.
const Target& require_connection(const Target& target) {
  const auto http = [](const std::string& url) { return url.starts_with("http://"); };
  if (!std::ranges::all_of(target.urls, http)) return target;
  throw UsageError{target.urls.front() +
                   ": a server cannot call its clients by HTTP; use tcp:// or unix://, or `curl -N "
                   "http://HOST/events?topic=TOPIC` for events"};
}

}  // namespace

Standing::Standing(const Target& target) : client_(places_of(require_connection(target)), client_options_of(target)) {}

void Standing::end(int status) {
  const std::scoped_lock lock{mutex_};
  if (!status_) status_ = status;
  if (interrupt_ != nullptr) interrupt_->release();
}

std::optional<int> Standing::status() const {
  const std::scoped_lock lock{mutex_};
  return status_;
}

int Standing::stay(const std::string& what, const std::function<void()>& leave) {
  try {
    client_.connect();
  } catch (const ConnectionError& error) {
    complain(error.what());
    return kCannotConnect;
  } catch (const Error& error) {
    complain_of(error);
    return exit_of_answer(error);
  }
  client_.on_connection([&what](const ConnectionNews& news) {
    if (news.connected) return note("connected to " + news.place + " again: " + what);
    complain(news.cause + "; connecting again");
  });
  client_.on_refused([](std::string_view, const Error& error) { complain_of(error); });
  // Until here a signal ends the process.
  const Interrupt interrupt;
  {
    const std::scoped_lock lock{mutex_};
    interrupt_ = &interrupt;
  }
  note(what);
  while (!status() && interrupt.signal() == 0) interrupt.wait();
  leave();
  const std::scoped_lock lock{mutex_};
  interrupt_ = nullptr;
  return status_ ? *status_ : interrupt.status();
}

}  // namespace wirecall::cli
