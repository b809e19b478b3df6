// See acceptor.hpp.
#include "transport/acceptor.hpp"

#include <fcntl.h>

#include "transport/setup.hpp"

namespace wirecall::transport {
namespace {

// Where other processes accept on its socket as well, the kernel gives each connection to the one that has waited
// longest, and who stands there for good has always waited longest: so after each one this process stands in line anew,
// by another descriptor. What the kernel has given by the former one until then is handed on all the same.
class SocketAcceptor final : public Acceptor, private Timer {
 public:
  SocketAcceptor(Loop& loop, BoundSocket bound, Listener::Accepted accepted, Listener::Failed failed)
      : Acceptor(std::move(bound.endpoint), bound.passed),
        loop_(&loop),
        accepted_(std::move(accepted)),
        failed_(std::move(failed)),
        descriptor_(bound.descriptor),
        listens_(bound.listens),
        file_(std::move(bound.file)) {
    if (bound.shared) {
      stand_in_line(bound.descriptor);
    } else {
      listener_ = std::make_unique<Listener>(loop, bound.descriptor, std::move(accepted_), std::move(failed_));
    }
  }
  ~SocketAcceptor() override { loop_->stop(*this); }

  [[nodiscard]] int descriptor() const noexcept override { return descriptor_; }
  void stop() override {
    loop_->stop(*this);
    if (former_ != nullptr) former_->stop();
    listener_->stop();
  }
  [[nodiscard]] bool stopped() const noexcept override {
    return listener_->stopped() && (former_ == nullptr || former_->stopped());
  }
  void begin_to_listen() noexcept override {
    // Where it fails, so does each attempt to accept, which the user is told.
    if (!std::exchange(listens_, true)) static_cast<void>(transport::begin_to_listen(descriptor_));
  }
  void own_file() override {
    if (endpoint().kind() == EndpointKind::unix_socket) file_ = SocketFile{endpoint().path()};
  }
  void keep_file() noexcept override { file_.keep(); }

 private:
  void stand_in_line(int descriptor) {
    auto next = std::make_unique<Listener>(
        *loop_, descriptor,
        [this](PendingConnection connected) {
          was_given_ = true;
          if (!listener_->stopping()) loop_->start(*this, std::chrono::nanoseconds{0});
          accepted_(std::move(connected));
        },
        failed_);
    descriptor_ = descriptor;
    former_ = std::exchange(listener_, std::move(next));
  }
  // In the turns that follow, the former one goes first.
  void expired() override {
    if (former_ != nullptr) former_->stop();
    if (former_ == nullptr || former_->stopped()) {
      former_.reset();
      if (!std::exchange(was_given_, false)) return;
      const int again = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
      if (again < 0) return;  // it stands where it was
      stand_in_line(again);
      former_->stop();
    }
    loop_->start(*this, std::chrono::nanoseconds{0});
  }

  Loop* loop_;
  Listener::Accepted accepted_;
  Listener::Failed failed_;
  int descriptor_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Listener> former_;  // until it has stopped; null for none
  bool was_given_ = false;            // a connection, since it stood in line anew
  bool listens_;                      // else its socket is only bound
  SocketFile file_;                   // goes first, so that nobody connects to a socket that is not served
};

}  // namespace

std::unique_ptr<Acceptor> open_acceptor(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted,
                                        Listener::Failed failed) {
  switch (endpoint.kind()) {
    case EndpointKind::tcp:
    case EndpointKind::unix_socket:
    case EndpointKind::http:
    case EndpointKind::ws:
    case EndpointKind::udp:
    case EndpointKind::xdp:
    case EndpointKind::tls:
    case EndpointKind::https:
    case EndpointKind::wss: break;
    case EndpointKind::stdio: return listen_on_stdio(loop, endpoint, std::move(accepted));
    case EndpointKind::inproc: return listen_on_inproc(loop, endpoint, std::move(accepted));
    case EndpointKind::shm: return listen_on_shm(loop, endpoint, std::move(accepted), std::move(failed));
  }
  return open_acceptor(loop, listen_on(endpoint), std::move(accepted), std::move(failed));
}

std::unique_ptr<Acceptor> open_acceptor(Loop& loop, BoundSocket bound, Listener::Accepted accepted,
                                        Listener::Failed failed) {
  if (bound.endpoint.kind() == EndpointKind::shm)
    return listen_on_shm(loop, std::move(bound), std::move(accepted), std::move(failed));
  return std::make_unique<SocketAcceptor>(loop, std::move(bound), std::move(accepted), std::move(failed));
}

}  // namespace wirecall::transport
