// inproc://name: connections within one process, from whichever thread and loop to whichever other. A connection is a
// pair of sockets, so it has all that others have: bytes in order, back-pressure, half-close; what is particular is how
// it comes about, namely as a job in the inbox of the listener's loop.
// The names are the one thing here that all of a process shares, as its ports are what all of a machine shares.
// Thread: any for connecting, the loop's for the rest.
#include <cerrno>
#include <map>
#include <mutex>
#include <sys/socket.h>

#include "runtime/inbox.hpp"
#include "transport/setup.hpp"

namespace wirecall::transport {
namespace {

struct InprocAddress {
  std::shared_ptr<runtime::Inbox> inbox;
  // Looked at on the inbox's loop only, where the listener goes as well: so it is there until the job is done.
  std::weak_ptr<Listener::Accepted> accepted;
};

std::mutex mutex;  // guards what follows
std::map<std::string, InprocAddress, std::less<>>& registry() {
  static std::map<std::string, InprocAddress, std::less<>> all;
  return all;
}

class InprocAcceptor final : public Acceptor {
 public:
  InprocAcceptor(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted)
      : Acceptor(endpoint), accepted_(std::make_shared<Listener::Accepted>(std::move(accepted))) {
    const std::scoped_lock lock{mutex};
    if (!registry().try_emplace(endpoint.path(), loop.inbox(), accepted_).second) {
      throw failure("cannot listen on", endpoint, "another server of this process listens there",
                    "stop it, or listen on another name");
    }
  }
  ~InprocAcceptor() override {
    const std::scoped_lock lock{mutex};
    registry().erase(endpoint().path());
  }

 private:
  std::shared_ptr<Listener::Accepted> accepted_;
};

}  // namespace

std::unique_ptr<Acceptor> listen_on_inproc(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted) {
  return std::make_unique<InprocAcceptor>(loop, endpoint, std::move(accepted));
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
