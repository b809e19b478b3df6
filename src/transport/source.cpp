// See source.hpp.
#include "transport/source.hpp"

#include <chrono>
#include <fcntl.h>
#include <optional>
#include <utility>

#include "transport/inproc.hpp"
#include "transport/stdio.hpp"

namespace wirecall::transport {
namespace {

class SocketSource final : public Source {
 public:
  SocketSource(Loop& loop, Listening listening, Listener::Accepted accepted, Listener::Failed failed)
      : endpoint_(std::move(listening.endpoint)),
        listener_(loop, listening.descriptor, std::move(accepted), std::move(failed)),
        file_(std::move(listening.file)) {}
  [[nodiscard]] const Endpoint& endpoint() const noexcept override { return endpoint_; }

 private:
  Endpoint endpoint_;
  Listener listener_;
  SocketFile file_;  // goes first: who finds no file does not wait for nobody
};

// A socket on which other processes accept as well. The kernel gives each connection to the one that has waited
// longest, and who stands there for good has always waited longest: so after each one this process stands in line anew.
class SharedSource final : public Source, private Timer {
 public:
  SharedSource(Loop& loop, Listening listening, Listener::Accepted accepted, Listener::Failed failed)
      : loop_(&loop), listening_(std::move(listening)), accepted_(std::move(accepted)), failed_(std::move(failed)) {
    stand_in_line(listening_.descriptor);
  }
  ~SharedSource() override { loop_->stop(*this); }
  [[nodiscard]] const Endpoint& endpoint() const noexcept override { return listening_.endpoint; }

 private:
  void stand_in_line(int descriptor) {
    listener_.emplace(
        *loop_, descriptor,
        [this](int connected) {
          loop_->start(*this, std::chrono::nanoseconds{0});
          accepted_(connected);
        },
        failed_);
    listening_.descriptor = descriptor;
  }
  void expired() override {
    const int again = ::fcntl(listening_.descriptor, F_DUPFD_CLOEXEC, 0);
    if (again >= 0) stand_in_line(again);  // else it stands where it was
  }

  Loop* loop_;
  Listening listening_;
  Listener::Accepted accepted_;
  Listener::Failed failed_;
  std::optional<Listener> listener_;
};

class InprocSource final : public Source {
 public:
  InprocSource(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted)
      : endpoint_(endpoint), listener_(loop, endpoint, std::move(accepted)) {}
  [[nodiscard]] const Endpoint& endpoint() const noexcept override { return endpoint_; }

 private:
  Endpoint endpoint_;
  InprocListener listener_;
};

// Its one connection is there from the beginning, and handed over in the first turn.
class StdioSource final : public Source, private Timer {
 public:
  StdioSource(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted)
      : loop_(&loop),
        endpoint_(endpoint),
        accepted_(std::move(accepted)),
        streams_(endpoint),
        pump_(streams_.input(), streams_.output()) {
    loop.start(*this, std::chrono::nanoseconds{0});
  }
  ~StdioSource() override { loop_->stop(*this); }
  [[nodiscard]] const Endpoint& endpoint() const noexcept override { return endpoint_; }
  [[nodiscard]] bool exhausted() const noexcept override { return handed_over_; }
  int end() noexcept override { return pump_.end(); }

 private:
  void expired() override {
    handed_over_ = true;
    accepted_(pump_.take_socket());
  }

  Loop* loop_;
  Endpoint endpoint_;
  Listener::Accepted accepted_;
  StandardStreams streams_;
  Pump pump_;
  bool handed_over_ = false;
};

}  // namespace

std::unique_ptr<Source> open_source(Loop& loop, const Endpoint& endpoint, Listener::Accepted accepted,
                                    Listener::Failed failed) {
  switch (endpoint.kind()) {
    case EndpointKind::tcp:
    case EndpointKind::unix_socket:
    case EndpointKind::http:
      break;
    case EndpointKind::stdio:
      return std::make_unique<StdioSource>(loop, endpoint, std::move(accepted));
    case EndpointKind::inproc:
      return std::make_unique<InprocSource>(loop, endpoint, std::move(accepted));
  }
  return open_source(loop, listen_on(endpoint), std::move(accepted), std::move(failed));
}

std::unique_ptr<Source> open_source(Loop& loop, Listening listening, Listener::Accepted accepted,
                                    Listener::Failed failed) {
  if (listening.shared)
    return std::make_unique<SharedSource>(loop, std::move(listening), std::move(accepted), std::move(failed));
  return std::make_unique<SocketSource>(loop, std::move(listening), std::move(accepted), std::move(failed));
}

}  // namespace wirecall::transport
