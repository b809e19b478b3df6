// See acceptor.hpp.
#include "transport/acceptor.hpp"

#include <chrono>
#include <fcntl.h>
#include <optional>
#include <utility>

#include "transport/inproc.hpp"
#include "transport/stdio.hpp"

namespace wirecall::transport {
namespace {

class SocketAcceptor final : public Acceptor {
 public:
  SocketAcceptor(Loop& loop, BoundSocket bound, Listener::Accepted accepted, Listener::Failed failed)
      : endpoint_(std::move(bound.endpoint)),
        listener_(loop, bound.descriptor, std::move(accepted), std::move(failed)),
        file_(std::move(bound.file)) {}
  [[nodiscard]] const Endpoint& endpoint() const noexcept override { return endpoint_; }

 private:
  Endpoint endpoint_;
  Listener listener_;
  SocketFile file_;  // goes first: who finds no file does not wait for nobody
};

// A socket on which other processes accept as well. The kernel gives each connection to the one that has waited
// longest, and who stands there for good has always waited longest: so after each one this process stands in line anew.
class SharedAcceptor final : public Acceptor, private Timer {
 public:
  SharedAcceptor(Loop& loop, BoundSocket bound, Listener::Accepted accepted, Listener::Failed failed)
      : loop_(&loop), bound_(std::move(bound)), accepted_(std::move(accepted)), failed_(std::move(failed)) {
    stand_in_line(bound_.descriptor);
  }
  ~SharedAcceptor() override { loop_->stop(*this); }
  [[nodiscard]] const Endpoint& endpoint() const noexcept override { return bound_.endpoint; }

 private:
  void stand_in_line(int descriptor) {
    listener_.emplace(
        *loop_, descriptor,
        [this](PendingConnection connected) {
          loop_->start(*this, std::chrono::nanoseconds{0});
          accepted_(std::move(connected));
        },
        failed_);
    bound_.descriptor = descriptor;
  }
  void expired() override {
    const int again = ::fcntl(bound_.descriptor, F_DUPFD_CLOEXEC, 0);
    if (again >= 0) stand_in_line(again);  // else it stands where it was
  }

  Loop* loop_;
  BoundSocket bound_;
  Listener::Accepted accepted_;
  Listener::Failed failed_;
  std::optional<Listener> listener_;
};

class InprocAcceptor final : public Acceptor {
 public:
  InprocAcceptor(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted)
      : endpoint_(endpoint), listener_(loop, endpoint, std::move(accepted)) {}
  [[nodiscard]] const Endpoint& endpoint() const noexcept override { return endpoint_; }

 private:
  Endpoint endpoint_;
  InprocListener listener_;
};

// Its one connection is there from the beginning, and handed over in the first turn.
class StdioAcceptor final : public Acceptor, private Timer {
 public:
  StdioAcceptor(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted)
      : loop_(&loop),
        endpoint_(endpoint),
        accepted_(std::move(accepted)),
        streams_(endpoint),
        pump_(streams_.input(), streams_.output()) {
    loop.start(*this, std::chrono::nanoseconds{0});
  }
  ~StdioAcceptor() override { loop_->stop(*this); }
  [[nodiscard]] const Endpoint& endpoint() const noexcept override { return endpoint_; }
  [[nodiscard]] bool exhausted() const noexcept override { return handed_over_; }
  int end() noexcept override { return pump_.end(); }

 private:
  void expired() override {
    handed_over_ = true;
    accepted_(PendingConnection{pump_.take_socket()});
  }

  Loop* loop_;
  Endpoint endpoint_;
  Listener::Accepted accepted_;
  StandardStreams streams_;
  Pump pump_;
  bool handed_over_ = false;
};

}  // namespace

std::unique_ptr<Acceptor> open_acceptor(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted,
                                        Listener::Failed failed) {
  switch (endpoint.kind()) {
    case EndpointKind::tcp:
    case EndpointKind::unix_socket:
    case EndpointKind::http:
      break;
    case EndpointKind::stdio:
      return std::make_unique<StdioAcceptor>(loop, endpoint, std::move(accepted));
    case EndpointKind::inproc:
      return std::make_unique<InprocAcceptor>(loop, endpoint, std::move(accepted));
  }
  return open_acceptor(loop, listen_on(endpoint), std::move(accepted), std::move(failed));
}

std::unique_ptr<Acceptor> open_acceptor(Loop& loop, BoundSocket bound, Listener::Accepted accepted,
                                        Listener::Failed failed) {
  if (bound.shared)
    return std::make_unique<SharedAcceptor>(loop, std::move(bound), std::move(accepted), std::move(failed));
  return std::make_unique<SocketAcceptor>(loop, std::move(bound), std::move(accepted), std::move(failed));
}

}  // namespace wirecall::transport
