// A connection of a kind that is no descriptor: two ends in memory, each of which becomes a stream on a loop of its
// own, on whichever thread that turns. What one end sends is a job in the inbox of the other end's loop.
#pragma once

#include <cerrno>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "runtime/inbox.hpp"
#include "transport/pending_connection.hpp"
#include "wirecall/loop.hpp"

namespace wirecall::transport {

/// One end, for as long as either end's stream needs it. The mutex guards all but `stream`, which is its loop's.
struct MemoryEnd : std::enable_shared_from_this<MemoryEnd> {
  struct Stream {
    virtual void deliver() = 0;

   protected:
    ~Stream() = default;
  };

  // Something has come, or the other end has gone: the stream, once there is one, is told on its loop.
  void notify() {
    if (inbox == nullptr || std::exchange(notified, true)) return;
    inbox->post_owed([end = shared_from_this()] {
      {
        const std::scoped_lock lock{end->mutex};
        end->notified = false;
      }
      if (end->stream != nullptr) end->stream->deliver();
    });
  }
  template <class Change>
  void change(const Change& change) {
    const std::scoped_lock lock{mutex};
    change(*this);
    notify();
  }

  std::mutex mutex;
  std::string arrived;
  bool ended = false;      // the other end sends no more
  bool abandoned = false;  // it has gone
  bool notified = false;
  std::shared_ptr<runtime::Inbox> inbox;
  Stream* stream = nullptr;
};

class MemoryStream final : public ByteStream, private MemoryEnd::Stream {
 public:
  MemoryStream(Loop& loop, std::shared_ptr<MemoryEnd> ours, std::shared_ptr<MemoryEnd> theirs)
      : loop_(&loop), ours_(std::move(ours)), theirs_(std::move(theirs)) {
    loop.admit(1);
    ours_->stream = this;
    ours_->change([&](MemoryEnd& end) { end.inbox = loop.inbox(); });
  }
  MemoryStream(MemoryStream&&) = delete;
  ~MemoryStream() override {
    loop_->release(1);
    ours_->stream = nullptr;
    theirs_->change([](MemoryEnd& end) { end.abandoned = true; });
  }

  void start(StreamUser& user) override {
    user_ = &user;
    resume();
  }
  void send(Buffer bytes, bool) override {
    theirs_->change([&](MemoryEnd& end) { end.arrived += bytes.view(); });
    sent_ = std::move(bytes);
    sending_ = true;
    ours_->change([](MemoryEnd&) {});
  }
  void pause() override { wanted_ = false; }
  void resume() override {
    wanted_ = true;
    ours_->change([](MemoryEnd&) {});
  }
  [[nodiscard]] std::size_t readable() const noexcept override {
    const std::scoped_lock lock{ours_->mutex};
    return ours_->arrived.size();
  }
  [[nodiscard]] std::size_t unsent() const noexcept override { return 0; }
  void shut_down() override {
    theirs_->change([](MemoryEnd& end) { end.ended = true; });
  }
  [[nodiscard]] std::string peer_source() const override { return "memory"; }

 private:
  // In the loop's inbox. The user may end the stream in each call.
  void deliver() override {
    const std::shared_ptr<MemoryEnd> ours = ours_;
    if (user_ == nullptr) return;
    if (std::exchange(sending_, false)) user_->sent(std::move(sent_));
    if (ours->stream == nullptr || !wanted_) return;
    Buffer bytes;
    bool ended = false;
    bool abandoned = false;
    {
      const std::scoped_lock lock{ours->mutex};
      bytes.append(std::exchange(ours->arrived, {}));
      ended = ours->ended;
      abandoned = ours->abandoned;
    }
    if (!bytes.empty()) {
      static_cast<void>(bytes.padded());
      user_->received({bytes.data(), bytes.size()});
    }
    if (ours->stream == nullptr || !wanted_ || !(ended || abandoned)) return;
    wanted_ = false;
    if (ended) return user_->ended();
    user_->failed(ECONNRESET);
  }

  Loop* loop_;
  std::shared_ptr<MemoryEnd> ours_;
  std::shared_ptr<MemoryEnd> theirs_;
  StreamUser* user_ = nullptr;
  Buffer sent_;
  bool sending_ = false;
  bool wanted_ = false;
};

class MemoryConnection final : public UnattachedStream {
 public:
  MemoryConnection(std::shared_ptr<MemoryEnd> ours, std::shared_ptr<MemoryEnd> theirs)
      : ours_(std::move(ours)), theirs_(std::move(theirs)) {}
  MemoryConnection(MemoryConnection&&) = delete;
  ~MemoryConnection() override {
    if (theirs_ != nullptr) theirs_->change([](MemoryEnd& end) { end.abandoned = true; });
  }
  [[nodiscard]] std::unique_ptr<ByteStream> attach(Loop& loop) override {
    auto stream = std::make_unique<MemoryStream>(loop, ours_, theirs_);
    theirs_.reset();
    return stream;
  }

 private:
  std::shared_ptr<MemoryEnd> ours_;
  std::shared_ptr<MemoryEnd> theirs_;  // null once it has been attached
};

/// The two ends of a new connection.
[[nodiscard]] inline std::pair<PendingConnection, PendingConnection> memory_pair() {
  const auto one = std::make_shared<MemoryEnd>();
  const auto other = std::make_shared<MemoryEnd>();
  return {PendingConnection{std::make_unique<MemoryConnection>(one, other)},
          PendingConnection{std::make_unique<MemoryConnection>(other, one)}};
}

}  // namespace wirecall::transport
