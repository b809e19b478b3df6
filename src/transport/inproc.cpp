// See inproc.hpp.
#include "transport/inproc.hpp"

#include <cerrno>
#include <map>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <utility>

#include "runtime/inbox.hpp"
#include "transport/setup.hpp"

namespace wirecall::transport {
namespace {

struct InprocAddress {
  std::shared_ptr<runtime::Inbox> inbox;
  // Looked at on the inbox's loop only, where the listener goes as well: so it is there until the job is done.
  std::weak_ptr<InprocListener::Accepted> accepted;
};

std::mutex mutex;  // guards what follows
std::map<std::string, InprocAddress, std::less<>>& registry() {
  static std::map<std::string, InprocAddress, std::less<>> all;
  return all;
}

}  // namespace

InprocListener::InprocListener(Loop& loop, const Endpoint& endpoint, Accepted accepted)
    : name_(endpoint.path()), accepted_(std::make_shared<Accepted>(std::move(accepted))) {
  const std::scoped_lock lock{mutex};
  if (!registry().try_emplace(name_, loop.inbox(), accepted_).second) {
    throw failure("cannot listen on", endpoint, "another server of this process listens there",
                  "stop it, or listen on another name");
  }
}

InprocListener::~InprocListener() {
  const std::scoped_lock lock{mutex};
  registry().erase(name_);
}

PendingConnection connect_to_inproc(const Endpoint& endpoint) {
  InprocAddress address;
  {
    const std::scoped_lock lock{mutex};
    const auto found = registry().find(endpoint.path());
    if (found == registry().end()) throw connect_failure(endpoint, ECONNREFUSED);
    address = found->second;
  }
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) {
    throw connect_failure(endpoint, errno);
  }
  PendingConnection ours{ends[0]};
  const bool posted =
      address.inbox->post([theirs = PendingConnection{ends[1]}, accepted = std::move(address.accepted)]() mutable {
        if (const auto listener = accepted.lock()) (*listener)(std::move(theirs));
      });
  if (!posted) throw connect_failure(endpoint, ECONNREFUSED);
  return ours;
}

}  // namespace wirecall::transport
